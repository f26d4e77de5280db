"""Helpers without knowledge of crowds: files, progress, hashing."""
