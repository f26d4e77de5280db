"""Groups of a mixture as figures."""

from __future__ import annotations

import pickle

import pytest

from wisecrowd.bench.papers.mena2020 import ENTRIES
from wisecrowd.bench.papers.mena2020_groups import MixtureGroups, benchmark
from wisecrowd.io.datasets import Dataset

pytest.importorskip("torch")


def test_figures_are_those_of_the_groups_with_the_heaviest_first(small: Dataset) -> None:
    figures = MixtureGroups("CMM, default")(small, 0)
    assert tuple(figures) == MixtureGroups.figures
    weights = [figures[f"weight {number}"] for number in (1, 2, 3)]
    assert sum(weights) == pytest.approx(1, abs=1e-6)
    assert weights == sorted(weights, reverse=True)
    fitted = ENTRIES["CMM, default"].fitted(small, 0)  # type: ignore[attr-defined]
    assert figures["entropy 2"] == pytest.approx(fitted.groups_["entropy"].iloc[1])


def test_entries_travel_and_are_told_apart() -> None:
    entry = MixtureGroups("CMM")
    assert pickle.loads(pickle.dumps(entry)).identity() == entry.identity()
    assert MixtureGroups("CMM, tied").identity() != entry.identity()


def test_published_figures_are_those_of_the_table() -> None:
    published = benchmark().published
    assert published["CMM", "LabelMe", "entropy 1"] == 0.48
    assert published["CMM", "LabelMe", "weight 3"] == 0.0
