"""Crowds of votes in memory and in shards, their vocabularies, and data aligned with them."""
