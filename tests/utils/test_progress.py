"""Progress reports."""

from __future__ import annotations

import pytest

from wisecrowd.utils import progress


def test_reports_go_to_the_innermost_listener() -> None:
    outer: list[object] = []
    inner: list[object] = []
    with progress.listen(lambda *arguments: outer.append(arguments)):
        progress.report("a", 1, 2)
        with progress.listen(lambda *arguments: inner.append(arguments)):
            progress.report("b", 1, 1, "detail")
        progress.report("a", 2, 2)
    progress.report("nobody listens", 1, 1)
    assert outer == [("a", 1, 2, ""), ("a", 2, 2, "")]
    assert inner == [("b", 1, 1, "detail")]


def test_quick_work_draws_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.show(after=60):
        progress.report("quick", 1, 1)
    assert capsys.readouterr().err == ""


def test_only_the_first_of_several_processes_is_the_main_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "here", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    assert progress.read_launcher_rank() == (1, 2)
    assert not progress.is_main_process()
    monkeypatch.delenv("MASTER_PORT")
    assert progress.read_launcher_rank() is None
    assert progress.is_main_process()
