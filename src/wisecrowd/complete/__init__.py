"""Completers, which fill in missing votes; one method per file."""
