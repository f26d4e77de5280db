"""Shared parts of the aggregators of texts: results, persistence, and votes of other types."""

from __future__ import annotations

from pathlib import Path

import pytest

from wisecrowd import Crowd, Rover, TextMedoid, load
from wisecrowd.base.text_aggregator import TextAggregator, as_texts
from wisecrowd.errors import InputError, NoPosterior, UsageError
from wisecrowd.simulate.texts import simulate_texts

CROWD = simulate_texts(n_tasks=30, n_workers=6, random_state=0).crowd


@pytest.mark.parametrize("method", [Rover(), TextMedoid()], ids=str)
def test_tables_match_their_vocabularies(method: TextAggregator, tmp_path: Path) -> None:
    fitted = method.clone_unfitted().fit(CROWD)
    assert fitted.texts_.index.equals(CROWD.tasks.rename("task"))
    assert fitted.labels_.equals(fitted.texts_)
    assert fitted.tasks_[["confidence", "token_confidence"]].to_numpy().max() <= 1 + 1e-9
    assert fitted.workers_["n_votes"].sum() == CROWD.n_votes
    assert "text" in fitted._repr_html_()
    fitted.save(tmp_path / "model")
    assert load(tmp_path / "model").tasks_.equals(fitted.tasks_)  # type: ignore[attr-defined]  # a text aggregator


def test_other_votes_are_refused_with_advice() -> None:
    with pytest.raises(InputError, match="takes texts; got Crowd"):
        Rover().fit(Crowd.from_triples([("t", "ann", "x")]))  # type: ignore[arg-type]  # the mistake
    with pytest.raises(InputError, match="there are no texts"):
        as_texts(CROWD.take([]))
    with pytest.raises(UsageError, match="takes votes only"):
        Rover().fit(CROWD, truth={"t0": "x"})
    with pytest.raises(NoPosterior, match="use texts_, tasks_ and workers_"):
        _ = Rover().fit(CROWD).confusion_
