"""Inputs that nobody thought of, on demand: `make fuzz`."""
