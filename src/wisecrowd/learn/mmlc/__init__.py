"""Mixture of experts learned from crowds."""
