"""Transfer learning-based label completion."""
