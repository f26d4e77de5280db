"""A demo with a few methods only."""

from __future__ import annotations

import pytest

from wisecrowd.demo import Demo, run_demo


@pytest.fixture(scope="session")
def demo() -> Demo:
    """With some methods only; tests/cli/test_demo.py runs the whole."""
    return run_demo(only=("dawid-skene", "one-coin", "majority-vote"))
