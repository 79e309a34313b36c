"""Who sends a request, and what each may have."""
