"""Pictures as files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from wisecrowd.errors import UsageError, preview
from wisecrowd.plot import _style
from wisecrowd.utils.files import atomic_path

#: What matplotlib would write into a file that changes from run to run.
_METADATA: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "ps": {}, "eps": {}}


def save(plot: Any, path: str | os.PathLike[str], *, dpi: float = 200) -> Path:
    """Write a plot to a file, whole or not at all; how it ends says what it becomes: .pdf, .svg, .png and what else there is.

    The same plot gives the same bytes, so that a picture in a repository changes only when it looks different. Text in an SVG
    stays text, which can be searched and read aloud. ``dpi`` is for formats of pixels.

    >>> from wisecrowd import plot, simulate_crowd
    >>> ax = plot.votes_per_worker(simulate_crowd(n_tasks=100).crowd)
    >>> "labels of a worker" in plot.save(ax, "labels.svg").read_text()
    True
    """
    matplotlib = _style.require_matplotlib()
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    figure = plot.get_figure(root=True) if isinstance(plot, Axes) else plot
    if not isinstance(figure, Figure):
        raise UsageError(f"what a plot gives back was wanted, Axes or a Figure; got {type(plot).__name__}")
    target, formats = Path(path), figure.canvas.get_supported_filetypes()
    file_type = target.suffix.lower().lstrip(".")
    if file_type not in formats:
        raise UsageError(f"a picture ends in one of {preview(sorted(formats), 20)}; got {target.name!r}")
    fixed = {"svg.hashsalt": "wisecrowd", "svg.fonttype": "none", "pdf.fonttype": 42}
    with matplotlib.rc_context(fixed), atomic_path(target) as partial:
        figure.savefig(partial, format=file_type, dpi=dpi, metadata=_METADATA.get(file_type))
    return target
