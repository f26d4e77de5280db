"""Reproducible picture files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from wisecrowd.errors import UsageError, preview
from wisecrowd.plot import _style
from wisecrowd.utils.files import atomic_path

#: Metadata of matplotlib that would make files differ from run to run.
_METADATA: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "ps": {}, "eps": {}}


def save(plot: Any, path: str | os.PathLike[str], *, dpi: float = 200) -> Path:
    """Write a plot to a file, atomically.

    The same plot gives the same bytes, so a picture in a repository changes only if it looks different. Text in an SVG stays text.

    Parameters
    ----------
    plot : Axes or Figure
        Result of a plot function.
    path : str or PathLike
        Path of the file. Its suffix selects the format: .pdf, .svg, .png and others.
    dpi : float, default=200
        Resolution of pixel formats.

    Returns
    -------
    Path

    Examples
    --------
    >>> from wisecrowd import plot, simulate_crowd
    >>> ax = plot.votes_per_worker(simulate_crowd(n_tasks=100).crowd)
    >>> "votes per worker" in plot.save(ax, "votes.svg").read_text()
    True
    """
    matplotlib = _style.require_matplotlib()
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    figure = plot.get_figure(root=True) if isinstance(plot, Axes) else plot
    if not isinstance(figure, Figure):
        raise UsageError(f"plot must be Axes or a Figure; got {type(plot).__name__}")
    target, formats = Path(path), figure.canvas.get_supported_filetypes()
    file_type = target.suffix.lower().lstrip(".")
    if file_type not in formats:
        raise UsageError(f"path must end in one of {preview(sorted(formats), 20)}; got {target.name!r}")
    fixed = {"svg.hashsalt": "wisecrowd", "svg.fonttype": "none", "pdf.fonttype": 42}
    with matplotlib.rc_context(fixed), atomic_path(target) as partial:
        figure.savefig(partial, format=file_type, dpi=dpi, metadata=_METADATA.get(file_type))
    return target
