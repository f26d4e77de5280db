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


class TestLines:
    def test_a_line_states_share_time_and_estimate(self, monkeypatch: pytest.MonkeyPatch) -> None:
        now = [0.0]
        monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
        lines: list[str] = []
        with progress.write_lines(lines.append, after=10, every=30):
            for seconds, step in ((0, 0), (5, 10), (20, 20), (30, 30), (60, 50), (300, 60)):
                now[0] = seconds
                progress.report("building", step, 100, "workers")
        assert lines == [
            "building: 20 % after 20 s, about 80 s left (workers)",
            "building: 50 % after 60 s, about 60 s left (workers)",
            "building: 60 % after 5 min, about 3 min left (workers)",
        ]

    def test_parts_stand_behind_the_whole(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The iterations of a part may converge at any step, so only the whole has an estimate."""
        now = [0.0]
        monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
        lines: list[str] = []
        with progress.write_lines(lines.append, after=10, every=30):
            progress.report("building", 0, 100, "labels")
            now[0] = 20
            progress.report("DawidSkene", 3, 500)
            now[0] = 60
            progress.report("building", 40, 100, "workers")
            now[0] = 100
            progress.report("DawidSkene", 7, 500)
        assert lines == [
            "building: 0 % after 20 s (labels: DawidSkene 3/500)",
            "building: 40 % after 60 s, about 90 s left (workers)",
            "building: 40 % after 100 s, about 2 min left (workers: DawidSkene 7/500)",
        ]

    @pytest.mark.parametrize("total", [50, progress.PERCENT])
    def test_iterations_have_a_count_because_they_may_end_at_any_step(self, total: int) -> None:
        lines: list[str] = []
        with progress.write_lines(lines.append, after=0, every=0):
            progress.report("Concord", 1, total)
            progress.report("Concord", total // 2, total, "change 0.1")
        assert lines == [
            f"Concord: step 1 of at most {total} after 0 s",
            f"Concord: step {total // 2} of at most {total} after 0 s (change 0.1)",
        ]

    def test_quick_computations_write_nothing(self) -> None:
        lines: list[str] = []
        with progress.write_lines(lines.append):
            progress.report("building", 1, 2)
        assert lines == []
