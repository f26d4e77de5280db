"""Common mixture model of annotations."""
