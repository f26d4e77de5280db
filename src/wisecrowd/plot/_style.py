"""Style of the plots: the colours of the report, with markers and dashes for greyscale and colour-blind readers."""

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

#: Options for text from the data, in which a dollar sign does not start a formula.
LITERAL_TEXT: dict[str, Any] = {"parse_math": False, "usetex": False}
#: Largest number of characters of an id or a label on a plot.
MAX_NAME_CHARS = 24
#: Number of points from which vector formats embed an image, because the file would open slowly.
MAX_VECTOR_POINTS = 2000
#: Markers and dashes of the series; combined with five colours they repeat after 35 series.
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", "--", "-.", ":")


@dataclass(frozen=True)
class Theme:
    """Colours by role, with the names of the report's style sheet.

    Attributes
    ----------
    paper, sheet, ink, soft, line, heat, warm, good : str
        Colours.
    max_opacity : float
        Opacity of the fullest cell of a matrix, low enough to keep text legible.
    others : tuple of str
        Colours of further series, chosen for all kinds of colour vision.
    """

    paper: str
    sheet: str
    ink: str
    soft: str
    line: str
    heat: str
    warm: str
    good: str
    max_opacity: float
    others: tuple[str, ...]

    @property
    def cycle(self) -> tuple[str, ...]:
        """Colours of series, in order."""
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
    """Draw plots inside the block with a theme.

    Parameters
    ----------
    theme : {"light", "dark"}, default="light"
        Theme of the plots.

    Examples
    --------
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
    """Return the current theme."""
    return _theme.get()


def require_matplotlib() -> Any:
    """Return matplotlib, or raise an error that names the extra to install."""
    try:
        import matplotlib
    except ImportError as error:
        raise MissingExtra("plot", "plots") from error
    return matplotlib


def rc_settings() -> dict[str, Any]:
    """Return the matplotlib settings of the current theme; the font stays that of the user."""
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
    """Yield the given axes, or those of a new figure, with the style applied.

    The theme follows the background of given axes.

    Parameters
    ----------
    ax : Axes, default=None
        Axes to draw on.
    size : tuple of float, default=(6.0, 4.0)
        Size of a new figure in inches.

    Yields
    ------
    Axes
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
    """Yield a new figure with a grid of panels, with the style applied.

    Parameters
    ----------
    n_rows, n_columns : int
        Shape of the grid.
    size : tuple of float
        Size of the figure in inches.

    Yields
    ------
    figure : Figure
        New figure.
    axes : ndarray of shape (n_rows, n_columns)
        Panels.
    """
    with require_matplotlib().rc_context(rc_settings()), _new_figure(size) as figure:
        yield figure, figure.subplots(n_rows, n_columns, squeeze=False)


@contextlib.contextmanager
def _new_figure(size: tuple[float, float]) -> Iterator[Figure]:
    """Yield a pyplot figure, which notebooks display, and close it if drawing fails."""
    from matplotlib import pyplot

    figure = pyplot.figure(figsize=size, layout="constrained")
    try:
        yield figure
    except BaseException:
        pyplot.close(figure)
        raise


def _choose_theme(ax: Axes) -> str:
    """Return the theme that suits the background of axes."""
    from matplotlib.colors import to_rgba

    figure = ax.get_figure(root=True)
    colour = np.ones(3)  # transparent files are displayed on white
    for layer in (figure.get_facecolor() if figure is not None else "none", ax.get_facecolor()):
        *rgb, alpha = to_rgba(layer)
        colour = alpha * np.array(rgb) + (1 - alpha) * colour
    return "light" if colour @ [0.2126, 0.7152, 0.0722] > 0.4 else "dark"


def check_axes(ax: object) -> None:
    """Raise an error if a value cannot be drawn on.

    Parameters
    ----------
    ax : object
        Axes, or None for a new figure.

    Raises
    ------
    UsageError
    """
    require_matplotlib()
    from matplotlib.axes import Axes

    if ax is not None and not isinstance(ax, Axes):
        raise UsageError(
            f"ax must be a matplotlib Axes such as plt.subplots()[1]; got {type(ax).__name__}. Omit it for a new figure"
        )


# ---------------------------------------------------------------------- text from the data


def format_name(value: object, room: int = MAX_NAME_CHARS) -> str:
    """Return an id, a label or a name in a short, visible form on one line.

    Parameters
    ----------
    value : object
        Value to show.
    room : int, default=24
        Largest number of characters.

    Returns
    -------
    str
    """
    return display_name(value, room)


def set_title(ax: Axes, text: object, room: int = 2 * MAX_NAME_CHARS, **options: Any) -> None:
    """Set a title that may contain text from the data.

    Parameters
    ----------
    ax : Axes
        Axes.
    text : object
        Title.
    room : int, default=48
        Largest number of characters.
    **options
        Options of ``Axes.set_title``.
    """
    ax.set_title(format_name(text, room), **LITERAL_TEXT, **options)


def add_legend(ax: Axes, handles: Sequence[Any], names: Sequence[object], **options: Any) -> None:
    """Add a legend whose names may contain text from the data.

    Parameters
    ----------
    ax : Axes
        Axes.
    handles : sequence of Artist
        Series.
    names : sequence of object
        Name of each series.
    **options
        Options of ``Axes.legend``.
    """
    # matplotlib skips names that begin with an underscore, so the names are set after the legend exists.
    legend = ax.legend(list(handles), [" "] * len(names), **options)
    for text, name in zip(legend.get_texts(), names, strict=True):
        set_literal_text(text, format_name(name, 2 * MAX_NAME_CHARS))


def set_literal_text(text: Text, words: str) -> None:
    """Set a text without interpreting formulas.

    Parameters
    ----------
    text : Text
        Text element of matplotlib.
    words : str
        Characters to show.
    """
    text.set_parse_math(False)
    text.set_usetex(False)
    text.set_text(words)


# ---------------------------------------------------------------------- series and axes


def series_style(number: int) -> dict[str, Any]:
    """Return colour, marker and dashes of a series.

    Parameters
    ----------
    number : int
        Number of the series, from 0.

    Returns
    -------
    dict of str to object
    """
    cycle = get_theme().cycle
    return {
        "color": cycle[number % len(cycle)],
        "marker": MARKERS[number % len(MARKERS)],
        "linestyle": DASHES[number % len(DASHES)],
    }


def format_percent_axis(axis: Any) -> None:
    """Format the ticks of an axis as percentages.

    Parameters
    ----------
    axis : Axis
        Axis of matplotlib.
    """
    from matplotlib.ticker import PercentFormatter

    axis.set_major_formatter(PercentFormatter(1.0, symbol="%"))


def format_counts(axis: Any) -> None:
    """Format the ticks of an axis as integers with thousands separators.

    Parameters
    ----------
    axis : Axis
        Axis of matplotlib.
    """
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    axis.set_major_locator(MaxNLocator(integer=True, nbins="auto", steps=[1, 2, 5, 10]))
    axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def cell_colormap(colour: str) -> Colormap:
    """Return a colormap from the background to a colour that leaves text legible.

    Parameters
    ----------
    colour : str
        Colour of the largest value.

    Returns
    -------
    Colormap
    """
    from matplotlib.colors import LinearSegmentedColormap, to_rgb

    theme = get_theme()
    paper, full = np.array(to_rgb(theme.paper)), np.array(to_rgb(colour))
    return LinearSegmentedColormap.from_list(
        "wisecrowd", np.stack([paper, theme.max_opacity * full + (1 - theme.max_opacity) * paper])
    )


def value_colormap() -> Colormap:
    """Return a colormap for numbers that is ordered for all kinds of colour vision and in greyscale."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    # Its darkest blues are invisible on a dark background.
    begin = 0.25 if get_theme() is THEMES["dark"] else 0.0
    return ListedColormap(colormaps["cividis"](np.linspace(begin, 1, 256)), "wisecrowd-scale")


def draw_diagonal(ax: Axes, low: float, high: float) -> Any:
    """Draw the line of equal x and y.

    Parameters
    ----------
    ax : Axes
        Axes.
    low, high : float
        Ends of the line.

    Returns
    -------
    Line2D
    """
    return ax.plot([low, high], [low, high], color=get_theme().soft, linewidth=1, linestyle=(0, (4, 3)), zorder=1)[0]
