"""Aggregators of texts, such as transcriptions."""
