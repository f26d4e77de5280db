"""Ids and labels that try something, in what a run leaves behind: fitted methods, and the record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import wisecrowd as wc
from wisecrowd.base.run_record import record_run
from wisecrowd.errors import InputError
from wisecrowd.utils.files import read_json, write_json

GROUPS = json.loads((Path(__file__).parents[1] / "hostile.json").read_text(encoding="utf-8"))
HOSTILE = [*(text for texts in GROUPS.values() for text in texts), "x" * 10_000]
CLASSES = sorted(HOSTILE[::8])


@pytest.fixture(scope="module")
def crowd() -> wc.Crowd:
    rng, n = np.random.default_rng(0), len(HOSTILE)
    rows = [
        (task, HOSTILE[(7 * i + 11 * j) % n], CLASSES[(i + (rng.random() < 0.3)) % len(CLASSES)])
        for i, task in enumerate(HOSTILE)
        for j in range(4)
    ]
    return wc.Crowd.from_triples(rows, classes=CLASSES)


def test_the_crowd_is_as_hostile_as_it_should_be(crowd: wc.Crowd) -> None:
    assert set(crowd.tasks) == set(crowd.workers) == set(HOSTILE)
    assert crowd.classes.tolist() == CLASSES


@pytest.mark.parametrize("method", [wc.MajorityVote(), wc.DawidSkene(max_iter=5), wc.GLAD(max_iter=5), wc.Rasch()])
@pytest.mark.filterwarnings("ignore::wisecrowd.errors.NotConverged")
def test_fitted_aggregators_are_read_back(crowd: wc.Crowd, method: Any, tmp_path: Path) -> None:
    fitted = method.fit(crowd)
    fitted.save(tmp_path / "model")
    loaded: Any = wc.load(tmp_path / "model")
    pd.testing.assert_series_equal(loaded.labels_, fitted.labels_)
    pd.testing.assert_frame_equal(loaded.proba_, fitted.proba_)
    pd.testing.assert_frame_equal(loaded.workers_, fitted.workers_)
    assert loaded.labels_.index.tolist() == sorted(HOSTILE)


@pytest.mark.filterwarnings("ignore::wisecrowd.errors.NotConverged")
def test_fitted_learners_and_completers_are_read_back(crowd: wc.Crowd, tmp_path: Path) -> None:
    X = pd.DataFrame(np.random.default_rng(1).normal(size=(len(HOSTILE), 3)), index=HOSTILE, columns=HOSTILE[:3])
    learner = wc.Raykar(max_iter=3).fit(X, crowd)
    learner.save(tmp_path / "learner")
    assert wc.load(tmp_path / "learner").predict(X).tolist() == learner.predict(X).tolist()
    completer = wc.DSFill().fit(crowd)
    completer.save(tmp_path / "completer")
    again: Any = wc.load(tmp_path / "completer")
    assert list(again.stream()) == list(completer.stream())


def test_the_record_names_every_class(crowd: wc.Crowd, tmp_path: Path) -> None:
    fitted = wc.MajorityVote().fit(crowd)
    told = record_run(fitted, crowd, source="\udcff.csv", command={"title": HOSTILE})
    write_json(tmp_path / "run.json", told)
    assert read_json(tmp_path / "run.json") == told
    assert told["input"]["classes"] == CLASSES
    (tmp_path / "run.json").read_text(encoding="utf-8")  # half a character is spelled out


@pytest.mark.parametrize("name", ["../../x", "fit", "__class__", "a b_", "", "."])
@pytest.mark.parametrize("part", ["tables", "values", "methods", "parts"])
def test_a_model_from_a_stranger_reaches_nothing_else(tmp_path: Path, part: str, name: str) -> None:
    folder = tmp_path / "model"
    wc.MajorityVote().fit(wc.Crowd.from_triples([("t", "ann", "cat")])).save(folder)
    state = read_json(folder / "method.json")
    if isinstance(state[part], dict):
        state[part][name] = "Index"
    else:
        state[part].append(name)
    write_json(folder / "method.json", state)
    with pytest.raises(InputError, match="is not the name of a fitted attribute"):
        wc.load(folder)


@pytest.mark.parametrize(
    "text", ["{", "[]", "null", '{"version": 2}', '{"version": 2, "method": 7, "parameters": {}}', "\0"]
)
def test_a_broken_model_is_refused_in_words(tmp_path: Path, text: str) -> None:
    folder = tmp_path / "model"
    wc.MajorityVote().fit(wc.Crowd.from_triples([("t", "ann", "cat")])).save(folder)
    (folder / "method.json").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"method\.json is damaged|layout"):
        wc.load(folder)
