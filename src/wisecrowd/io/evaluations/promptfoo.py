"""Results of promptfoo (``promptfoo eval -o results.json``)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from wisecrowd.errors import InputError
from wisecrowd.io.tables.json_text import read_json_file
from wisecrowd.io.tools.export_files import get_objects, get_part, peek_object
from wisecrowd.utils.text import count_noun


def detect(path: Path) -> bool:
    """Return whether a file has results of promptfoo.

    Parameters
    ----------
    path : Path
        File.

    Returns
    -------
    bool
    """
    return {"evalId", "results"} <= set(peek_object(path))


def read(path: Path) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Read the score of every assertion.

    A system is a provider, with the label of the prompt if there are several prompts. A person's rating in the viewer
    (an assertion of the type *human*) is a label of a person.

    Parameters
    ----------
    path : Path
        Results.

    Returns
    -------
    tuple of list of dict and tuple of str
        Rows of system, task, judge, score, kind and metric, and remarks.

    Raises
    ------
    InputError
        If there are no graded results.
    """
    document = read_json_file(path)
    if not isinstance(document, dict):
        raise InputError("it is not an object, as results of promptfoo are")
    outer = get_part(document, "results", dict, "the file")
    results = get_objects(outer, "results", "results")
    has_prompts = len({result.get("promptIdx") for result in results}) > 1
    rows: list[dict[str, Any]] = []
    n_errors = 0
    for number, result in enumerate(results):
        grading = result.get("gradingResult")
        if not isinstance(grading, dict):
            n_errors += 1
            continue
        item = {"system": _name_system(result, has_prompts), "task": _name_task(result, number)}
        components = [part for part in grading.get("componentResults") or [] if isinstance(part, dict)]
        if not components:
            rows.append(item | {"judge": "score", "score": grading.get("score"), "kind": "machine", "metric": ""})
        counts: Counter[str] = Counter()
        for part in components:
            rows.append(item | _read_component(part, counts))
    if not rows:
        raise InputError("no result is graded; add assertions (assert) to the tests, and run promptfoo eval again")
    return rows, () if not n_errors else (f"{count_noun(n_errors, 'result')} without a grade",)


def _name_system(result: dict[str, Any], has_prompts: bool) -> str:
    provider = result.get("provider")
    name = provider.get("label") or provider.get("id") if isinstance(provider, dict) else provider
    prompt = result.get("prompt")
    label = prompt.get("label") or prompt.get("raw") if isinstance(prompt, dict) else result.get("promptIdx")
    return f"{name}: {label}" if has_prompts else str(name)


def _name_task(result: dict[str, Any], number: int) -> str:
    case = result.get("testCase")
    description = case.get("description") if isinstance(case, dict) else None
    position = result.get("testIdx", number)
    return f"{position}: {description}" if description else str(position)


def _read_component(part: dict[str, Any], counts: Counter[str]) -> dict[str, Any]:
    """Return judge and score of an assertion; assertions of one name are numbered."""
    assertion = part.get("assertion")
    assertion = assertion if isinstance(assertion, dict) else {}
    kind = str(assertion.get("type") or "assertion")
    name = str(assertion.get("metric") or kind)
    counts[name] += 1
    judge = name if counts[name] == 1 else f"{name} {counts[name]}"
    score = part.get("score", part.get("pass"))
    if kind == "human":
        return {"judge": "person", "score": score, "kind": "person", "metric": "human"}
    return {"judge": judge, "score": score, "kind": "machine", "metric": ""}
