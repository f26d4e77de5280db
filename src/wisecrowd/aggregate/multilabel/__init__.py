"""Aggregators of label sets, one per file."""
