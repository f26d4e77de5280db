"""Expectation–maximisation: the loop, the families of models that use it, and their updates with new votes."""
