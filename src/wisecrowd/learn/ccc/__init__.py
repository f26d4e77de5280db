"""Coupled Confusion Correction."""
