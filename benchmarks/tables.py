"""Results as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any


def markdown(results: dict[str, Any]) -> str:
    """The whole page."""
    parts = ["# Speed", *(f"- {name}: {value}" for name, value in results["machine"].items()), "", *results["protocol"]]
    for title, rows in results["tables"].items():
        parts += ["", f"## {title}", "", *_table(rows)]
    parts += ["", "## What was wanted", "", *_table(results["targets"])]
    return "\n".join(parts) + "\n"


def _table(rows: Sequence[dict[str, Any]]) -> Iterable[str]:
    columns = list(dict.fromkeys(column for row in rows for column in row))
    yield "| " + " | ".join(columns) + " |"
    yield "|" + " --- |" * len(columns)
    for row in rows:
        yield "| " + " | ".join(_cell(column, row.get(column)) for column in columns) + " |"


def _cell(column: str, value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "**no**"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4f}" if column == "accuracy" else f"{value:.3g}" if value < 100 else f"{value:,.0f}"
    return str(value)
