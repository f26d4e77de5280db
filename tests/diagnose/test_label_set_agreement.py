"""Agreement on label sets against nltk and by hand."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import wisecrowd as wc
from wisecrowd import LabelSetCrowd
from wisecrowd.diagnose import label_set_agreement as module
from wisecrowd.diagnose.label_set_agreement import label_alphas, label_set_alpha, worker_set_agreement
from wisecrowd.errors import UsageError

#: Sets of three workers on twelve tasks.
SETS = [
    ("ab", "ab", "a"), ("c", "cd", "d"), ("abc", "abc", "abc"), ("e", "e", "ae"), ("bd", "ac", "bd"), ("a", "a", "a"),
    ("de", "d", "de"), ("bcd", "bc", "cd"), ("e", "b", "e"), ("ad", "ad", "ade"), ("c", "c", "b"), ("abe", "be", "b"),
]  # fmt: skip


def make(rows: list[tuple[Any, Any, Any]]) -> LabelSetCrowd:
    columns = zip(*rows, strict=True)
    return LabelSetCrowd.from_frame(dict(zip(("task", "worker", "labels"), map(list, columns), strict=True)))


@pytest.fixture(scope="module")
def crowd() -> LabelSetCrowd:
    votes = [(f"t{n}", who, list(sets[k])) for n, sets in enumerate(SETS) for k, who in enumerate("xyz")]
    return make([vote for vote in votes if vote[:2] not in {("t0", "x"), ("t3", "z"), ("t5", "y"), ("t5", "z")}])


@pytest.mark.parametrize(
    ("distance", "expected"),
    # nltk 3.10.4: AnnotationTask(data, distance=masi_distance).alpha() and so on, without the task of a single vote.
    [("masi", 0.390628283252784), ("jaccard", 0.433170048985304), ("nominal", 0.2921348314606742)],
)
def test_alpha_equals_nltk(crowd: LabelSetCrowd, distance: Any, expected: float) -> None:
    alpha = label_set_alpha(crowd, distance)
    assert alpha.value == pytest.approx(expected, abs=1e-12)
    assert alpha.n_tasks == 11
    assert wc.krippendorff_alpha(crowd, distance).value == alpha.value


def distance_by_hand(one: frozenset[str], other: frozenset[str], name: str) -> float:
    if one == other:
        return 0.0
    overlap = len(one & other) / len(one | other)
    if name == "masi":
        overlap *= 2 / 3 if one <= other or other <= one else 1 / 3
    return float(one != other) if name == "nominal" else 1 - overlap


@pytest.mark.parametrize("distance", ["masi", "jaccard", "nominal"])
def test_alpha_by_hand_with_empty_sets_and_many_workers(distance: Any) -> None:
    rng = np.random.default_rng(3)
    rows = [
        (task, worker, [label for label in "abcd" if rng.random() < (0.7 if label == "abcd"[task % 4] else 0.2)])
        for task in range(15)
        for worker in range(rng.integers(1, 7))
    ]
    sets = [(task, frozenset(labels)) for task, _, labels in rows]
    size = {task: sum(other == task for other, _ in sets) for task, _ in sets}
    sets = [(task, labels) for task, labels in sets if size[task] > 1]
    n = len(sets)
    observed = sum(
        distance_by_hand(one, other, distance) / (size[task] - 1)
        for (task, one), (same, other) in itertools.permutations(sets, 2)
        if task == same
    )
    expected = sum(distance_by_hand(one, other, distance) for (_, one), (_, other) in itertools.permutations(sets, 2))
    alpha = label_set_alpha(make(rows), distance)
    assert alpha.value == pytest.approx(1 - observed / n / (expected / (n * (n - 1))))


def test_masi_weighs_contained_and_overlapping_sets() -> None:
    same = [("t2", "x", ["q"]), ("t2", "y", ["q"])]
    contained = label_set_alpha(make([("t1", "x", ["a", "b"]), ("t1", "y", ["a", "b", "c", "d"]), *same])).value
    overlapping = label_set_alpha(make([("t1", "x", ["a", "b", "c"]), ("t1", "y", ["b", "c", "d"]), *same])).value
    # Distances 1 - 2/3 · 2/4 and 1 - 1/3 · 2/4; expected: 2 of 12 ordered pairs within t1, 8 at distance 1, 2 at distance 0.
    for value, distance in ((contained, 2 / 3), (overlapping, 5 / 6)):
        assert value == pytest.approx(1 - (2 * distance / 4) / ((2 * distance + 8) / 12))


def test_perfect_and_undefined_agreement() -> None:
    assert label_set_alpha(make([("t1", w, ["a"]) for w in "xy"] + [("t2", w, []) for w in "xy"])).value == 1
    assert np.isnan(label_set_alpha(make([("t1", w, ["a"]) for w in "xy"])).value)
    single = label_set_alpha(make([("t1", "x", ["a"]), ("t2", "y", ["b"])]))
    assert (np.isnan(single.value), single.n_tasks) == (True, 0)


def test_the_sampled_expectation_is_close(monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = wc.simulate_label_sets(n_tasks=200, n_labels=6, random_state=2).crowd
    exact = label_set_alpha(crowd, interval=0.9)
    monkeypatch.setattr(module, "MAX_SETS", 2)
    sampled = label_set_alpha(crowd, interval=0.9)
    for name in ("value", "low", "high"):
        assert getattr(sampled, name) == pytest.approx(getattr(exact, name), abs=0.01)


def test_small_blocks_change_nothing(crowd: LabelSetCrowd, monkeypatch: pytest.MonkeyPatch) -> None:
    alpha, agreement = label_set_alpha(crowd).value, worker_set_agreement(crowd)
    monkeypatch.setattr(module, "MAX_PAIRS", 5)
    assert label_set_alpha(crowd).value == pytest.approx(alpha)
    assert worker_set_agreement(crowd).tolist() == pytest.approx(agreement.tolist())


def test_the_interval_contains_alpha(crowd: LabelSetCrowd) -> None:
    alpha = label_set_alpha(crowd, interval=0.9)
    assert alpha.low is not None
    assert alpha.high is not None
    assert alpha.low < alpha.value < alpha.high
    assert label_set_alpha(crowd, interval=0.9) == alpha


def test_alpha_of_a_label_is_that_of_its_yes_no_question(crowd: LabelSetCrowd) -> None:
    table = label_alphas(crowd)
    frame = crowd.to_frame()
    for label in crowd.labels:
        answers = frame.assign(label=[label in labels for labels in frame["labels"]])[["task", "worker", "label"]]
        expected = wc.krippendorff_alpha(wc.Crowd.from_frame(answers))
        assert table.loc[label, "alpha"] == pytest.approx(expected.value)
    assert table.loc["a", "marked"] == pytest.approx(np.mean(["a" in labels for labels in frame["labels"]]))


def test_agreement_of_a_worker_is_the_mean_similarity_to_others(crowd: LabelSetCrowd) -> None:
    frame = crowd.to_frame()
    by_worker = worker_set_agreement(crowd, "jaccard")
    for worker in crowd.workers:
        values = []
        for row in frame[frame["worker"] == worker].itertuples():
            others = frame[(frame["task"] == row.task) & (frame["worker"] != worker)]["labels"]
            distances = [distance_by_hand(frozenset(row.labels), frozenset(other), "jaccard") for other in others]
            values += [1 - np.mean(distances)] if distances else []
        assert by_worker[worker] == pytest.approx(np.mean(values))


@pytest.mark.parametrize("level", ["ordinal", "interval", "cosine"])
def test_other_levels_are_refused(crowd: LabelSetCrowd, level: Any) -> None:
    with pytest.raises(UsageError, match="masi"):
        wc.krippendorff_alpha(crowd, level)
    with pytest.raises(UsageError, match="interval"):
        label_set_alpha(crowd, interval=2)
