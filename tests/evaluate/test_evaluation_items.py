from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from wisecrowd.errors import DataWarning, InputError, UsageError
from wisecrowd.evaluate import evaluation_items
from wisecrowd.evaluate.evaluation_items import EvaluationItems

SCORES = pd.DataFrame({
    "task": ["t1", "t1", "t2", "t2", "t3", "t3"], "judge": ["a", "b"] * 3, "score": [0.9, 0.7, 0.1, np.nan, 0.5, 0.4],
})  # fmt: skip
LABELS = pd.DataFrame({"task": ["t1", "t1", "t2"], "rater": ["ann", "bob", "ann"], "label": [1, 0, 0]})


def test_long_tables_are_joined() -> None:
    items = EvaluationItems.from_tables(SCORES, LABELS)
    assert items.task.tolist() == ["t1", "t2", "t3"]
    assert items.label.tolist() == pytest.approx([0.5, 0.0, np.nan], nan_ok=True)
    assert np.isnan(items.scores).tolist() == [[False, False], [False, True], [False, False]]
    assert items.raters.tolist() == ["ann", "bob"]
    assert items.rating_item.tolist() == [0, 0, 1]
    assert items.is_share
    assert items.is_binary


def test_wide_long_and_polars_tables_are_alike() -> None:
    long = EvaluationItems.from_tables(SCORES, LABELS)
    wide = EvaluationItems.from_tables(SCORES.pivot(index="task", columns="judge", values="score"), LABELS)
    polars = EvaluationItems.from_tables(pl.from_pandas(SCORES), pl.from_pandas(LABELS))
    for other in (wide, polars):
        np.testing.assert_array_equal(other.scores, long.scores)
        np.testing.assert_array_equal(other.label, long.label)


def test_repeated_scores_are_averaged() -> None:
    scores = pd.concat([SCORES, SCORES.assign(score=0.0)])
    assert EvaluationItems.from_tables(scores, LABELS).scores[0, 0] == pytest.approx(0.45)


def test_row_order_does_not_matter() -> None:
    shuffled = EvaluationItems.from_tables(SCORES.iloc[::-1], LABELS.iloc[::-1])
    items = EvaluationItems.from_tables(SCORES, LABELS)
    np.testing.assert_array_equal(shuffled.scores, items.scores)
    np.testing.assert_array_equal(shuffled.label, items.label)


def test_numbers_and_texts_are_the_same_ids() -> None:
    scores = {"task": [1, 2, 3], "judge": ["a"] * 3, "score": [0.1, 0.2, 0.3]}
    assert EvaluationItems.from_tables(scores, {"task": ["1", "3"], "label": [1, 0]}).n_labelled == 2
    assert EvaluationItems.from_tables(scores, pd.Series({1.0: 1, 3.0: 0})).n_labelled == 2


def test_words_need_a_positive_class() -> None:
    labels = LABELS.assign(label=["toxic", "fine", "fine"])
    with pytest.raises(InputError, match="positive="):
        EvaluationItems.from_tables(SCORES, labels)
    scores = SCORES.dropna().assign(score="toxic")
    assert EvaluationItems.from_tables(scores, labels, positive="toxic").label[0] == 0.5
    with pytest.raises(InputError, match="no label is 'rude'"):
        EvaluationItems.from_tables(scores, labels, positive="rude")


def test_pass_and_fail_are_numbers() -> None:
    labels = LABELS.assign(label=["Pass", "fail", "no"])
    assert EvaluationItems.from_tables(SCORES, labels).rating.tolist() == [1, 0, 0]


def test_unfilled_labels_are_left_out() -> None:
    labels = pd.DataFrame({"task": ["t1", "t2", "t3"], "label": ["1", "", None]})
    assert EvaluationItems.from_tables(SCORES, labels).n_labelled == 1


def test_design_comes_from_the_table_of_items() -> None:
    design = pd.DataFrame({"task": ["t1", "t2", "t3"], "stratum": ["x", "y", "x"], "inclusion": [0.5, 0.25, 0.5],
                           "cluster": ["p", "p", "q"]})  # fmt: skip
    items = EvaluationItems.from_tables(SCORES, LABELS, items=design)
    assert items.stratum.tolist() == [0, 1, 0]
    assert items.cluster.tolist() == [0, 0, 1]
    assert items.inclusion is not None
    assert items.inclusion.tolist() == [0.5, 0.25, 0.5]


def test_outputs_for_one_task_are_a_cluster() -> None:
    scores = pd.concat([SCORES.assign(system=name) for name in ("old", "new")])
    labels = LABELS.assign(system="new")
    items = EvaluationItems.from_tables(scores, labels)
    assert items.cluster.tolist() == [0, 1, 2, 0, 1, 2]
    chosen = items.select_systems(["old", "new"])
    assert chosen.systems.tolist() == ["old", "new"]
    assert chosen.system[chosen.is_labelled].tolist() == [1, 1]
    assert items.select_systems(["new"]).rating_item.tolist() == [0, 0, 1]
    with pytest.raises(UsageError, match="Did you mean 'old'"):
        items.select_systems(["odl"])


@pytest.mark.parametrize(
    ("scores", "labels", "message"),
    [
        ({"task": ["t1"], "score": [1]}, LABELS, "need a column judge"),
        ({"task": ["t1"], "judge": ["a"]}, LABELS, "need a column score"),
        ({"task": ["t1"], "judge": ["a"], "score": [None]}, LABELS, "no scores of judges"),
        (SCORES, {"task": ["t1"], "text": [1]}, "need a column label"),
        (SCORES, {"task": ["t1"], "label": [""]}, "no labels of people"),
        (SCORES, {"task": ["other"], "label": [1]}, "no labelled item has scores"),
        (SCORES, LABELS.assign(system="new"), "labels name systems and scores do not"),
        (SCORES, LABELS.assign(task=None), "without a task"),
        (SCORES.assign(score="abc"), LABELS, "no number"),
        (pd.DataFrame({"text": ["x"]}, index=["t1"]), LABELS, "one column of numbers for each judge"),
    ],
)
def test_bad_tables_are_refused(scores: Any, labels: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        EvaluationItems.from_tables(scores, labels)


def test_labels_without_systems_are_refused_if_systems_share_tasks() -> None:
    scores = pd.concat([SCORES.assign(system=name) for name in ("old", "new")])
    with pytest.raises(InputError, match="add the column system to the labels"):
        EvaluationItems.from_tables(scores, LABELS)


def test_contradictory_designs_are_refused() -> None:
    with pytest.raises(InputError, match="more than one stratum"):
        EvaluationItems.from_tables(SCORES, LABELS, items={"task": ["t1", "t1"], "stratum": [1, 2]})
    with pytest.raises(InputError, match="without a cluster"):
        EvaluationItems.from_tables(SCORES, LABELS, items={"task": ["t1"], "cluster": [1]})


def test_very_many_judges_are_averaged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation_items, "MAX_JUDGES", 1)
    with pytest.warns(DataWarning, match="too many"):
        items = EvaluationItems.from_tables(SCORES, LABELS)
    assert items.scores[0].tolist() == pytest.approx([0.8])


def test_scores_stay_numbers_if_labels_are_words() -> None:
    scores = pd.DataFrame({"task": ["t1", "t2", "t3"], "judge": "gpt", "score": [7, 2, 9]})
    labels = pd.DataFrame({"task": ["t1", "t2"], "label": ["toxic", "fine"]})
    items = EvaluationItems.from_tables(scores, labels, positive="toxic")
    np.testing.assert_array_equal(np.ravel(items.scores), [7, 2, 9])
    words = scores.assign(score=["toxic", "fine", "fine"])
    np.testing.assert_array_equal(
        np.ravel(EvaluationItems.from_tables(words, labels, positive="toxic").scores), [1, 0, 0]
    )
