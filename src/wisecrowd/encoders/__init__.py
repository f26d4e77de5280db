"""Encoders: features from tables with mixed columns, from texts and from images."""
