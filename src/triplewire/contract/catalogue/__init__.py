"""Every operation that is served, a module for each thing that people come for."""
