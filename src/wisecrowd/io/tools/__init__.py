"""Exports of labelling tools, and files to import into them."""
