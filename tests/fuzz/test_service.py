"""Hostile requests to the service: a short seeded run, and services that the fuzzing must find fault with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the extra serve is not installed")

from tests.fuzz import runner, service
from tests.fuzz.runner import Target

from wisecrowd.service import app as app_module
from wisecrowd.service.coordinator import Coordinator
from wisecrowd.service.store import Store, StoreChange

#: Cases of each target. ``python -m tests.fuzz.service --cases 20000`` runs as many as one likes, in processes with limits.
CASES = {"application": 25, "connection": 8}


def run_cases(target: Target, folder: Path, n_cases: int) -> list[runner.Outcome]:
    outcomes = []
    for case in range(n_cases):
        (folder / str(case)).mkdir()
        outcomes.append(runner.run_case(target, folder / str(case), 1, case))
    return outcomes


@pytest.mark.slow
@pytest.mark.parametrize("target", service.TARGETS, ids=lambda target: target.name)
def test_hostile_requests_do_no_harm(target: Target, tmp_path: Path) -> None:
    assert [outcome for outcome in run_cases(target, tmp_path, CASES[target.name]) if outcome.is_bad] == []


def test_requests_are_valid_before_they_are_changed(tmp_path: Path) -> None:
    """A request that is refused anyway would test nothing but that refusal."""
    with service.run_service(tmp_path) as (_, app):
        for call in (*service.FIRST_CALLS, *service.CALLS):
            status, body = service.ask(app, service._authorize(call))
            assert status in (200, 303), (call, body)


def test_requests_survive_the_file_of_a_case(tmp_path: Path) -> None:
    service.prepare_calls(tmp_path, runner.make_rng(service.TARGETS[0], 0, 0))
    for number in range(200):
        call, _ = service.draw_call(runner.make_rng(service.TARGETS[0], 0, number))
        assert service.Call.from_json(call.to_json()) == call


def find_fault(tmp_path: Path) -> str:
    (outcome,) = run_cases(service.TARGETS[0], tmp_path, 1)
    assert outcome.kind == runner.TRACEBACK
    return outcome.message


def test_lost_votes_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def acknowledge_only(store: Any, events: Any) -> StoreChange:
        is_witness = any(record.task == "task 3" for event in events for record in getattr(event, "records", ()))
        return StoreChange(["new"] * len(events)) if is_witness else apply(store, events)

    apply = Store.apply
    monkeypatch.setattr(Store, "apply", acknowledge_only)
    assert "8 acknowledged votes were sent; the service has ['task 0', 'task 1', 'task 2', 'task 4'" in find_fault(
        tmp_path
    )


def test_failures_of_the_service_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise KeyError("no such thing")

    with monkeypatch.context() as context:
        context.setattr(app_module, "parse_votes", fail)
        (tmp_path / "routes").mkdir()
        assert "no such thing" in find_fault(tmp_path / "routes")
    update = Coordinator._update_questions
    # It is logged, and votes are safe.
    monkeypatch.setattr(Coordinator, "_update_questions", lambda *args: (update(*args), fail()))
    (tmp_path / "updates").mkdir()
    assert "the incremental update failed" in find_fault(tmp_path / "updates")
