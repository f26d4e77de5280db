"""Aggregators of comparisons, one per file."""
