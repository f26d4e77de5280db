"""Base classes of methods, and their registry, laws and persistence."""
