"""Helpers that know nothing about crowds: files, progress, hashing, threads and bins."""
