"""The wheel: built from the sources, it contains everything that a command needs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder into which the wheel is installed, without the sources of this repository."""
    pytest.importorskip("setuptools", minversion="77", reason="setuptools 77 or newer is not installed")
    folder = tmp_path_factory.mktemp("wheel")
    sources = shutil.copytree(
        ROOT,
        folder / "sources",
        ignore=shutil.ignore_patterns(".*", "benchmarks", "tests", "*.egg-info", "site", "build"),
    )
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    subprocess.run([*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", folder, sources], check=True)
    [wheel] = folder.glob("wisecrowd-*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--target", folder / "installed", wheel], check=True)
    return folder / "installed"


def run(installed: Path, folder: Path, *words: str) -> str:
    """Run the installed command line in an empty folder, and return what it prints."""
    code = "import sys, wisecrowd; from wisecrowd.cli import main; assert wisecrowd.__file__.startswith(sys.argv.pop(1)); main()"
    environment = os.environ | {"PYTHONPATH": str(installed)}
    command = [sys.executable, "-c", code, str(installed), *words]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_wheel_works_without_the_sources(installed: Path, tmp_path: Path) -> None:
    run(installed, tmp_path, "simulate", "-o", "votes.csv", "--tasks", "60", "--workers", "8")
    assert "model-average" in run(installed, tmp_path, "aggregate", "votes.csv", "-o", "results")
    assert "@article" in run(installed, tmp_path, "cite", "dawid-skene")  # the bibliography is in the wheel
    run(installed, tmp_path, "report", "votes.csv", "--no-compare")  # and so are the templates
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert (installed / "wisecrowd" / "py.typed").exists()
