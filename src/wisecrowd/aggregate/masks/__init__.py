"""Aggregators of masks: which pixels of an image belong to something."""
