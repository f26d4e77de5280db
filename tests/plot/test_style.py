"""The look: the report's colours, told apart by everybody; the user's settings and ids left alone."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import pyplot
from matplotlib.colors import to_rgb
from numpy.typing import NDArray

import wisecrowd
from wisecrowd import plot
from wisecrowd.errors import MissingExtra, UsageError
from wisecrowd.plot import _style

CSS = (Path(wisecrowd.__file__).parent / "report" / "templates" / "style.css").read_text("utf-8")

#: Every public function with something small to draw.
CURVE = pd.DataFrame({"vote": [0.7, 0.8]}, index=[1, 2])
FILLED = pd.DataFrame(
    {"density": [0.5, 1.0], "before": [0.7, 0.7], "after": [0.8, 0.9]},
    index=pd.MultiIndex.from_product([[0, 5], ["vote"]], names=["min_votes", "aggregator"]),
)
POSTERIOR = np.array([[0.9, 0.1], [0.4, 0.6], [0.3, 0.7], [0.8, 0.2]])
CALLS: dict[str, Callable[..., Any]] = {
    "abilities": lambda **more: plot.abilities(pd.Series({"a": 0.5, "b": 0.7}), {"a": 0.6, "b": 0.8}, **more),
    "agreement": lambda **more: plot.agreement(
        wisecrowd.Crowd.from_triples([(t, w, "xy"[(t + (w == "c")) % 2]) for t in range(4) for w in "abc"]), **more
    ),
    "budget": lambda **more: plot.budget(pd.DataFrame({"votes": [1, 2], "accuracy": [0.5, 0.6]}), **more),
    "calibration": lambda **more: plot.calibration(np.array([0, 1, 1, 1]), POSTERIOR, **more),
    "confusion": lambda **more: plot.confusion(np.eye(2), **more),
    "density": lambda **more: plot.density(FILLED, **more),
    "expertise": lambda **more: plot.expertise(pd.DataFrame({0: [0.8], 1: [0.7]}, index=["a"]), **more),
    "votes_per_worker": lambda **more: plot.votes_per_worker([1, 2, 2, 9], **more),
    "redundancy": lambda **more: plot.redundancy(CURVE, **more),
    "roc": lambda **more: plot.roc(np.array([0, 1, 1, 1]), POSTERIOR, **more),
    "training": lambda **more: plot.training([-3.0, -2.0], **more),
    "worker_map": lambda **more: plot.worker_map(
        pd.DataFrame({"x": [0.0, 1], "y": [1, 0.0]}, index=["a", "b"]), **more
    ),
}


def test_every_function_is_tried() -> None:
    assert sorted([*CALLS, "save", "style"]) == sorted(plot.__all__)


@pytest.mark.parametrize("name", CALLS)
def test_axes_that_are_given_are_drawn_on_and_given_back(name: str) -> None:
    _, ax = pyplot.subplots()
    assert CALLS[name](ax=ax) is ax
    assert len(pyplot.get_fignums()) == 1
    assert ax.has_data()


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.slow
def test_new_axes_have_the_paper_of_the_theme(name: str) -> None:
    for theme, ground in (("light", 1.0), ("dark", 0.1)):
        with plot.style(theme):
            ax = CALLS[name]()
        ax.figure.canvas.draw()
        assert np.mean(ax.figure.get_facecolor()[:3]) == pytest.approx(ground, abs=0.05)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.slow
def test_colours_follow_the_paper_of_given_axes(name: str) -> None:
    """White lines on white axes cannot be seen, whatever theme was asked for."""
    seen = []
    for wanted in ("light", "dark"):
        _, ax = pyplot.subplots()
        with plot.style(wanted):
            CALLS[name](ax=ax)
        seen.append([*[line.get_color() for line in ax.lines], *[c.get_facecolor().tolist() for c in ax.collections]])
    assert seen[0] == seen[1]


@pytest.mark.parametrize("name", CALLS)
def test_what_is_no_axes_is_refused_before_a_figure_exists(name: str) -> None:
    with pytest.raises(UsageError, match=r"a matplotlib Axes.*got ndarray"):
        CALLS[name](ax=np.array([1]))
    assert pyplot.get_fignums() == []


@pytest.mark.parametrize("name", CALLS)
def test_without_matplotlib_the_message_installs_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=re.escape('pip install "wisecrowd[plot]"')):
        CALLS[name]()


@pytest.mark.parametrize("name", CALLS)
def test_settings_of_the_user_do_not_matter(name: str) -> None:
    """A style of the user's, and TeX for all text, which is not installed here."""
    with pyplot.rc_context({"text.usetex": True, "axes.grid": False, "font.size": 7}):
        ax = CALLS[name]()
    ax.figure.canvas.draw()


@pytest.mark.slow
def test_the_package_loads_without_matplotlib() -> None:
    code = "import sys, wisecrowd.plot; print(*(name for name in ('matplotlib', 'sklearn', 'torch') if name in sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_are_those_of_the_report(theme: str) -> None:
    begin = CSS.index(f"color-scheme: {theme};")
    sheet = dict(re.findall(r"--([\w-]+): ([^;]+);", CSS[begin : CSS.index("}", begin)]))
    ours = _style.THEMES[theme]
    assert {name: sheet[name] for name in ("paper", "sheet", "ink", "soft", "line", "heat", "warm")} == {
        name: getattr(ours, name) for name in ("paper", "sheet", "ink", "soft", "line", "heat", "warm")
    }
    assert (sheet["good-paper"], sheet["most"]) == (ours.good, f"{ours.max_opacity:.0%}")


def test_an_unknown_theme_is_refused() -> None:
    with pytest.raises(UsageError, match="'light', 'dark'; got 'drak'"), plot.style("drak"):
        pass


# Machado, Oliveira and Fernandes (2009), for a full deficiency: of no kind, of red, of green, of blue.
VISION = [
    [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
]


def linear(colour: str) -> NDArray[np.float64]:
    rgb = np.array(to_rgb(colour))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(light: NDArray[np.float64]) -> NDArray[np.float64]:
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x = to_xyz @ np.clip(light, 0, 1) / np.array([0.9505, 1, 1.089])
    f = np.where(x > 0.008856, np.cbrt(x), 7.787 * x + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("eyes", VISION, ids=["all", "no red", "no green", "no blue"])
def test_series_are_told_apart_by_any_eyes(theme: str, eyes: list[list[float]]) -> None:
    colours = [lab(np.array(eyes) @ linear(colour)) for colour in _style.THEMES[theme].cycle]
    assert min(np.linalg.norm(a - b) for a, b in combinations(colours, 2)) > 19


def test_series_are_told_apart_on_grey_paper() -> None:
    signs = [(look["color"], look["marker"]) for look in map(_style.series_style, range(20))]
    assert len(set(signs)) == 20
    neighbours = [_style.series_style(number) for number in range(4)]
    assert len({look["marker"] for look in neighbours}) == len({look["linestyle"] for look in neighbours}) == 4


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_figures_in_cells_are_legible(theme: str) -> None:
    with plot.style(theme):
        now = _style.get_theme()
        for colour in (now.heat, now.warm):
            shades = [
                linear(_style.cell_colormap(colour)(share)[:3]) @ [0.2126, 0.7152, 0.0722] for share in (0.0, 0.5, 1.0)
            ]
            ink = linear(now.ink) @ [0.2126, 0.7152, 0.0722]
            assert all((max(ink, shade) + 0.05) / (min(ink, shade) + 0.05) > 4.5 for shade in shades)
            steps = np.diff(shades)
            assert (steps < 0).all() or (steps > 0).all(), "darker must mean more, on grey paper too"


HOSTILE = ["$x$", "$\\frac{", "a$b", "_hidden", "", " ", "x" * 500, "a\nb", "\x00", "%d {x} \\n", "<b>&amp;"]


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_text_of_the_data_is_shown_and_not_obeyed(name: str, drawn: Any) -> None:
    matrix = pd.DataFrame([[0.9, 0.1], [0.2, 0.8]], index=[name, "other"], columns=[name, "other"])
    table = pd.DataFrame({"x": [0.0, 1.0], "y": [0.0, 1.0]}, index=["a", "b"])
    figures = [
        plot.confusion({name: matrix, "second": matrix}),
        plot.votes_per_worker({name: [1, 2, 2]}),
        plot.worker_map(table, by=pd.Series({"a": name, "b": "z"})).figure,
        plot.roc(
            pd.Series({"t": name, "u": "other"}),
            {name: pd.DataFrame({name: [0.9, 0.2], "other": [0.1, 0.8]}, index=["t", "u"])},
            positive=name,
        ).figure,
        plot.budget(
            {name: pd.DataFrame({"votes": [1], "accuracy": [0.5]}), "b": pd.DataFrame({"votes": [1], "accuracy": [1]})}
        ).figure,
        plot.expertise(pd.DataFrame({name: [0.7], "other": [0.8]}, index=[name])).figure,
        plot.redundancy(pd.DataFrame({name: [0.7, 0.8]}, index=[1, 2])).figure,
    ]
    beginning = _style.format_name(name, 12)[:6]
    for figure in figures:
        texts = [text for text in drawn.texts(figure) if beginning in text.get_text()]
        assert texts, "the name is nowhere"
        assert all(not text.get_parse_math() and not text.get_usetex() for text in texts)
        assert all(len(text.get_text()) < 150 for text in texts)


@given(st.text(max_size=40))
def test_names_are_short_and_on_one_line(name: str) -> None:
    shown = _style.format_name(name)
    assert shown.strip()
    assert "\n" not in shown
    assert len(shown) <= 12 * len(name) + 30


def test_half_of_a_plot_is_none() -> None:
    for block in (_style.styled_axes(), _style.styled_grid(2, 2, (3, 3))):
        with pytest.raises(ZeroDivisionError), block:
            1 / 0  # noqa: B018
    assert pyplot.get_fignums() == []
