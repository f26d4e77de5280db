"""Tables of results in Markdown."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]
#: Column headings of the table of targets, by the key in a file of results.
HEADINGS = {"wanted": "target", "found": "measured", "held": "met"}


class Ledger:
    """Collection of the rows of tables and of targets."""

    def __init__(self) -> None:
        self.tables: dict[str, list[Row]] = {}
        self.targets: list[Row] = []

    def note(self, title: str, **row: Any) -> None:
        """Add a row to a table and print it."""
        print(f"{title}: " + ", ".join(f"{key} {value}" for key, value in row.items()), file=sys.stderr)
        self.tables.setdefault(title, []).append(row)

    def want(self, what: str, value: float, at_most: float | None = None, at_least: float | None = None) -> None:
        """Add a target and the measured value."""
        target = f"at most {at_most:g}" if at_most is not None else f"at least {at_least:g}"
        is_met = value <= at_most if at_most is not None else value >= (at_least or 0)
        self.targets.append({"what": what, "wanted": target, "found": value, "held": is_met})

    def report(self, name: str, title: str, machine: dict[str, str], protocol: list[str], folder: Path | None) -> None:
        """Print the page, and write it with its numbers to a folder."""
        results = {"machine": machine, "protocol": protocol, "tables": self.tables, "targets": self.targets}
        page = markdown(title, results)
        print(page)
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{name}.json").write_text(json.dumps(results, indent=2) + "\n")
            (folder / f"{name}.md").write_text(page)


def markdown(title: str, results: dict[str, Any]) -> str:
    """Return the page."""
    parts = [
        f"# {title}",
        *(f"- {name}: {value}" for name, value in results["machine"].items()),
        "",
        *results["protocol"],
    ]
    for heading, rows in results["tables"].items():
        parts += ["", f"## {heading}", "", *_table(rows)]
    targets = [{HEADINGS.get(key, key): value for key, value in row.items()} for row in results["targets"]]
    parts += ["", "## Targets", "", *_table(targets)]
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
