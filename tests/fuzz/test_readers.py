"""Samples of the reader fuzzing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.fuzz import readers, runner
from tests.fuzz.runner import Target

from wisecrowd.io.formats import FORMATS

#: Cases of each reader, and their seed.
CASES, SEED = 4, 3


@pytest.mark.parametrize("sample", readers.SAMPLES, ids=lambda sample: sample.name)
@pytest.mark.filterwarnings("ignore::wisecrowd.errors.DataWarning", "ignore::wisecrowd.errors.NotConverged")
def test_samples_are_valid(sample: readers.Sample, tmp_path: Path) -> None:
    """A sample that is refused before it is mutated would test nothing but that refusal."""
    for name, content in sample.files.items():
        file = tmp_path / readers.INPUT / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    (tmp_path / readers.COMMAND).write_text(json.dumps({"path": sample.path, "command": []}))
    sample.run(tmp_path)


def test_every_format_has_a_sample() -> None:
    named = {
        step.keywords["format"] for sample in readers.SAMPLES for step in sample.steps if hasattr(step, "keywords")
    }
    names = {sample.name for sample in readers.SAMPLES}
    assert FORMATS.keys() <= named | names


@pytest.mark.slow
@pytest.mark.parametrize("target", readers.TARGETS, ids=lambda target: target.name)
def test_hostile_files_are_refused_or_read(target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``python -m tests.fuzz.readers --cases 20000`` runs more cases, in processes with limits."""
    for case in range(CASES):
        folder = tmp_path / str(case)
        folder.mkdir()
        monkeypatch.chdir(folder)
        outcome = runner.run_case(target, folder, SEED, case)
        assert not outcome.is_bad, outcome
