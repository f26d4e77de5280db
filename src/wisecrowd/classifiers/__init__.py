"""Classifiers that learn from soft targets, and graphs of similar tasks."""
