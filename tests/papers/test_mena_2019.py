"""Mena and Ñanculef (CIARP 2019): what the Crowd Mixture Model reaches on LabelMe and on simulated crowds."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd
import pytest

from wisecrowd.bench.papers._mena import (
    G_JS,
    I_JS,
    ITERATIONS,
    TEST,
    TRAIN,
    GaussianGroups,
    LabelMe,
    MenaLearner,
)
from wisecrowd.bench.papers.mena2020 import ENTRIES, published


@pytest.mark.data
def test_labelme_in_both_settings(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setenv("WISECROWD_DATA", os.fspath(data_folder))
    source = {name: LabelMe("labelme", "distinct", setting=name) for name in ("individual", "global")}
    if source["individual"].absence():
        pytest.skip("WISECROWD_DATA has no dataset 'labelme'")
    known, unknown = (each.load(0) for each in source.values())
    found = pd.DataFrame([ENTRIES["CMM"](known, seed) for seed in range(3)])
    for figure in (TEST, TRAIN):
        assert found[figure].mean() >= published()["CMM", "LabelMe", figure]
    for figure, tolerance in {I_JS: 0.01, G_JS: 0.01, ITERATIONS: 1.0}.items():
        assert found[figure].mean() == pytest.approx(published()["CMM", "LabelMe", figure], abs=tolerance)
    assert ENTRIES["CMM"](unknown, 0)[TEST] == pytest.approx(found[TEST][0], abs=0.005)
    for name in ("softMV", "hardMV"):  # as printed
        votes = ENTRIES[name](known, 0)
        assert round(votes[I_JS], 3) == published()[name, "LabelMe", I_JS]
        assert round(votes[G_JS], 3) == published()[name, "LabelMe", G_JS]
    default = ENTRIES["CMM, default"](known, 0)
    assert default[TEST] > 0.82
    assert default[G_JS] == pytest.approx(published()["CMM", "LabelMe", G_JS], abs=0.01)


@pytest.mark.slow
def test_the_mixture_wins_where_workers_are_many_and_loses_nothing() -> None:
    few, many = (GaussianGroups(number).load(0) for number in (100, 10_000))
    mixture, single = MenaLearner("cmm", network=False), ENTRIES["Raykar"]
    at_few, at_many = mixture(few, 0)[TEST], mixture(many, 0)[TEST]
    assert abs(at_few - at_many) < 0.015
    assert min(at_few, at_many) > published()["CMM", "T = 10,000", TEST]
    assert at_many > single(many, 0)[TEST] + 0.05
    assert single(few, 0)[TEST] > 0.92
