"""Real data for the tests that need them, and property tests that never depend on luck."""

from __future__ import annotations

import dataclasses
import functools
import os
import shutil
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
import typer.main
import typer.testing
from _pytest.doctest import DoctestModule
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from wisecrowd.data.crowd import Crowd
    from wisecrowd.io.datasets import Dataset
    from wisecrowd.simulate import Simulation

# `--hypothesis-profile search` looks further, with fresh examples each time, when there is time to look.
settings.register_profile(
    "repeatable", deadline=None, derandomize=True, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "fast", deadline=None, derandomize=True, max_examples=10, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("search", deadline=None, max_examples=1000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("repeatable")


def pytest_configure(config: pytest.Config) -> None:
    """Draw fewer examples in the fast tier."""
    if config.getoption("--fast") and not config.getoption("--hypothesis-profile"):
        settings.load_profile("fast")


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for examples in the code only: tests have none, and the search takes seconds."""
    return [collector for collector in (yield) if not isinstance(collector, DoctestModule)]


@pytest.fixture(scope="session", autouse=True)
def commands_are_built_once() -> Iterator[None]:
    """Let typer build the commands of a program once, and not at every call, which takes longer than most commands."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.testing, "_get_command", functools.cache(typer.main.get_command))
        yield


@pytest.fixture(scope="session", autouse=True)
def crowds_are_examined_once() -> Iterator[None]:
    """Remember the costly parts of an assessment: the check of the default method, workers who copy, and groups of workers.

    Hundreds of tests run commands on the same few crowds. The tests of the three functions call them directly.
    """
    from wisecrowd.diagnose import assessment, diagnosis, workers

    results: dict[tuple[object, ...], Any] = {}

    def remember(function: Callable[..., Any], get_key: Callable[..., tuple[object, ...]]) -> Callable[..., Any]:
        def call_once(*arguments: Any) -> Any:
            key = (function, *get_key(*arguments))
            if key not in results:
                results[key] = function(*arguments)
            return results[key]

        return call_once

    def get_key(crowd: Crowd, model: Any) -> tuple[object, ...]:
        assert crowd.workers is not None
        return crowd.digest, tuple(crowd.workers), type(model), repr(model.get_params()), model.posterior_.tobytes()

    with pytest.MonkeyPatch.context() as patch:
        for module, name, key in (
            (assessment, "check_default_method", lambda crowd: (crowd.digest,)),
            (workers, "find_copying_pairs", get_key),
            (diagnosis, "group_workers", lambda diagnosed: get_key(diagnosed.crowd, diagnosed.model)),
        ):
            patch.setattr(module, name, remember(getattr(module, name), key))
        yield


def _folder(variable: str, holds: str) -> Path:
    value = os.environ.get(variable)
    if not value:
        pytest.skip(f"{variable} is not set; point it to {holds} to run this test")
    folders = [Path(part) for part in value.split(os.pathsep) if part]
    found = [folder for folder in folders if folder.is_dir()]
    if not found:
        pytest.fail(f"{variable} is {value!r}, which is no folder; unset it, or point it to {holds}", pytrace=False)
    return found[0].resolve()


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real datasets, one folder each."""
    return _folder("WISECROWD_DATA", "a folder of dataset folders")


@pytest.fixture(scope="session")
def raw_folder() -> Path:
    """The folder of files as their authors published them."""
    return _folder("WISECROWD_RAW", "a folder of published files")


@pytest.fixture(scope="session")
def answer_types_folder() -> Path:
    """The folder of datasets with ratings, comparisons, spans and other answers."""
    return _folder("WISECROWD_ANSWER_TYPES", "a folder of datasets of other answer types")


@pytest.fixture(scope="session")
def dataset(data_folder: Path) -> Callable[[str], Dataset]:
    """Load a real dataset by name, once for all tests that ask for it."""

    @functools.cache
    def load(name: str) -> Dataset:
        import wisecrowd

        if not (data_folder / name).is_dir():
            pytest.skip(f"WISECROWD_DATA has no dataset {name!r}")
        return wisecrowd.load_dataset(data_folder / name)

    return load


@pytest.fixture(scope="session")
def quick() -> Callable[[str], Any]:
    """A learner or completer by name, with settings under which it is quick: small, and in double precision, for the order of sums
    moves single ones.
    """
    from wisecrowd import MMLC
    from wisecrowd.base.completer import Completer
    from wisecrowd.base.registry import find
    from wisecrowd.nn.deep_learner import DeepLearner

    # Laws hold wherever an iteration stops.
    early = {"concord": {"max_iter": 2}, "adaptive-difficulty": {"max_iter": 10}, "cmm": {"tol": 0.5}}
    deep = {"epochs": 8, "batch_size": 16, "hidden": 16, "learning_rate": 0.01, "precision": "double"}

    def made(name: str) -> Any:
        kind: Any = find(name)
        has = {field.name for field in dataclasses.fields(kind)}
        if "learner" in has:  # a completer that has one
            return kind(learner=MMLC(**deep | {"epochs": 5}))
        small = issubclass(kind, DeepLearner | Completer)
        wanted = deep | {"epochs": 5} if issubclass(kind, Completer) else deep  # many laws, each with several fits
        found = kind(**{key: value for key, value in wanted.items() if key in has} if small else {})
        return found.set_params(**early.get(name, {}))

    return made


# ---------------------------------------------------------------------- a small crowd whose tasks have features


def _featured(n_tasks: int = 150, n_features: int = 4, seed: int = 0) -> tuple[Simulation, pd.DataFrame]:
    from wisecrowd import simulate_crowd

    made = simulate_crowd(n_tasks=n_tasks, n_workers=12, n_classes=3, votes_per_task=3, random_state=seed)
    place = made.crowd.classes.get_indexer(made.truth)
    rows = np.random.default_rng(seed).normal(size=(n_tasks, n_features)) + 2 * np.eye(n_features)[place]
    return made, pd.DataFrame(rows, index=made.truth.index)


@pytest.fixture(scope="session")
def featured() -> Callable[..., tuple[Simulation, pd.DataFrame]]:
    """Make a crowd of three classes, and features that tell them apart somewhat."""
    return _featured


@pytest.fixture(scope="session")
def made() -> Simulation:
    """Votes and truth of 150 tasks."""
    return _featured()[0]


@pytest.fixture(scope="session")
def X() -> pd.DataFrame:  # noqa: N802
    """Four features of the same tasks."""
    return _featured()[1]


@pytest.fixture(scope="session")
def seen_by() -> Callable[..., Any]:
    """Tasks and votes as a fitted deep learner sees them in a batch, without dropout."""

    def make_batch(model: Any, X: pd.DataFrame, crowd: Crowd, *, n_tasks: int | None = None, epoch: int = 0) -> Any:
        """All tasks, or the first."""
        import torch

        from wisecrowd.nn.vote_tensors import Batch, VoteTensors

        network = model.network_
        network.module.eval()
        network.module.zero_grad()  # what the last step of the fit left
        inputs = network.to_tensor(network.prepare_inputs(X.to_numpy()[:n_tasks]))
        votes = VoteTensors.from_crowd(crowd, like=inputs).select_tasks(torch.arange(len(inputs)))
        return Batch(network, inputs, *network(inputs), *votes, epoch=epoch)

    return make_batch


@pytest.fixture(scope="session")
def start_of() -> Callable[..., Any]:
    """The untrained network of a deep learner."""
    return lambda model, X, crowd: model.fit(X, crowd)._prepare_job(X.to_numpy(), crowd, None)[1]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium without a window, which keeps a log of every message and every request."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    program = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("there is no chromium with a chromedriver here")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (
        "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-dev-shm-usage",
        "--hide-scrollbars",
    ):  # fmt: skip
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    found = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        yield found
    finally:
        found.quit()
