"""Validation of votes: problems, their severity, and how to fix them."""
