"""Logs of evaluation tools: one module per tool."""
