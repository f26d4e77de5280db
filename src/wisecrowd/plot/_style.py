"""The look of the plots: the colours of the report, and signs beside colours for grey paper and for the colour-blind."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from wisecrowd.errors import MissingExtra, UsageError, check_choice
from wisecrowd.utils.text import display_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure
    from matplotlib.text import Text

#: For text of the data: a dollar in an id is a dollar, and begins no formula.
LITERAL_TEXT: dict[str, Any] = {"parse_math": False, "usetex": False}
#: Characters of an id or a label on a plot, which has less room than a page.
MAX_NAME_CHARS = 24
#: More points than this go into a PDF or SVG as an image, or the file would be slow to open.
MAX_VECTOR_POINTS = 2000
#: Signs and dashes of the series; with five colours the combination repeats after 35.
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", "--", "-.", ":")


@dataclass(frozen=True)
class Theme:
    """Colours by what they are for, under the names that the report's style sheet gives them."""

    paper: str
    sheet: str
    ink: str
    soft: str
    line: str
    heat: str
    warm: str
    good: str
    max_opacity: float
    """How much of its colour the fullest cell of a matrix gets; the rest is paper, so that figures stay legible on it."""
    others: tuple[str, ...]
    """Further series, chosen to be told apart with any kind of colour vision."""

    @property
    def cycle(self) -> tuple[str, ...]:
        """Colours of series."""
        return (self.heat, self.warm, *self.others)


THEMES = {
    "light": Theme(
        paper="#ffffff", sheet="#f4f7f8", ink="#16222c", soft="#4d5d69", line="#d3dce1", heat="#12808f", warm="#d2511f",
        good="#d9f2ec", max_opacity=0.62, others=("#1b2a49", "#9a4fe8", "#cfa000"),
    ),
    "dark": Theme(
        paper="#10181e", sheet="#18232b", ink="#e6edf1", soft="#a5b4bf", line="#33434e", heat="#35bccd", warm="#ff8a5c",
        good="#123d35", max_opacity=0.45, others=("#f2f4f5", "#9a6bff", "#f0d040"),
    ),
}  # fmt: skip

_theme: ContextVar[Theme] = ContextVar("wisecrowd_plot_theme", default=THEMES["light"])


@contextlib.contextmanager
def style(theme: str = "light") -> Iterator[None]:
    """Inside the block, plots are "light" (as everywhere) or "dark"; outside, and for other plots, nothing changes.

    >>> from wisecrowd import plot, simulate_crowd
    >>> with plot.style("dark"):
    ...     ax = plot.votes_per_worker(simulate_crowd(n_tasks=100).crowd)
    >>> from matplotlib.colors import to_hex
    >>> to_hex(ax.get_facecolor())
    '#10181e'
    """
    check_choice("theme", theme, THEMES)
    token = _theme.set(THEMES[theme])
    try:
        yield
    finally:
        _theme.reset(token)


def get_theme() -> Theme:
    """The colours to draw with."""
    return _theme.get()


def require_matplotlib() -> Any:
    """matplotlib, or the line that installs it."""
    try:
        import matplotlib
    except ImportError as error:
        raise MissingExtra("plot", "plots") from error
    return matplotlib


def rc_settings() -> dict[str, Any]:
    """What a figure of ours is made with; the font stays the user's, who may need one with other letters."""
    theme = get_theme()
    return {
        "figure.facecolor": theme.paper, "axes.facecolor": theme.paper, "axes.edgecolor": theme.soft,
        "text.color": theme.ink, "axes.labelcolor": theme.ink, "axes.titlecolor": theme.ink,
        "xtick.color": theme.soft, "ytick.color": theme.soft, "xtick.labelcolor": theme.ink, "ytick.labelcolor": theme.ink,
        "axes.grid": True, "grid.color": theme.line, "grid.linewidth": 0.6, "axes.axisbelow": True,
        "axes.spines.top": False, "axes.spines.right": False, "axes.titleweight": "bold",
        "axes.titlesize": "medium", "lines.linewidth": 1.7, "lines.markersize": 5.5, "legend.frameon": True,
        "legend.facecolor": theme.paper, "legend.edgecolor": "none", "legend.framealpha": 0.85,
        "figure.constrained_layout.h_pad": 0.08, "figure.constrained_layout.w_pad": 0.08,
        "legend.fontsize": "small", "legend.labelcolor": theme.ink, "patch.edgecolor": theme.paper, "text.usetex": False,
    }  # fmt: skip


@contextlib.contextmanager
def styled_axes(ax: Axes | None = None, size: tuple[float, float] = (6.0, 4.0)) -> Iterator[Axes]:
    """The axes that were given, or those of a new figure; what is drawn inside has our look.

    Whoever gives axes has chosen their paper, and colours follow it.
    """
    check_axes(ax)
    with (
        contextlib.nullcontext() if ax is None else style(_choose_theme(ax)),
        require_matplotlib().rc_context(rc_settings()),
    ):
        if ax is not None:
            yield ax
            return
        with _new_figure(size) as figure:
            yield figure.subplots()


@contextlib.contextmanager
def styled_grid(n_rows: int, n_columns: int, size: tuple[float, float]) -> Iterator[tuple[Figure, Any]]:
    """A new figure with so many panels, (rows, columns); what is drawn inside has our look."""
    with require_matplotlib().rc_context(rc_settings()), _new_figure(size) as figure:
        yield figure, figure.subplots(n_rows, n_columns, squeeze=False)


@contextlib.contextmanager
def _new_figure(size: tuple[float, float]) -> Iterator[Figure]:
    """One of pyplot's, because notebooks show those and no others; half of a plot is none."""
    from matplotlib import pyplot

    figure = pyplot.figure(figsize=size, layout="constrained")
    try:
        yield figure
    except BaseException:
        pyplot.close(figure)
        raise


def _choose_theme(ax: Axes) -> str:
    """Whether axes are light or dark, behind which there may be a figure to be seen through them."""
    from matplotlib.colors import to_rgba

    figure = ax.get_figure(root=True)
    colour = np.ones(3)  # what is saved without a colour is shown on white
    for layer in (figure.get_facecolor() if figure is not None else "none", ax.get_facecolor()):
        *rgb, alpha = to_rgba(layer)
        colour = alpha * np.array(rgb) + (1 - alpha) * colour
    return "light" if colour @ [0.2126, 0.7152, 0.0722] > 0.4 else "dark"


def check_axes(ax: object) -> None:
    """Refuse what cannot be drawn on."""
    require_matplotlib()
    from matplotlib.axes import Axes

    if ax is not None and not isinstance(ax, Axes):
        raise UsageError(
            f"ax must be one Axes of matplotlib, such as plt.subplots()[1]; got {type(ax).__name__}. "
            "Leave it out for a new figure"
        )


# ---------------------------------------------------------------------- text of the data


def format_name(value: object, room: int = MAX_NAME_CHARS) -> str:
    """An id, a label or a name as a plot can show it: short, on one line, without control characters, and never unseen."""
    return display_name(value, room)


def set_title(ax: Axes, text: object, room: int = 2 * MAX_NAME_CHARS, **options: Any) -> None:
    """A title that may hold text of the data."""
    ax.set_title(format_name(text, room), **LITERAL_TEXT, **options)


def add_legend(ax: Axes, handles: Sequence[Any], names: Sequence[object], **options: Any) -> None:
    """A legend of names that may be text of the data."""
    # matplotlib leaves out a name that begins with an underscore, so that names come after the legend is made.
    legend = ax.legend(list(handles), [" "] * len(names), **options)
    for text, name in zip(legend.get_texts(), names, strict=True):
        set_literal_text(text, format_name(name, 2 * MAX_NAME_CHARS))


def set_literal_text(text: Text, words: str) -> None:
    """Let a text show these words, whatever they look like."""
    text.set_parse_math(False)
    text.set_usetex(False)
    text.set_text(words)


# ---------------------------------------------------------------------- series and shares


def series_style(number: int) -> dict[str, Any]:
    """Colour, sign and dashes of a series."""
    cycle = get_theme().cycle
    return {
        "color": cycle[number % len(cycle)],
        "marker": MARKERS[number % len(MARKERS)],
        "linestyle": DASHES[number % len(DASHES)],
    }


def format_percent_axis(axis: Any) -> None:
    """Shares in percent."""
    from matplotlib.ticker import PercentFormatter

    axis.set_major_formatter(PercentFormatter(1.0, symbol="%"))


def format_counts(axis: Any) -> None:
    """Whole numbers, thousands apart."""
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    axis.set_major_locator(MaxNLocator(integer=True, nbins="auto", steps=[1, 2, 5, 10]))
    axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def cell_colormap(colour: str) -> Colormap:
    """From paper to as much of a colour as leaves black figures legible on it."""
    from matplotlib.colors import LinearSegmentedColormap, to_rgb

    theme = get_theme()
    paper, full = np.array(to_rgb(theme.paper)), np.array(to_rgb(colour))
    return LinearSegmentedColormap.from_list(
        "wisecrowd", np.stack([paper, theme.max_opacity * full + (1 - theme.max_opacity) * paper])
    )


def value_colormap() -> Colormap:
    """From little to much, in one order for every kind of colour vision and on grey paper."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    # Its darkest blues cannot be seen on dark paper.
    begin = 0.25 if get_theme() is THEMES["dark"] else 0.0
    return ListedColormap(colormaps["cividis"](np.linspace(begin, 1, 256)), "wisecrowd-scale")


def draw_diagonal(ax: Axes, low: float, high: float) -> Any:
    """The line on which both axes say the same."""
    return ax.plot([low, high], [low, high], color=get_theme().soft, linewidth=1, linestyle=(0, (4, 3)), zorder=1)[0]
