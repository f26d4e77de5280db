from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import wisecrowd as wc
from wisecrowd.io.dataset_folder import write_dataset


@pytest.fixture
def pets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A dataset by the name of pets, and nothing else, wherever the tests run."""
    made = wc.simulate_crowd(100, 10, 3)
    folder = tmp_path / "data" / "pets"
    meta = {"citation": "Somebody (2020) Pets.", "source": [{"repo": "some/pets", "commit": "abc"}], "licence": "CC0"}
    features = pd.DataFrame({"x": 1.0, "y": 2.0}, index=made.truth.index)
    write_dataset(folder, made.crowd, truth=made.truth, features=features, meta=meta)
    monkeypatch.setenv("WISECROWD_DATA", str(folder.parent))
    monkeypatch.setenv("WISECROWD_CACHE", str(tmp_path / "cache"))
    return folder


@pytest.mark.usefixtures("pets")
def test_the_list_has_what_is_here_and_what_is_not(run: Any) -> None:
    result = run("datasets")
    assert result.exit_code == 0, result.stderr
    [row] = [line.split() for line in result.stdout.splitlines() if line.startswith("pets ")]
    assert row == ["pets", "100", "10", "300", "3", "100"]
    assert "wisecrowd datasets fetch labelme" in result.stdout


def test_show(run: Any, pets: Path) -> None:
    result = run("datasets", "show", "pets")
    assert result.exit_code == 0, result.stderr
    for text in ("300 votes: 100 tasks x 10 workers", "2 numbers for each of 100 tasks", "Somebody (2020) Pets.",
                 "some/pets, abc", "CC0", str(pets)):  # fmt: skip
        assert text in result.stdout


@pytest.mark.usefixtures("pets")
def test_a_name_stands_for_votes_and_truth(run: Any) -> None:
    result = run("aggregate", "pets", "--score", "pets", "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["summary"]["score"]["n_tasks"] == 100
    assert run("check", "pets").exit_code == 0


@pytest.mark.usefixtures("pets")
def test_a_dataset_that_is_not_here_yet(run: Any) -> None:
    result = run("aggregate", "labelme")
    assert result.exit_code == 1
    assert "wisecrowd datasets fetch labelme" in result.stderr


@pytest.mark.usefixtures("pets")
def test_unknown_names(run: Any) -> None:
    for command in ("show", "fetch"):
        result = run("datasets", command, "label-me")
        assert result.exit_code == 1
        assert "wisecrowd datasets lists" in result.stderr
        assert "Did you mean 'labelme'?" in result.stderr
        assert "(" not in result.stderr, "that is Python"


def test_fetch(run: Any, pets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check the messages; `tests/io/test_datasets.py` tests the download."""
    import wisecrowd.io.datasets

    def fetch(name: str) -> Any:
        assert name == "labelme"
        return wc.load_dataset(pets)

    monkeypatch.setattr(wisecrowd.io.datasets, "fetch_dataset", fetch)
    result = run("datasets", "fetch", "labelme")
    assert result.exit_code == 0, result.stderr
    assert "truth of 100 tasks" in " ".join(result.stdout.split())
    assert str(pets) in result.stdout
