"""Crowds of votes: in memory, in shards, and their vocabularies."""
