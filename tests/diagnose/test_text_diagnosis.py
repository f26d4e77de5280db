"""Diagnosis of texts: planted workers are flagged, and error rates are those of the definitions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from wisecrowd import TextCrowd, diagnose_texts, simulate_texts
from wisecrowd.diagnose.text_diagnosis import TextDiagnosis
from wisecrowd.errors import InputError, UsageError


@pytest.fixture(scope="module")
def planted() -> TextDiagnosis:
    """Texts of 14 workers; p0 leaves out every fourth word, p1 repeats words, p2 writes the same, p3 mostly nothing, p4 errs."""
    simulation = simulate_texts(n_tasks=60, n_workers=14, votes_per_task=8, accuracy=0.95, worker_spread=0.1)
    frame = simulation.crowd.to_frame()
    rng = np.random.default_rng(0)

    def change(row: pd.Series) -> str:
        words = row["text"].split()
        changed = {
            "p0": [word for number, word in enumerate(words) if number % 4],
            "p1": [part for number, word in enumerate(words) for part in ([word, "um"] if number % 4 == 0 else [word])],
            "p2": ["always", "the", "same"],
            "p3": words if rng.random() < 0.3 else [],
            "p4": [word if rng.random() < 0.6 else "x" + word for word in words],
        }
        return " ".join(changed.get(row["worker"], words))

    return diagnose_texts(TextCrowd.from_frame(frame.assign(text=frame.apply(change, axis=1))))


def test_planted_workers_are_flagged(planted: TextDiagnosis) -> None:
    flags = planted.workers["flags"]
    assert "omits" in flags["p0"]
    assert "adds" in flags["p1"]
    assert "constant" in flags["p2"]
    assert "empty" in flags["p3"]
    assert "inaccurate" in flags["p4"]
    assert (flags.drop(["p0", "p1", "p2", "p3", "p4"]) == "").all()
    assert "leaves out" in planted.workers["why"]["p0"]
    assert planted.overview["flagged_workers"] == 5


def test_error_rates_by_hand() -> None:
    frame = {"task": ["t"] * 3, "worker": ["ann", "bob", "cy"], "text": ["a b c d", "a b c d", "a x c"]}
    result = diagnose_texts(TextCrowd.from_frame(frame))
    assert result.workers["wer"].tolist() == [0, 0, 0.5]
    assert result.workers.loc["cy", ["replaced", "omitted", "added"]].tolist() == [0.25, 0.25, 0]
    # Edits between ann, bob and cy are 0, 2 and 2; the lengths of the references add up to 8 + 7 + 7.
    assert result.overview["pairwise_wer"] == pytest.approx(2 * 4 / 22, abs=1e-4)
    assert result.overview["identical_pairs"] == pytest.approx(1 / 3, abs=1e-4)
    assert result.workers["agreement"].tolist() == pytest.approx([0.75, 0.75, 0.5])


def test_the_least_certain_tasks_come_first(planted: TextDiagnosis) -> None:
    assert planted.tasks["token_confidence"].is_monotonic_increasing
    assert planted.tasks["disagreement"].between(0, 1).all()
    assert "word error rate" in repr(planted)
    assert "<table" in planted._repr_html_()


def test_a_single_worker_has_no_agreement() -> None:
    result = diagnose_texts(TextCrowd.from_frame({"task": ["t"], "worker": ["ann"], "text": ["a"]}))
    assert result.overview["pairwise_wer"] is None
    assert "undefined" in repr(result)


def test_other_votes_and_methods_are_refused() -> None:
    crowd = TextCrowd.from_frame({"task": ["t"], "worker": ["ann"], "text": ["a"]})
    with pytest.raises(InputError, match="expected a TextCrowd"):
        diagnose_texts([1, 2])  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="model must infer texts"):
        diagnose_texts(crowd, model="dawid-skene")
