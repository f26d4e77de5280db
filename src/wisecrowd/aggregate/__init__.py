"""Aggregators: from votes to truth, one file each."""
