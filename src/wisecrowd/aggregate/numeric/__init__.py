"""Aggregators of numeric labels."""
