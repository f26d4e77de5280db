"""Diagnosis: whom to trust, which tasks are hard, and how far the crowd agrees."""
