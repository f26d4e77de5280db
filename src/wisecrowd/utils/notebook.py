"""HTML for notebooks: a line of text above the first rows of a table."""

from __future__ import annotations

import html

import pandas as pd

#: Rows of a table that a notebook shows.
MAX_ROWS = 10


def render_html(text: str, table: pd.DataFrame | None = None) -> str:
    """Return a text and the first rows of a table as HTML, with all data escaped.

    Parameters
    ----------
    text : str
        Line above the table.
    table : DataFrame, optional
        Table of which the first rows are shown.

    Returns
    -------
    str

    Examples
    --------
    >>> render_html("<b>", pd.DataFrame({"label": ["<script>"]})).count("<script>")
    0
    """
    heading = f"<p>{html.escape(text)}</p>"
    if table is None:
        return heading
    rows = table.head(MAX_ROWS).to_html(escape=True, border=0)
    rest = len(table) - MAX_ROWS
    return heading + rows + (f"<p>… and {rest:,} more rows</p>" if rest > 0 else "")


def render_frame(page: str, height: int = 700) -> str:
    """Return a complete HTML page as a frame of its own, isolated from the notebook.

    Parameters
    ----------
    page : str
        HTML page.
    height : int, default=700
        Height of the frame in pixels.

    Returns
    -------
    str

    Examples
    --------
    >>> render_frame('<p class="x">').endswith('class=&quot;x&quot;&gt;"></iframe>')
    True
    """
    style = f"width: 100%; height: {height}px; border: 0"
    return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{html.escape(page)}"></iframe>'
