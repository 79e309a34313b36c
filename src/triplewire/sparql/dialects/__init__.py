"""SQL dialects of the engines."""
