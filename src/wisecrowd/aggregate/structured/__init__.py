"""Aggregators of marks, such as boxes and spans: match, decide, merge."""
