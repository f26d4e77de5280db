"""Crowds for learners, and a check of EM steps."""

from __future__ import annotations

import pytest

from wisecrowd.em import loop
from wisecrowd.simulate import DifficultyCrowd, simulate_gaussian_difficulty, simulate_xu2019


@pytest.fixture
def never_falls(monkeypatch: pytest.MonkeyPatch) -> None:
    """An EM step that lowers its objective is an error."""
    monkeypatch.setattr(loop, "assert_monotone", True)


@pytest.fixture(scope="session")
def published() -> DifficultyCrowd:
    """The Gaussian data of Xu et al. (2019)."""
    return simulate_xu2019()


@pytest.fixture(scope="session")
def small() -> DifficultyCrowd:
    """Few tasks of the same kind, with three labels each."""
    return simulate_gaussian_difficulty(300, 200, votes_per_task=3, random_state=2)
