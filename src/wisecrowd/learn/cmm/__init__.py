"""Crowd mixture model (CMM)."""
