"""SPARQL over history."""
