"""Neural networks trained on votes."""
