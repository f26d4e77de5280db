"""Aggregators of votes for classes."""
