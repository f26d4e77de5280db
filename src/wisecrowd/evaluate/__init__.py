"""Metrics, intervals, calibration and model selection, with and without ground truth."""
