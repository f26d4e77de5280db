"""Provenance of the report."""

from __future__ import annotations

from typing import Any

import numpy as np


def test_provenance(page: Any, simulated: Any) -> None:
    text = page.section_text("provenance")
    assert "wisecrowd report x.csv" in text
    assert simulated.crowd.digest in text
    assert f"numpy {np.__version__}" in text
    assert "Dawid and Skene 1979" in text
    assert "@article{dawid1979maximum" in text
