"""Level of intervals."""

from __future__ import annotations

import inspect

import wisecrowd as wc
from wisecrowd.evaluate.confidence import estimate_confidence
from wisecrowd.evaluate.intervals import prevalence_intervals, share_interval, worker_intervals
from wisecrowd.utils.levels import LEVEL, format_level


def test_an_interval_states_its_level() -> None:
    assert format_level() == "90 % interval"
    assert format_level(0.975) == "97.5 % interval"


def test_all_intervals_have_one_level() -> None:
    functions = [
        estimate_confidence,
        worker_intervals,
        prevalence_intervals,
        share_interval,
        wc.diagnose_crowd,
        wc.intraclass_correlation,
    ]
    assert {inspect.signature(function).parameters["level"].default for function in functions} == {LEVEL}
    methods = [wc.GradedResponse, wc.RaterMean, wc.BradleyTerry]
    assert {method().level for method in methods} == {LEVEL}
