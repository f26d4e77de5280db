"""Section about provenance: method, parameters, versions, papers and the command that builds the page."""

from __future__ import annotations

from typing import Any

from wisecrowd.base.citations import cite, format_citation, get_entry
from wisecrowd.base.registry import find
from wisecrowd.base.run_record import record_run
from wisecrowd.diagnose import Diagnosis
from wisecrowd.evaluate.model_selection import Comparison
from wisecrowd.utils.text import escape_control_characters, shorten

#: Papers about the fit of votes and features.
WAUM_PAPERS = ("lefort2024identify", "pleiss2020identifying")
#: Maximum length of the value of a parameter.
MAX_VALUE_CHARACTERS = 200


def build_section(diagnosis: Diagnosis, comparison: Comparison | None, command: str | None) -> dict[str, Any]:
    """Build the content of the section.

    Parameters
    ----------
    diagnosis : Diagnosis
        Diagnosis of the crowd.
    comparison : Comparison or None
        Comparison of methods.
    command : str or None
        Command line that builds the page.

    Returns
    -------
    dict
        Variables of the template.
    """
    run = record_run(diagnosis.model, diagnosis.crowd)
    methods = [diagnosis.model.name, "rasch"]
    if comparison is not None:
        methods += [name for name in comparison.table.index if name not in methods]
    papers = [{"method": name, "papers": [format_citation(key) for key in find(name).references]} for name in methods]
    bibtex = [cite(*methods)]
    if "waum" in diagnosis.tasks:
        papers.append({"method": "fit of votes and features", "papers": [format_citation(key) for key in WAUM_PAPERS]})
        bibtex += [get_entry(key) for key in WAUM_PAPERS]
    return {
        "method": run["method"],
        "parameters": [
            {"name": name, "value": shorten(repr(value), MAX_VALUE_CHARACTERS)}
            for name, value in run["parameters"].items()
        ],
        "iterations": run["iterations"],
        "converged": run["converged"],
        "versions": run["versions"],
        "digest": run["input"]["sha256"],
        "finished": run["finished"],
        "command": None if command is None else escape_control_characters(command),
        "papers": [row for row in papers if row["papers"]],
        "bibtex": "\n\n".join(bibtex),
    }
