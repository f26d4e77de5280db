"""No test sees a screen, leaves a figure behind or changes a setting of matplotlib; and some things to draw."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import pytest

from wisecrowd import diagnose_crowd, simulate_crowd
from wisecrowd.diagnose import Diagnosis
from wisecrowd.simulate import Simulation


@pytest.fixture(autouse=True)
def nothing_changes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    mpl.use("agg")
    from matplotlib import pyplot

    pyplot.close("all")
    monkeypatch.setattr(pyplot, "show", lambda *_, **__: pytest.fail("a plot showed itself"))
    before = dict(mpl.rcParams)
    yield
    pyplot.close("all")
    assert dict(mpl.rcParams) == before, "settings of matplotlib belong to the user"


@dataclass(frozen=True)
class Drawn:
    """Looks into what was drawn."""

    def texts(self, figure: Any) -> list[Any]:
        from matplotlib.text import Text

        figure.canvas.draw()  # a formula that cannot be read fails here
        return [text for text in figure.findobj(Text) if text.get_text() and text.get_visible()]

    def names(self, ax: Any) -> list[str]:
        """Of the legend."""
        return [text.get_text() for text in ax.get_legend().get_texts()]

    def line(self, ax: Any, number: int) -> list[list[float]]:
        line = ax.lines[number]
        return [list(map(float, line.get_xdata())), list(map(float, line.get_ydata()))]


@pytest.fixture(scope="session")
def drawn() -> Drawn:
    return Drawn()


@pytest.fixture(scope="session")
def made() -> Simulation:
    kinds = ["expert"] * 3 + ["noisy(0.7, 0.9)"] * 12 + ["spammer"] * 2 + ["adversary"]
    return simulate_crowd(300, workers=kinds, n_classes=3, votes_per_task=7, random_state=1)


@pytest.fixture(scope="session")
def found(made: Simulation) -> Diagnosis:
    return diagnose_crowd(made.crowd)
