"""Completers: what workers would have said, one file each."""
