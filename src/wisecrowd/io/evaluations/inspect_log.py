"""Logs of Inspect (inspect_ai): ``.eval`` files, which are zip files, and JSON."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from wisecrowd.errors import InputError
from wisecrowd.io.tables.archives import is_zip, open_zip
from wisecrowd.io.tables.json_text import parse_json, read_json_file
from wisecrowd.io.tools.export_files import get_objects, get_part, peek_object
from wisecrowd.utils.text import count_noun

HEADER, JOURNAL, SAMPLES = "header.json", "_journal/start.json", "samples/"


def detect(path: Path) -> bool:
    """Return whether a file is a log of Inspect.

    Parameters
    ----------
    path : Path
        File.

    Returns
    -------
    bool
    """
    if is_zip(path):
        if path.suffix == ".eval":
            return True
        with open_zip(path) as archive:
            names = {file.filename for file in archive.files}
        return HEADER in names and any(name.startswith(SAMPLES) for name in names)
    if path.suffix == ".eval":
        raise InputError("it is no zip file, as logs of Inspect are; it may be cut off, so copy it again")
    return {"version", "status", "eval"} <= set(peek_object(path))


def read(path: Path) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Read the scores of all samples.

    A sample with several epochs has several outputs: each is a task ``id#epoch`` of the cluster ``id``.

    Parameters
    ----------
    path : Path
        Log.

    Returns
    -------
    tuple of list of dict and tuple of str
        Rows of system, task, cluster, judge and score, and remarks.

    Raises
    ------
    InputError
        If the log has no samples or no scores, or is damaged.
    """
    if is_zip(path):
        header, samples = _read_archive(path)
    else:
        header = read_json_file(path)
        if not isinstance(header, dict):
            raise InputError("it is not an object, as logs of Inspect are")
        samples = get_objects(header, "samples", "the log") if header.get("samples") else []
    if not samples:
        raise InputError(
            "the log has no samples; it may have been written with --no-log-samples, or the run failed before the first one"
        )
    evaluation = get_part(header, "eval", dict, "the log")
    model = str(evaluation.get("model") or "model")
    has_epochs = any(sample.get("epoch", 1) != 1 for sample in samples)
    rows: list[dict[str, Any]] = []
    n_unscored = 0
    for sample in samples:
        scores = sample.get("scores")
        if not isinstance(scores, dict) or not scores:
            n_unscored += 1
            continue
        name = str(sample.get("id"))
        item = {"system": model, "task": f"{name}#{sample.get('epoch', 1)}" if has_epochs else name, "cluster": name}
        rows += [item | row for row in _read_scores(scores)]
    if not rows:
        raise InputError("no sample has scores; score the log first: inspect score LOG --scorer NAME")
    notes = [] if not n_unscored else [f"{count_noun(n_unscored, 'sample')} without scores"]
    if header.get("status") not in (None, "success"):
        notes.append(f"the run ended with the status {header['status']!r}, so that samples may be missing")
    return rows, tuple(notes)


def _read_archive(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the header and the samples of an ``.eval`` file; an interrupted run has only the start of a header."""
    with open_zip(path) as archive:
        by_name = {file.filename: file for file in archive.files}
        header_name = HEADER if HEADER in by_name else JOURNAL
        if header_name not in by_name:
            raise InputError(f"the zip has no {HEADER}, so it is no log of Inspect")
        header = parse_json(next(iter(archive.read([by_name[header_name]]))).decode("utf-8"), header_name)
        names = [name for name in by_name if name.startswith(SAMPLES) and name.endswith(".json")]
        contents = archive.read([by_name[name] for name in names])
        samples = [parse_json(content.decode("utf-8"), name) for name, content in zip(names, contents, strict=True)]
    if not isinstance(header, dict) or not all(isinstance(sample, dict) for sample in samples):
        raise InputError("its parts are not objects, as those of Inspect are")
    return header, samples


def _read_scores(scores: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """Return the scores of a sample; a scorer with several values is several judges."""
    for name, score in scores.items():
        value = score.get("value") if isinstance(score, dict) else score
        if isinstance(value, dict):
            yield from ({"judge": f"{name}/{key}", "score": part} for key, part in value.items())
        elif isinstance(value, list):
            yield from ({"judge": f"{name}/{number}", "score": part} for number, part in enumerate(value))
        else:
            yield {"judge": name, "score": value}
