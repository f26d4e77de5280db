"""Shared parts of the aggregators of marks: results, persistence, and votes of other types."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from wisecrowd import BoxConsensus, BoxCrowd, Crowd, PointConsensus, SpanConsensus, load
from wisecrowd.base.mark_aggregator import MIN_RELIABLE_CANDIDATES, MarkAggregator
from wisecrowd.errors import InputError, NoPosterior, UsageError
from wisecrowd.simulate.marks import simulate_boxes, simulate_points, simulate_spans

CROWDS = {
    "boxes": simulate_boxes(n_tasks=40, n_workers=6, n_classes=2, random_state=0).crowd,
    "points": simulate_points(n_tasks=40, n_workers=6, random_state=0).crowd,
    "spans": simulate_spans(n_tasks=40, n_workers=6, random_state=0).crowd,
}
METHODS = [BoxConsensus(), BoxConsensus(model="majority"), PointConsensus(), SpanConsensus(threshold="half")]


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_tables_match_their_vocabularies(method: MarkAggregator, tmp_path: Path) -> None:
    crowd = CROWDS[method.answer_types[0]]
    fitted = method.clone_unfitted().fit(crowd)
    candidates = fitted.candidates_
    assert candidates["n_marks"].sum() == crowd.n_marks
    assert candidates["confidence"].between(0, 1 + 1e-12).all()
    assert len(fitted.objects_) == candidates["chosen"].sum() == fitted.tasks_["n_objects"].sum()
    assert (candidates["n_marks"] <= candidates["n_votes"]).all()
    assert fitted.tasks_["expected_f1"].between(0, 1 + 1e-12).all()
    assert fitted.workers_["n_votes"].sum() == crowd.n_votes
    assert ("accuracy" in fitted.workers_) == (crowd.n_classes > 1)
    assert ("size_ratio" in fitted.workers_) == crowd.has_size
    fitted.save(tmp_path / "model")
    assert load(tmp_path / "model").candidates_.equals(candidates)  # type: ignore[attr-defined]  # a mark aggregator
    assert "BoxConsensus" in method._repr_html_() or method.answer_types != ("boxes",)


def test_half_is_the_threshold_of_half() -> None:
    assert SpanConsensus(threshold="half").fit(CROWDS["spans"]).threshold_ == 0.5


def test_there_is_no_posterior_over_classes() -> None:
    fitted = BoxConsensus().fit(CROWDS["boxes"])
    assert not hasattr(fitted, "posterior_")
    with pytest.raises(NoPosterior, match="use objects_, candidates_ and tasks_"):
        _ = fitted.confusion_


def test_tables_are_converted() -> None:
    crowd = BoxCrowd.from_frame(CROWDS["boxes"].to_frame())
    assert BoxConsensus().fit(crowd.to_frame()).candidates_.equals(BoxConsensus().fit(crowd).candidates_)


def test_other_votes_are_refused_with_advice() -> None:
    with pytest.raises(InputError, match="takes boxes; got Crowd"):
        BoxConsensus().fit(Crowd.from_triples([("t", "ann", "x")]))  # type: ignore[arg-type]  # the mistake
    with pytest.raises(InputError, match="takes boxes; got PointCrowd"):
        BoxConsensus().fit(CROWDS["points"])
    empty = BoxCrowd.from_frame(
        {"task": ["t"], "worker": ["ann"], "x": [None], "y": [None], "width": [None], "height": [None]}
    )
    with pytest.raises(InputError, match="there are no boxes"):
        BoxConsensus().fit(empty)
    with pytest.raises(UsageError, match="takes votes only"):
        BoxConsensus().fit(CROWDS["boxes"], truth={"t0": 1})


def test_not_fitted_is_said() -> None:
    with pytest.raises(UsageError, match="not fitted yet"):
        _ = BoxConsensus().objects_
    assert np.isfinite(BoxConsensus().fit(CROWDS["boxes"]).trace_).all()


def test_confidences_on_few_objects_have_a_warning() -> None:
    rows = [(task, worker, 0, 2) for task in ("s", "t") for worker in "abcd"]
    rows += [(task, worker, 5, 8) for task in ("s", "t") for worker in "ab"]
    frame = pd.DataFrame(rows, columns=["task", "worker", "start", "end"])
    few = SpanConsensus().fit(frame)
    assert few.candidates_.query("n_marks == 2")["confidence"].min() > 0.99, (
        "nothing shows what a false object looks like"
    )
    (warning,) = few.warnings_
    assert "only 4 candidate objects on 2 tasks" in warning
    assert "Confidences are not reliable" in warning
    assert not SpanConsensus(model="majority").fit(frame).warnings_, "a share of workers is no estimate"
    enough = SpanConsensus().fit(simulate_spans(n_tasks=MIN_RELIABLE_CANDIDATES // 3, random_state=0).crowd)
    assert len(enough.candidates_) >= MIN_RELIABLE_CANDIDATES
    assert enough.warnings_ == ()
