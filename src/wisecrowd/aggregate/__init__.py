"""Aggregators, one method per file: inference of the truth from votes."""
