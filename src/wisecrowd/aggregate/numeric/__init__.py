"""Aggregators of numbers."""
