"""Expectation–maximisation: the loop and the families of models that run on it."""
