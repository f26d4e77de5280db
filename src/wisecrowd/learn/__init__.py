"""Learners, which train classifiers on votes; one method per file."""
