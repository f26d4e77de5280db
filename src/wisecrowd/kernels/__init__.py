"""Sums over votes that every model is built from."""
