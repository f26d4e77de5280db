"""Medoids: the text of a worker as written, nearest to the others."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from wisecrowd import Rover, TextMedoid, compute_error_rates, simulate_texts
from wisecrowd.errors import UsageError, ignore_fit_warnings


def brute_gleu(one: str, other: str) -> float:
    counts = [
        Counter(tuple(words[i : i + n]) for n in range(1, 5) for i in range(len(words) - n + 1))
        for words in (one.split(), other.split())
    ]
    return (counts[0] & counts[1]).total() / max(counts[0].total(), counts[1].total())


def test_the_nearest_text_is_returned_as_written() -> None:
    votes = {"task": ["t"] * 3, "worker": list("abc"), "text": ["Hello, World!", "hello world", "help the word"]}
    fitted = TextMedoid(weighted=False).fit(votes)
    assert fitted.texts_["t"] in ("Hello, World!", "hello world")
    assert fitted.tasks_["confidence"]["t"] == pytest.approx(2 / 3)


def test_reliable_workers_count_more() -> None:
    simulation = simulate_texts(n_tasks=200, votes_per_task=4, accuracy=0.6, worker_spread=2.0, random_state=1)
    weighted, plain = (TextMedoid(weighted=flag).fit(simulation.crowd) for flag in (True, False))
    rates = [compute_error_rates(fitted.texts_, simulation.truth).mean() for fitted in (weighted, plain)]
    assert rates[0] < rates[1]
    assert weighted.workers_["accuracy"].corr(simulation.workers["accuracy"]) > 0.9
    with pytest.raises(UsageError, match="shrinkage"):
        TextMedoid(shrinkage=-1.0).fit(simulation.crowd)


def compute_brute_force(
    frame: pd.DataFrame, vectors: pd.DataFrame, model: str, n_iter: int
) -> tuple[dict[str, str], dict[str, float]]:
    """Return the texts of RASA or HRRASA and their confidence, vector by vector."""
    answers = [(row.task, row.worker, row.text, vectors.loc[row.text].to_numpy()) for row in frame.itertuples()]
    local = [1.0] * len(answers)
    if model == "hrrasa":
        for n, (task, worker, text, vector) in enumerate(answers):
            others = [answer for answer in answers if answer[0] == task and answer[1] != worker]
            norms = [(vector @ vector) * (other[3] @ other[3]) for other in others]
            kernels = [
                np.exp(-((vector - other[3]) @ (vector - other[3])) / norm)
                for other, norm in zip(others, norms, strict=True)
            ]
            local[n] = 0.5 * np.mean(kernels) + 0.5 * np.mean([brute_gleu(text, other[2]) for other in others])
    beta = dict.fromkeys(frame["worker"], 1.0)

    def average(task: str) -> Any:
        rows = [n for n, answer in enumerate(answers) if answer[0] == task]
        weights = [beta[answers[n][1]] * local[n] for n in rows]
        return np.average([answers[n][3] for n in rows], axis=0, weights=weights)

    for _ in range(n_iter):
        mean = {task: average(task) for task in frame["task"].unique()}
        beta = {
            worker: stats.chi2.isf(0.025, sum(answer[1] == worker for answer in answers))
            / sum(
                np.sum((answer[3] - mean[answer[0]]) ** 2) / local[n]
                for n, answer in enumerate(answers)
                if answer[1] == worker
            )
            for worker in beta
        }
    texts, confidence = {}, {}
    for task in frame["task"].unique():
        rows = [n for n, answer in enumerate(answers) if answer[0] == task]
        mean_vector = average(task)
        best = max(rows, key=lambda n: answers[n][3] @ mean_vector / np.linalg.norm(answers[n][3]))
        texts[task] = answers[best][2]
        weights = {n: beta[answers[n][1]] * local[n] for n in rows}
        equal = sum(weights[n] for n in rows if answers[n][2] == texts[task])
        confidence[task] = equal / sum(weights.values())
    return texts, confidence


@pytest.fixture(scope="module")
def encoded_texts() -> tuple[pd.DataFrame, pd.DataFrame]:
    crowd = simulate_texts(n_tasks=12, n_workers=5, votes_per_task=4, accuracy=0.6, random_state=3).crowd
    frame = crowd.to_frame()
    texts = frame["text"].unique()
    vectors = np.random.default_rng(0).standard_normal((len(texts), 6))
    return frame, pd.DataFrame(vectors / np.linalg.norm(vectors, axis=1)[:, None], index=texts)


@pytest.mark.parametrize("model", ["rasa", "hrrasa"])
def test_rasa_and_hrrasa_equal_brute_force(model: Any, encoded_texts: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    frame, vectors = encoded_texts
    for n_iter in (1, 5):
        with ignore_fit_warnings():
            fitted = TextMedoid(model=model, max_iter=n_iter, tol=0.0).fit(frame, vectors)
        texts, confidence = compute_brute_force(frame, vectors, model, n_iter)
        assert fitted.texts_.to_dict() == texts
        assert fitted.tasks_["confidence"].to_dict() == pytest.approx(confidence)
    shuffled = TextMedoid(model=model, max_iter=3, tol=0.0)
    with ignore_fit_warnings():
        one = shuffled.fit(frame, vectors).texts_
        other = shuffled.fit(frame.sample(frac=1, random_state=0), lambda texts: vectors.loc[texts]).texts_
    assert other[one.index].equals(one)


def test_without_weights_the_text_nearest_to_the_mean_is_chosen(
    encoded_texts: tuple[pd.DataFrame, pd.DataFrame],
) -> None:
    frame, vectors = encoded_texts
    fitted = TextMedoid(model="rasa", weighted=False).fit(frame, vectors)
    assert fitted.texts_.to_dict() == compute_brute_force(frame, vectors, "rasa", 0)[0]


def test_medoids_of_vectors_minimise_the_cosine_distance() -> None:
    votes = {"task": ["t"] * 4, "worker": list("abcd"), "text": ["x", "y", "z", "far away"]}
    vectors = pd.DataFrame([[1.0, 0.0], [1.0, 0.2], [1.0, 0.4], [-1.0, 0.0]], index=votes["text"])
    fitted = TextMedoid(weighted=False).fit(votes, vectors)
    # Words of the texts have nothing in common, and "z" is the nearest to the one far away.
    unit = vectors.to_numpy() / np.linalg.norm(vectors, axis=1)[:, None]
    cost = ((1 - unit @ unit.T) / 2).sum(axis=1)
    assert fitted.texts_["t"] == votes["text"][int(np.argmin(cost))]
    assert fitted.tasks_["token_confidence"]["t"] == pytest.approx(1 - cost.min() / 4)


@pytest.mark.parametrize("model", ["medoid", "rasa", "hrrasa"])
def test_texts_chosen_by_vectors_have_fewer_errors_than_those_of_workers(model: Any) -> None:
    simulation = simulate_texts(n_tasks=150, votes_per_task=4, accuracy=0.6, worker_spread=2.0, random_state=1)
    words = sorted({word for text in simulation.crowd.text for word in text.split()})

    def encode(texts: list[str]) -> Any:
        counts = np.array([[text.split().count(word) for word in words] for text in texts], dtype=float)
        return counts / np.maximum(np.linalg.norm(counts, axis=1), 1e-9)[:, None]

    with ignore_fit_warnings():
        fitted = TextMedoid(model=model).fit(simulation.crowd, encode)
    frame = simulation.crowd.to_frame()
    answers = pd.Series(frame["text"].to_numpy(), index=frame["task"]).groupby(level=0).first()
    one_worker = compute_error_rates(answers, simulation.truth).mean()
    assert compute_error_rates(fitted.texts_, simulation.truth).mean() < 0.6 * one_worker
    assert fitted.workers_["accuracy"].corr(simulation.workers["accuracy"]) > 0.9


def test_models_of_vectors_handle_few_votes() -> None:
    votes = {"task": ["t", "t", "u"], "worker": ["a", "b", "c"], "text": ["x", "x", "y"]}
    for model in ("rasa", "hrrasa"):
        fitted = TextMedoid(model=model).fit(votes, lambda texts: np.eye(2)[: len(texts)])  # type: ignore[arg-type]
        assert fitted.texts_.to_dict() == {"t": "x", "u": "y"}
        assert fitted.confidence_.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "rasa"}, "needs vectors"),
        ({"model": "mean"}, "model"),
        ({"quantile": 1.0}, "quantile"),
        ({"embedding_share": 1.5}, "embedding_share"),
    ],
)
def test_wrong_settings_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        TextMedoid(**options).fit({"task": ["t"], "worker": ["a"], "text": ["x"]})


def test_methods_without_vectors_refuse_them() -> None:
    votes = {"task": ["t"], "worker": ["a"], "text": ["x"]}
    with pytest.raises(UsageError, match="takes votes only; leave X"):
        Rover().fit(votes, lambda texts: np.ones((len(texts), 2)))
