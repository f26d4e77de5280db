"""Outcomes of the runner, repeated cases, and files of bad cases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.fuzz import misbehaviour, runner

MODULE = "tests.fuzz.misbehaviour"


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the time that a case waits; the process that hangs does not know the limit."""
    monkeypatch.setattr(runner, "MAX_WALL_SECONDS", 3.0)


@pytest.mark.slow
def test_every_outcome_is_recognised(tmp_path: Path) -> None:
    outcomes = list(runner.run_cases(MODULE, 0, range(7), n_jobs=1, keep=tmp_path))
    assert {outcome.case: outcome.kind for outcome in outcomes} == {
        number: target.name for number, target in enumerate(misbehaviour.TARGETS)
    }
    assert [outcome.is_bad for outcome in outcomes] == [False, False, True, True, True, True, True]
    assert len(list(tmp_path.iterdir())) == 5
    kept = json.loads((tmp_path / "0-2-traceback" / "outcome.json").read_text())
    assert kept["replay"] == f"python -m {MODULE} --seed 0 --case 2"
    assert (tmp_path / "0-2-traceback" / "files" / "number").read_text() in kept["message"]
    assert "_compute" in (tmp_path / "0-6-hang" / "traceback.txt").read_text()
    assert "| all | 7 | 1 | 1 | 1 | 1 | 2 | 1 |" in runner.format_summary(outcomes)


@pytest.mark.slow
def test_a_case_is_the_same_alone_and_in_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (outcome,) = (found for found in runner.run_cases(MODULE, 3, [1, 7], n_jobs=2) if found.case == 1)
    with pytest.raises(SystemExit) as end:
        runner.main(MODULE, ["--seed", "3", "--case", "1", "--keep", str(tmp_path)])
    assert end.value.code == 0
    number = (tmp_path / "number").read_text()
    assert number in outcome.message
    assert number in capsys.readouterr().out


def test_seeds_and_cases_differ() -> None:
    target = misbehaviour.TARGETS[0]
    numbers = [runner.make_rng(target, seed, case).integers(1 << 30) for seed in (0, 1) for case in (0, 7)]
    assert len(set(numbers)) == 4


def test_an_unknown_target_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        runner.main(MODULE, ["--target", "nothing"])
    assert "there is no target ['nothing']" in capsys.readouterr().err
