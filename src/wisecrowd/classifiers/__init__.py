"""Classifiers that learn from soft targets."""
