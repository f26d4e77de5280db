"""ROVER: figures on real transcriptions, votes on words, and recovered workers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from wisecrowd import Rover, TextCrowd, compute_error_rates, simulate_texts
from wisecrowd.errors import UsageError


def vote(*texts: str, **options: object) -> str:
    frame = {"task": ["t"] * len(texts), "worker": [f"w{number}" for number in range(len(texts))], "text": list(texts)}
    return str(Rover(**options).fit(frame).texts_["t"])  # type: ignore[arg-type]  # parameters of the test


@pytest.mark.data
@pytest.mark.slow
def test_real_transcriptions_have_fewer_errors_than_published(answer_types_folder: Path) -> None:
    """The published answers of ROVER have word error rates of 0.068 (clean) and 0.132 (other)."""
    folder = answer_types_folder / "crowdspeech_dev"
    truth = pd.read_parquet(folder / "truth.parquet").set_index("task")
    fitted = Rover().fit(pd.read_parquet(folder / "answers.parquet"))
    rates = (
        pd.Series(compute_error_rates(fitted.texts_, truth["text"]))
        .groupby(truth.loc[fitted.texts_.index, "split"].to_numpy())
        .mean()
    )
    assert rates["dev-clean"] <= 0.066
    assert rates["dev-other"] <= 0.122


def test_words_are_voted_on() -> None:
    assert vote("the cat sat") == "the cat sat"
    assert vote("the cat sat", "the cat sat", "a dog sat") == "the cat sat"
    assert vote("a b c", "x b c", "a y c", "a b z", weighted=False) == "a b c"
    assert vote("", "", "noise") == ""
    assert vote("ab", "ab", "ac", unit="characters") == "ab"


def test_accurate_workers_count_more() -> None:
    simulation = simulate_texts(n_tasks=200, votes_per_task=4, accuracy=0.6, worker_spread=2.0, random_state=1)
    weighted, plain = (Rover(weighted=flag).fit(simulation.crowd) for flag in (True, False))
    rates = [compute_error_rates(fitted.texts_, simulation.truth).mean() for fitted in (weighted, plain)]
    assert rates[0] < 0.9 * rates[1]
    assert weighted.workers_["accuracy"].corr(simulation.workers["accuracy"]) > 0.95


def test_tasks_without_texts_have_no_confidence() -> None:
    crowd = TextCrowd.from_frame({"task": ["a"], "worker": ["x"], "text": ["one"]}, tasks=["a", "b"])
    fitted = Rover().fit(crowd)
    assert fitted.texts_.to_dict() == {"a": "one", "b": ""}
    assert fitted.confidence_[1] == 0
    assert np.isfinite(fitted.token_confidence_).all()
    with pytest.raises(UsageError, match="shrinkage must be 0 or more"):
        Rover(shrinkage=-1.0).fit(crowd)
