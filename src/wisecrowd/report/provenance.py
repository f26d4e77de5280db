"""How the page was made: method, parameters, versions, papers, and the way to make it again."""

from __future__ import annotations

from typing import Any

from wisecrowd.base.citations import cite, entry, short
from wisecrowd.base.provenance import record
from wisecrowd.base.registry import find
from wisecrowd.diagnose import Diagnosis
from wisecrowd.evaluate.model_selection import Comparison
from wisecrowd.utils.text import escape_control_characters, shorten

#: Papers behind how well votes go with features.
MARGINS = ("lefort2024identify", "pleiss2020identifying")


def section(found: Diagnosis, comparison: Comparison | None, command: str | None) -> dict[str, Any]:
    """All that the template says of itself."""
    run = record(found.model, found.crowd)
    used = [found.model.name, "rasch"]
    if comparison is not None:
        used += [name for name in comparison.table.index if name not in used]
    papers = [{"method": name, "papers": [short(key) for key in find(name).references]} for name in used]
    bibtex = [cite(*used)]
    if "waum" in found.tasks:
        papers.append({"method": "fit of votes and features", "papers": [short(key) for key in MARGINS]})
        bibtex += [entry(key) for key in MARGINS]
    return {
        "method": run["method"],
        "parameters": [{"name": name, "value": shorten(repr(value), 200)} for name, value in run["parameters"].items()],
        "iterations": run["iterations"],
        "converged": run["converged"],
        "versions": run["versions"],
        "digest": run["input"]["sha256"],
        "finished": run["finished"],
        "command": None if command is None else escape_control_characters(command),
        "papers": [paper for paper in papers if paper["papers"]],
        "bibtex": "\n\n".join(bibtex),
    }
