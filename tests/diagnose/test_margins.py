"""Areas under the margin: formulas against brute force, planted tasks found, and what it is worth on real ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from wisecrowd import Crowd, DawidSkene, MajorityVote, simulate_crowd
from wisecrowd.diagnose import margins
from wisecrowd.diagnose.margins import (
    Margin,
    MarginTraining,
    areas_under_margin,
    aum,
    logits_by_epoch,
    prune_tasks,
    vote_margins,
    waum,
)
from wisecrowd.diagnose.tasks import TaskDiagnosis
from wisecrowd.errors import WisecrowdError


def roc(wanted: Any, score: Any) -> float:
    """Probability that a wanted task has the lower score."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(wanted, -np.asarray(score)))


def clouds(n_tasks: int = 600, seed: int = 0) -> tuple[np.random.Generator, Any, Any]:
    """Three classes in ten dimensions, far apart."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=n_tasks)
    centres = 3 * np.eye(3, 10)
    return rng, truth, centres[truth] + rng.normal(size=(n_tasks, 10))


def by_task(X: Any, truth: pd.Series) -> pd.DataFrame:
    return pd.DataFrame(X, index=truth.index)


@given(st.integers(0, 10_000), st.sampled_from(["pleiss", "yang"]), st.integers(2, 5), st.integers(1, 4))
def test_areas_are_means_of_margins(seed: int, margin: Margin, n_classes: int, epochs: int) -> None:
    scores = np.random.default_rng(seed).integers(-3, 4, size=(epochs, 4, n_classes)).astype(float)  # with ties
    found, last = areas_under_margin(scores, margin)
    for task in range(4):
        for label in range(n_classes):
            each = []
            for epoch in scores:
                row = epoch[task].tolist()
                others = row[:label] + row[label + 1 :]
                each.append(row[label] - (max(others) if margin == "pleiss" else sorted(row)[-2]))
            assert found[task, label] == pytest.approx(np.mean(each))
    assert np.array_equal(last, scores[-1])


@pytest.mark.parametrize("margin", ["pleiss", "yang"])
def test_waum_and_aum_are_those_of_their_formulas(monkeypatch: pytest.MonkeyPatch, margin: Margin) -> None:
    rng = np.random.default_rng(1)
    votes = [(t, w, int(rng.integers(3))) for t in range(6) for w in range(5) if (t + w) % 3 and t != 4]
    weight = rng.uniform(0.5, 2, size=len(votes))
    crowd = Crowd.from_codes(*np.array(votes).T, tasks=range(6), workers=range(5), classes=range(3), weight=weight)
    model = DawidSkene().fit(crowd)
    logits = rng.normal(size=(7, 5, 3))  # the fifth task has no votes, and is not trained on
    monkeypatch.setattr(margins, "logits_by_epoch", lambda *_: iter(logits))
    place = {task: row for row, task in enumerate([0, 1, 2, 3, 5])}
    shares = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)

    def area(scores: Any, task: int, label: int) -> float:
        rows = scores[:, place[task]]
        against = np.delete(rows, label, axis=1).max(axis=1) if margin == "pleiss" else np.sort(rows, axis=1)[:, -2]
        return float((rows[:, label] - against).mean())

    top, below = np.zeros(6), np.zeros(6)
    rows = vote_margins(crowd, np.zeros((6, 2)), model=model, margin=margin)
    for number, (task, worker, label) in enumerate(zip(crowd.task, crowd.worker, crowd.label, strict=True)):  # type: ignore[arg-type]
        trust = sum(shares[-1, place[task], k] * model.confusion_[worker, k, k] for k in range(3))
        assert rows["trust"].iloc[number] == pytest.approx(trust)
        assert rows["margin"].iloc[number] == pytest.approx(area(shares, task, label))
        top[task] += crowd.weight[number] * trust * area(shares, task, label)
        below[task] += crowd.weight[number] * trust
    with np.errstate(invalid="ignore"):
        assert np.allclose(waum(crowd, np.zeros((6, 2)), model=model, margin=margin), top / below, equal_nan=True)
    answers = {task: task % 3 for task in range(6)}
    found = aum(crowd, np.zeros((6, 2)), answers=answers, margin=margin)
    wanted = [np.nan if task == 4 else area(logits, task, task % 3) for task in range(6)]
    assert np.allclose(found, wanted, equal_nan=True)
    assert found.index.name == "task"


def test_training_on_counts_is_training_on_every_vote() -> None:
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(30, 4)), rng.integers(3, size=(30, 5))
    counts = np.stack([(labels == label).sum(axis=1) for label in range(3)], axis=1).astype(float)
    together = MarginTraining(epochs=20, batch_size=1000, ridge=0.0)
    of_tasks = list(logits_by_epoch(rows, counts, together))
    of_votes = list(logits_by_epoch(np.repeat(rows, 5, axis=0), np.eye(3)[labels.ravel()], together))
    assert np.allclose(of_tasks[-1], of_votes[-1][::5])
    assert np.abs(of_tasks[-1]).max() > 0.1


@pytest.mark.parametrize("hidden", [0, 6])
def test_the_slope_is_that_of_the_loss(hidden: int) -> None:
    rng = np.random.default_rng(3)
    inputs, targets = rng.normal(size=(8, 4)), rng.integers(3, size=(8, 3)).astype(float)
    network = margins._MarginClassifier(4, 3, 8, MarginTraining(hidden=hidden, ridge=2.0), rng)
    parts = [*network.weights, *network.intercepts]
    for part in parts:
        part += rng.normal(size=part.shape)

    def loss() -> float:
        logits = network.forward(inputs)
        log_share = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        return float(-(targets * log_share).sum() + sum((2.0 / 8) / 2 * (part**2).sum() for part in network.weights))

    wanted = []
    for part in parts:
        slope = np.empty_like(part)
        for place in np.ndindex(part.shape):
            here = part[place]
            part[place] = here + 1e-6
            above = loss()
            part[place] = here - 1e-6
            slope[place] = (above - loss()) / 2e-6
            part[place] = here
        wanted.append(slope)
    share = softmax(network.forward(inputs), axis=1)
    network.step(share * targets.sum(axis=1, keepdims=True) - targets)
    for (mean, _), slope in zip(network.moments, wanted, strict=True):
        assert np.allclose(
            mean / (1 - margins.ADAM_BETA1), slope, atol=1e-5
        )  # Adam's first mean is a tenth of the slope


@pytest.mark.slow
def test_tasks_that_all_take_for_something_else_are_found() -> None:
    """Thirty tasks of 600 look like one class, and good workers say another: no vote shows it."""
    rng, truth, X = clouds()
    wrong = rng.permutation(600) < 30
    said = np.where(wrong, (truth + 1) % 3, truth)
    made = simulate_crowd(truth=said, n_classes=3, workers=["expert(0.95)"] * 20, votes_per_task=3, random_state=1)
    features = by_task(X, made.truth)
    labels = DawidSkene().fit(made.crowd).labels_
    assert roc(wrong, aum(made.crowd, features, answers=labels)) > 0.95
    assert roc(wrong, waum(made.crowd, features)) > 0.93
    assert 0.3 < roc(wrong, -TaskDiagnosis(made.crowd).table["entropy"]) < 0.7
    kept = prune_tasks(made.crowd, aum(made.crowd, features, answers=labels), share=0.05)
    gone = kept.votes_per_task == 0
    assert gone.sum() == 30
    assert wrong[gone].mean() > 0.6


@pytest.mark.slow
def test_tasks_between_classes_are_found() -> None:
    """Forty tasks of 600 lie half-way between two classes, and so do the votes on them."""
    rng, truth, X = clouds()
    between = rng.permutation(600) < 40
    other = (truth + 1) % 3
    X[between] = 1.5 * (np.eye(3, 10)[truth] + np.eye(3, 10)[other])[between] + 0.5 * rng.normal(size=(40, 10))
    made = simulate_crowd(truth=truth, n_classes=3, workers=["noisy(0.75)"] * 20, votes_per_task=5, random_state=1)
    votes = made.crowd
    torn = between[votes.task] & (rng.random(votes.n_votes) < 0.5)
    label = np.where(torn, other[votes.task], votes.label)
    names: dict[str, Any] = {"tasks": votes.tasks, "workers": votes.workers, "classes": votes.classes}
    crowd = Crowd.from_codes(votes.task, votes.worker, label, **names)
    found = roc(between, waum(crowd, by_task(X, made.truth)))
    assert found == pytest.approx(0.937, abs=0.02)
    assert roc(between, waum(crowd, by_task(X, made.truth), margin="pleiss")) == pytest.approx(0.877, abs=0.02)
    assert roc(between, -TaskDiagnosis(crowd).table["entropy"]) < 0.7


@pytest.mark.slow
def test_hidden_units_see_what_a_plane_cannot() -> None:
    """Class 1 where the signs of two features agree: no plane parts them."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(600, 2))
    truth = (X[:, 0] * X[:, 1] > 0).astype(int)
    wrong = rng.random(600) < 0.05
    crowd = Crowd.from_codes(
        range(600), np.zeros(600, dtype=int), truth, tasks=range(600), workers=["a"], classes=[0, 1]
    )
    answers = np.where(wrong, 1 - truth, truth)
    plain = roc(wrong, aum(crowd, X, answers=answers))
    deep = roc(wrong, aum(crowd, X, answers=answers, training=MarginTraining(hidden=32, learning_rate=0.01)))
    assert plain < 0.7
    assert deep > 0.9


@pytest.mark.slow
def test_same_seed_same_bits_and_nothing_else_is_touched() -> None:
    _, truth, X = clouds(200)
    made = simulate_crowd(truth=truth, n_classes=3, n_workers=10)
    features = by_task(X, made.truth)
    before = features.copy()
    first, again, other = (waum(made.crowd, features, random_state=seed) for seed in (0, 0, 1))
    assert first.equals(again)
    assert not first.equals(other)
    assert features.equals(before)
    shuffled = features.sample(frac=1, random_state=0)  # features meet tasks by id
    assert first.equals(waum(made.crowd, shuffled))
    doubled = Crowd.from_codes(
        made.crowd.task, made.crowd.worker, made.crowd.label, weight=np.full(made.crowd.n_votes, 2.0),
        tasks=made.crowd.tasks, workers=made.crowd.workers, classes=made.crowd.classes,
    )  # fmt: skip
    assert np.allclose(waum(doubled, features, model=DawidSkene().fit(made.crowd)), first)


def test_prune_leaves_the_lowest_out() -> None:
    made = simulate_crowd(n_tasks=100, n_workers=5, votes_per_task=2)
    scores = pd.Series(np.arange(100.0), index=made.truth.index)
    scores.iloc[50:60] = np.nan  # nothing is known of these
    kept = prune_tasks(made.crowd, scores, share=0.1)
    assert np.flatnonzero(kept.votes_per_task == 0).tolist() == list(range(9))
    assert prune_tasks(made.crowd, scores, share=0.0) == made.crowd
    with pytest.raises(WisecrowdError, match="not in the crowd"):
        prune_tasks(made.crowd, pd.Series({"stranger": 0.0, "other": 1.0}), share=0.5)
    with pytest.raises(WisecrowdError, match="share"):
        prune_tasks(made.crowd, scores, share=1.0)


def test_bad_input() -> None:
    crowd = Crowd.from_triples([(0, "ann", "x"), (0, "bob", "y"), (1, "ann", "y"), (1, "bob", "y")])
    X = np.arange(4.0).reshape(2, 2)
    one_class = Crowd.from_triples([(0, "ann", "x")])
    with pytest.raises(WisecrowdError, match="two or more classes"):
        aum(one_class, X[:1])
    with pytest.raises(WisecrowdError, match="worker ids"):
        waum(crowd.drop_workers(), X)
    with pytest.raises(WisecrowdError, match="margin"):
        waum(crowd, X, margin="widest")  # type: ignore[arg-type]  # on purpose
    with pytest.raises(WisecrowdError, match="row of features"):
        waum(crowd, X[:1])
    with pytest.raises(WisecrowdError, match="MajorityVote"):
        waum(crowd, X, model=MajorityVote().fit(crowd))  # type: ignore[arg-type]  # on purpose
    with pytest.raises(WisecrowdError, match="other workers"):
        waum(crowd, X, model=DawidSkene().fit(Crowd.from_triples([(0, "cy", "x"), (0, "dee", "y")])))
    with pytest.raises(WisecrowdError, match="answers"):
        aum(Crowd.from_triples([(0, "ann", "x"), (0, "bob", "y")], tasks=[0, 1]), X, answers={1: "x"})
    with pytest.raises(WisecrowdError, match="scores is empty"):
        areas_under_margin([])
    with pytest.raises(WisecrowdError, match="shape"):
        areas_under_margin([np.zeros((3, 1))])
    for wrong in ({"epochs": 0}, {"learning_rate": 0.0}, {"hidden": -1}, {"ridge": -1.0}):
        with pytest.raises(WisecrowdError, match="got"):
            MarginTraining(**wrong)  # type: ignore[arg-type]


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "by_aum", "by_waum", "by_entropy", "by_confidence"),
    [
        ("labelme", 0.89, 0.83, 0.69, 0.73),
        ("music_genre", 0.81, 0.77, 0.62, 0.78),
        ("leaves", 0.74, 0.81, 0.85, 0.87),
        ("rte", 0.50, 0.57, 0.74, 0.89),
    ],
)
def test_wrong_labels_of_real_crowds(
    dataset: Callable[[str], Any], name: str, by_aum: float, by_waum: float, by_entropy: float, by_confidence: float
) -> None:
    """The figures that the docstrings tell: areas under the ROC curve for finding wrong labels of Dawid and Skene's model."""
    found = dataset(name)
    crowd = found.crowd
    model = DawidSkene().fit(crowd)
    table = TaskDiagnosis(crowd, model).table
    truth = found.truth.reindex(crowd.tasks)
    wrong = (truth.to_numpy() != model.labels_.to_numpy())[truth.notna().to_numpy()]

    def area(score: Any) -> float:
        return roc(wrong, np.asarray(score)[truth.notna().to_numpy()])

    assert area(aum(crowd, found.features, answers=model.labels_)) == pytest.approx(by_aum, abs=0.01)
    assert area(waum(crowd, found.features, model=model)) == pytest.approx(by_waum, abs=0.01)
    assert area(-table["entropy"]) == pytest.approx(by_entropy, abs=0.01)
    assert area(table["confidence"]) == pytest.approx(by_confidence, abs=0.01)
