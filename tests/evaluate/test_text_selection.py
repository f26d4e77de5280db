"""Comparison of methods for texts by held-out workers."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd import TextCrowd, TextMedoid, compare_methods, simulate_texts
from wisecrowd.errors import InputError, UsageError
from wisecrowd.evaluate.model_selection import Comparison
from wisecrowd.evaluate.text_selection import compare_text_methods


@pytest.fixture(scope="module")
def compared() -> Comparison:
    simulation = simulate_texts(n_tasks=60, n_workers=8, accuracy=0.65, random_state=0)
    return compare_methods(simulation.crowd, truth=simulation.truth)


def test_votes_on_words_predict_better_than_a_single_text(compared: Comparison) -> None:
    assert compared.best.startswith("rover")
    assert not any(name.startswith("text-medoid") for name in compared.tied_methods)
    table = compared.table
    assert table.loc["rover", "heldout_wer"] < table.loc["text-medoid", "heldout_wer"]
    assert table.loc["rover", "wer"] < table.loc["text-medoid", "wer"]
    assert (table["cer"] < table["wer"]).all()


def test_disputed_texts_differ_and_agreement_is_symmetric(compared: Comparison) -> None:
    assert (compared.disputed_tasks.nunique(axis=1) > 1).all()
    agreement = compared.agreement.to_numpy()
    assert np.array_equal(agreement, agreement.T)
    assert np.diag(agreement).tolist() == [1] * 4


def test_equal_texts_are_predicted_with_high_probability() -> None:
    rows = [(f"t{task}", f"w{worker}", f"one two {task}") for task in range(20) for worker in range(3)]
    task, worker, text = zip(*rows, strict=True)
    crowd = TextCrowd.from_frame({"task": task, "worker": worker, "text": text})
    comparison = compare_text_methods(crowd, [TextMedoid()])
    assert comparison.table["log_likelihood"].iloc[0] == pytest.approx(np.log(1 - 1e-3))
    assert comparison.table["heldout_wer"].iloc[0] == 0
    assert (
        comparison.summary
        == "Only text-medoid was compared: its texts differ from 60 held-out texts by 0.000 edits per word."
    )


def test_bad_requests_are_refused() -> None:
    crowd = simulate_texts(n_tasks=10, n_workers=5).crowd
    with pytest.raises(UsageError, match="does not take them"):
        compare_text_methods(crowd, ["dawid-skene"])
    with pytest.raises(UsageError, match="methods is empty"):
        compare_text_methods(crowd, [])
    with pytest.raises(UsageError, match="must be a list"):
        compare_text_methods(crowd, "rover")
    with pytest.raises(UsageError, match="use no X"):
        compare_methods(crowd, X=np.zeros((10, 2)))
    with pytest.raises(UsageError, match="Series or a dict"):
        compare_methods(crowd, truth=["a"])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="none of the tasks with truth"):
        compare_methods(crowd, ["rover"], truth={"z": "a"})
    alone = TextCrowd.from_frame(
        {"task": range(12), "worker": [number % 3 for number in range(12)], "text": ["a"] * 12}
    )
    with pytest.raises(InputError, match="no task has texts of two workers"):
        compare_text_methods(alone)
