"""Fixtures and tiers of all tests and examples: no global randomness, nothing written into the working folder."""

from __future__ import annotations

import atexit
import doctest
import gc
import os
import random
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# The processes that share the tests use all cores; further threads of BLAS and torch would only wait for each other.
# numpy and torch, here and in programs that tests start, read these variables when they are imported.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
os.environ["MPLBACKEND"] = "agg"  # draw without a screen

import numpy as np  # noqa: E402
import pytest  # noqa: E402
import rich.style  # noqa: E402, F401  # draws from the global generator on import, so it is imported before any test

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
#: Names of further test files that need torch.
TORCH_FILES = ("test_learner_laws.py", "test_completer_laws.py", "test_labelme_learners.py", "test_lagnn.py")
#: Names of the test files that start a Ray cluster.
RAY_FILES = ("test_ray.py", "test_ray_laws.py")
#: Aggregators that need torch; a test that has one as a parameter is marked.
TORCH_METHODS = {"lagnn"}
#: Marks of the tests that the fast tier leaves out, those of the slowest first.
SLOW_MARKS = ("ray", "torch", "slow", "browser", "data")
#: Modules that no test of the fast tier may import.
HEAVY_MODULES = ("torch", "ray", "selenium.webdriver")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of the fast tier."""
    parser.addoption("--fast", action="store_true", help=f"leave out the tests marked {', '.join(SLOW_MARKS)}")


def pytest_configure(config: pytest.Config) -> None:
    """Select the tests of the fast tier, and let Ctrl-C interrupt this process and its children.

    A shell starts programs in the background with SIGINT ignored, which children inherit.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("--fast"):
        selected = config.option.markexpr
        config.option.markexpr = f"{f'({selected}) and ' if selected else ''}not ({' or '.join(SLOW_MARKS)})"


def _needs_torch(path: Path) -> bool:
    folders = (f"/{folder}/" in path.as_posix() for folder in TORCH_FOLDERS)
    return any(folders) or path.name in TORCH_FILES


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files that the fast tier does not run, because importing them takes seconds."""
    if config.getoption("--fast") and (_needs_torch(collection_path) or collection_path.name in RAY_FILES):
        return True
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that need torch, Ray or a browser; ``make test-fast`` leaves them out."""
    for item in items:
        parameters = (
            item.callspec.params.values() if isinstance(item, pytest.Function) and hasattr(item, "callspec") else ()
        )
        if _needs_torch(item.path) or any(value in TORCH_METHODS for value in parameters if isinstance(value, str)):
            item.add_marker("torch")
        if item.path.name in RAY_FILES:
            item.add_marker("ray")
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")
    if hasattr(config, "workerinput"):  # one of several processes, which share the tests by file
        _sort_files(items)


def _sort_files(items: list[pytest.Item]) -> None:
    """Begin with the files of slow tests, so that no process is left with one of them when the others have finished."""
    ranks: dict[Path, int] = {}
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        rank = next((place for place, mark in enumerate(SLOW_MARKS) if mark in marks), len(SLOW_MARKS))
        ranks[item.path] = min(rank, ranks.get(item.path, rank))
    items.sort(key=lambda item: ranks[item.path])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep the tests of a file in one process, which makes their fixtures once, and all Ray clusters in one process."""
    from xdist.scheduler import LoadScopeScheduling

    class FileScheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            path = nodeid.partition("::")[0]
            return "ray" if Path(path).name in RAY_FILES else path

    config.option.loadscopereorder = False  # the order of `_sort_files`
    return FileScheduling(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection() -> None:
    """Collect no garbage while tests are collected: nearly all objects stay."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Exempt the thousands of collected tests from garbage collection, which otherwise visits them again and again.

    The end of the process collects them; extension modules report leaks otherwise. pytest collects garbage five times before.
    """
    gc.freeze()
    gc.enable()
    atexit.register(gc.unfreeze)


@pytest.fixture(autouse=True)
def fast_tests_import_nothing_heavy(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail the first test of the fast tier that imports torch, Ray or the driver of the browser."""
    absent = [name for name in HEAVY_MODULES if name not in sys.modules]
    yield
    imported = [name for name in absent if name in sys.modules]
    if imported and request.config.getoption("--fast"):
        pytest.fail(f"imports {', '.join(imported)}; mark the test with torch, ray or browser", pytrace=False)


@pytest.fixture(scope="session", autouse=True)
def nothing_waits_for_the_disk() -> Iterator[None]:
    """Leave out ``fsync``, which protects files from a power failure and makes thousands of tests wait."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield


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
def examples_run_elsewhere(request: pytest.FixtureRequest) -> Path | None:
    """Give every example of the documentation an empty working folder, so that it can write the files it shows."""
    if not isinstance(request.node, pytest.DoctestItem):
        return None
    folder: Path = request.getfixturevalue("tmp_path_factory").mktemp("example")
    request.getfixturevalue("monkeypatch").chdir(folder)
    return folder


@pytest.fixture(autouse=True)
def no_figure_stays_open() -> Iterator[None]:
    """Close what a test or an example drew."""
    yield
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")
