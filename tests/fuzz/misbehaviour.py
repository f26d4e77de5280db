"""Targets with every outcome, for the tests of the runner."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np
from tests.fuzz.runner import Target

from wisecrowd.errors import InputError


def _prepare(folder: Path, rng: np.random.Generator) -> str:
    (folder / "number").write_text(str(rng.integers(1 << 30)))
    return "number"


def _refuse(folder: Path) -> None:
    raise InputError(f"{folder.name}: the number is {(folder / 'number').read_text()}; expected another")


def _fail(folder: Path) -> None:
    raise KeyError((folder / "number").read_text())


def _allocate(folder: Path) -> None:  # noqa: ARG001
    np.ones(1 << 40)


def _compute(folder: Path) -> None:  # noqa: ARG001
    while True:
        pass


TARGETS = (
    Target("ok", _prepare, lambda folder: (folder / "number").read_text()),
    Target("refused", _prepare, _refuse),
    Target("traceback", _prepare, _fail),
    Target("memory", _prepare, _allocate),
    Target("signal", _prepare, lambda folder: os.kill(os.getpid(), signal.SIGSEGV)),
    Target("hang", _prepare, lambda folder: time.sleep(1000)),
    Target("hang", _prepare, _compute),
)
