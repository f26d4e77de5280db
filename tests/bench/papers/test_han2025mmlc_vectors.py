from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from wisecrowd import simulate_crowd
from wisecrowd.bench.papers._han import SURPRISE, VECTOR_SPREAD
from wisecrowd.bench.papers.han2025mmlc_vectors import HiddenVoteScores, compare_with_one_expert
from wisecrowd.data.vocabulary import as_index
from wisecrowd.io.datasets import Dataset


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    made = simulate_crowd(n_tasks=90, n_workers=8, n_classes=3, votes_per_task=2, random_state=1)
    truth = as_index(made.crowd.classes).get_indexer(pd.Index(made.truth))
    X = 2.5 * np.eye(3)[truth] + np.random.default_rng(0).normal(size=(90, 3))
    features = pd.DataFrame(X, index=made.truth.index)
    return Dataset(name="music_genre", crowd=made.crowd, truth=made.truth, features=features)


def test_settings_are_scored_by_hidden_votes(dataset: Dataset) -> None:
    one = HiddenVoteScores("mmlc", {"n_experts": 1})(dataset, 0)
    assert one[VECTOR_SPREAD] == 0
    assert 0 < one[SURPRISE] < np.log(6)


def test_sizes_of_the_paper_follow_the_dataset(dataset: Dataset) -> None:
    paper = HiddenVoteScores("mmlc", has_paper_sizes=True)
    assert paper(dataset, 0) == HiddenVoteScores("mmlc", {"classifier": "music"})(dataset, 0)
    assert paper.identity() != replace(paper, has_paper_sizes=False).identity()


@pytest.mark.parametrize(
    ("gain", "verdict"), [(0.1, ": the vectors of workers matter."), (0.001, ": no setting shows")]
)
def test_a_gain_below_two_standard_errors_is_no_evidence(gain: float, verdict: str) -> None:
    losses = {"one expert": [1.0, 1.1, 1.2], "ten experts": [1.0 - gain, 1.11 - gain, 1.19 - gain]}
    rows = [
        {"entry": entry, "data": "Text", "seed": seed, "status": "ok", "figures": {SURPRISE: loss}}
        for entry, by_seed in losses.items()
        for seed, loss in enumerate(by_seed)
    ]
    (paragraph,) = compare_with_one_expert(rows)
    assert verdict in paragraph
