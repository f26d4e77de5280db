"""Aggregators of categorical votes."""
