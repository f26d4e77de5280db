"""Fixtures of every test and every example: no global randomness, nothing written into the working folder."""

from __future__ import annotations

import doctest
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import rich.style  # noqa: F401  # draws from the global generator on import, so it is imported before any test

pytest_plugins = ["pytester"]

# These modules build the site and import mkdocs, which the tests do not need.
collect_ignore_glob = ["docs/*.py"]

# In Markdown the expected output of an example ends at the fence.
_EXAMPLE = doctest.DocTestParser._EXAMPLE_RE  # type: ignore[attr-defined]
doctest.DocTestParser._EXAMPLE_RE = re.compile(  # type: ignore[attr-defined]
    _EXAMPLE.pattern.replace("(?![ ]*>>>)", "(?![ ]*>>>)(?![ ]*```)"), _EXAMPLE.flags
)


#: Folders, below tests and src/wisecrowd, whose tests need torch, and therefore seconds to start.
TORCH_FOLDERS = ("nn", "learn", "complete", "bench/papers")
#: Beginnings of the names of further test files that need torch or Ray.
TORCH_FILES, RAY_FILES = ("test_learner_laws", "test_completer_laws", "test_labelme_learners"), ("test_ray",)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that need torch, Ray or a browser; ``make test-fast`` leaves them out."""
    for item in items:
        path = item.path.as_posix()
        if any(f"/{folder}/" in path for folder in TORCH_FOLDERS) or item.path.name.startswith(TORCH_FILES):
            item.add_marker("torch")
        if item.path.name.startswith(RAY_FILES):
            item.add_marker("ray")
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")


def _random_state() -> tuple[object, ...]:
    name, keys, *rest = np.random.get_state()  # noqa: NPY002
    return random.getstate(), name, np.asarray(keys).tobytes(), *rest


@pytest.fixture(autouse=True)
def untouched_random_state() -> Iterator[None]:
    """Fail a test that draws from, or seeds, the random state that it shares with the caller's program."""
    before = _random_state()
    yield
    if _random_state() != before:
        pytest.fail("the global random state changed; draw from np.random.default_rng(seed) instead", pytrace=False)


@pytest.fixture(autouse=True)
def examples_run_elsewhere(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path | None:
    """Give every example of the documentation an empty working folder, so that it can write the files it shows."""
    if not isinstance(request.node, pytest.DoctestItem):
        return None
    folder = tmp_path_factory.mktemp("example")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture(autouse=True)
def no_figure_stays_open(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Draw without a screen, and close what a test or an example drew."""
    monkeypatch.setenv("MPLBACKEND", "agg")
    yield
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")
