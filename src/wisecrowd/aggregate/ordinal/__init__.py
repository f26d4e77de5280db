"""Aggregators of votes on ordered classes."""
