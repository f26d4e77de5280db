"""What other commands left in a folder, as far as its record tells of it: answers, probabilities, tasks to ask about again."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wisecrowd.cli._console import warn
from wisecrowd.cli._fitting import LABELS, LABELS_PARQUET, POSTERIOR
from wisecrowd.cli._outputs import RECORD
from wisecrowd.cli._reading import Reading
from wisecrowd.cli.plan import ASKS

if TYPE_CHECKING:
    import pandas as pd

    from wisecrowd.data.crowd import Crowd

#: The files in which answers may be, and tasks to ask about again.
ANSWERS, QUEUE = (LABELS, LABELS_PARQUET), (ASKS,)


def answers_in(results: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Labels and confidence by task, and the record of the run that made them, as far as it is there."""
    import pandas as pd

    from wisecrowd import io
    from wisecrowd.io.problems import MissingColumn

    path = _found(results, ANSWERS)
    run = _record(path)
    try:
        table = pd.DataFrame({"label": io.read_truth(path, truth="label")})
    except MissingColumn as error:
        if path.name in QUEUE:
            error.args = (f"{error}. {path} is a plan of what to ask next; did you mean --queue?",)
        raise
    with contextlib.suppress(MissingColumn):  # numbers have none
        table["confidence"] = io.read_truth(path, truth="confidence", numeric=True)
    if _is_guarded(path, run):
        table["label"] = _unguarded(table["label"])
        table.index = pd.Index(_unguarded(table.index), name=table.index.name)
    return table, run


def posterior_in(results: Path, run: dict[str, Any]) -> pd.DataFrame | None:
    """Probabilities of classes by task, if the run that made the answers wrote some."""
    import pandas as pd

    from wisecrowd.io.formats import about
    from wisecrowd.io.tools.exports import cells

    path = (results if results.is_dir() else results.parent) / POSTERIOR
    if not path.is_file():
        return None
    if POSTERIOR not in (run.get("files") or ()):
        if results.is_dir():
            warn(f"{path} is left out: {RECORD} does not say that these answers came with it; see aggregate --proba")
        return None
    with about(path):
        frame = pd.DataFrame([row for _, row in cells(path, ",")])
        first = str(frame.columns[0])  # "task", or something_id when a class is called so
        frame = frame.set_index(first)
        if _is_guarded(path, run):
            frame.index, frame.columns = pd.Index(_unguarded(frame.index)), pd.Index(_unguarded(frame.columns))
        return frame.astype(float)


def tasks_in(results: Path) -> list[str]:
    """The tasks of a queue in its order."""
    import pyarrow as pa

    from wisecrowd.io.formats import about
    from wisecrowd.io.problems import EmptyInput
    from wisecrowd.io.tables.columns import find_column
    from wisecrowd.io.tools.exports import cells

    path = _found(results, QUEUE)
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        return [str(task) for task in pq.read_table(path, columns=["task"])["task"].cast(pa.string()).to_pylist()]
    with about(path):
        rows = [row for _, row in cells(path, "\t" if path.suffix == ".tsv" else ",")]
        if not rows:
            raise EmptyInput("there are no tasks in it")
        column = find_column(list(rows[0]), "task")
    tasks = [row[column] for row in rows]
    return _unguarded(tasks) if _is_guarded(path, _record(path)) else tasks


def answered(results: Path, run: dict[str, Any], question: str | None) -> str | None:
    """The question that was answered, as far as it is told; another than what is asked for is refused."""
    from wisecrowd.errors import UsageError

    told = _command(run).get("question")
    if question is None or told is None or question == told:
        return question or told
    if str(told).startswith(f"{question}="):
        raise UsageError(
            f"{results} has answers to {told!r}, one option of {question!r}; for answers to the whole question, sets of "
            f"options, aggregate with --question {question} first"
        )
    raise UsageError(f"{results} has answers to {told!r}, not to {question!r}; aggregate that question first")


def reading_of(
    run: dict[str, Any], votes: Path, *, question: str | None, format: str | None, duplicates: str | None
) -> Reading:
    """How to read the votes of a run again: as it did, but for what somebody says now."""
    command = _command(run)
    names = {field.name for field in dataclasses.fields(Reading)}
    told = {name: value for name, value in command.items() if name in names and value is not None}
    if votes.suffix != Path(str(command.get("votes", ""))).suffix:
        told.pop("format", None)  # the same votes, but in another form
    given = {"question": question, "format": format, "duplicates": duplicates}
    return Reading(**told | {name: value for name, value in given.items() if value is not None})


def check_votes(results: Path, run: dict[str, Any], table: pd.DataFrame, votes: Path, crowd: Crowd, form: str) -> None:
    """Refuse votes that the answers were not made from, and say if there are tasks without an answer."""
    from wisecrowd.errors import InputError, some
    from wisecrowd.utils.text import count_noun

    advice = f"give the votes that {results} were made from, read in the same way, or aggregate these"
    command, made_from = _command(run), run.get("input") or {}
    by_features = command.get("features") is not None  # then tasks without votes have answers, too
    sizes = {"labels": crowd.n_votes, "workers": crowd.n_workers, "tasks": crowd.n_tasks}
    told = {name: made_from.get(name, n) for name, n in sizes.items() if not (by_features and name == "tasks")}
    if told != {name: sizes[name] for name in told}:
        raise InputError(
            f"{results} and {votes} do not belong together: the answers are to {count_noun(told['labels'], 'vote')} of "
            f"{count_noun(told['workers'] or 0, 'worker')}, and {count_noun(crowd.n_votes, 'vote')} of "
            f"{count_noun(crowd.n_workers, 'worker')} were read; {advice}"
        )
    # In another form, ids may be text here and numbers there, so that the digest of the same votes is another.
    if form == command.get("format") and not by_features and made_from.get("sha256", crowd.digest) != crowd.digest:
        raise InputError(
            f"{results} and {votes} do not belong together: there are as many votes as the answers were made from, but they "
            f"are not the same; {advice}"
        )
    known, there = set(map(str, crowd.tasks)), set(map(str, table.index))
    if not by_features and there - known:
        strange = sorted(there - known)
        raise InputError(
            f"{results} and {votes} do not belong together: {count_noun(len(strange), 'answer')} "
            f"to tasks that have no votes ({some(strange)}); {advice}"
        )
    if without := len(known - there):
        warn(f"{count_noun(without, 'task')} of {votes} {'has' if without == 1 else 'have'} no answer in {results}")


# ---------------------------------------------------------------------- inside


def _found(results: Path, names: tuple[str, ...]) -> Path:
    """The table with that in it: the file itself, or the one in the folder of a run."""
    from wisecrowd.errors import InputError

    if not results.exists():
        raise InputError(f"there is no file or folder {results}")
    if not results.is_dir():
        return results
    there = [results / name for name in names if (results / name).is_file()]
    if not there:
        wanted = "wisecrowd plan" if names is QUEUE else "wisecrowd aggregate"
        raise InputError(
            f"there is no {' or '.join(names)} in {results}, as {wanted} -o writes it{_other(results, names)}"
        )
    told = [path for path in there if _record(path)]
    if not told and _run(results):
        raise InputError(
            f"{there[0]} was left by an earlier run: {RECORD} tells of another, which did not write it"
            f"{_other(results, names)} To use it all the same, give the file itself"
        )
    return (told or there)[0]


def _other(results: Path, names: tuple[str, ...]) -> str:
    """What to say when a folder holds the other thing."""
    if names is ANSWERS and (results / ASKS).is_file():
        return f". There is {ASKS}, a plan of what to ask next: did you mean --queue?"
    if names is QUEUE and any((results / name).is_file() for name in ANSWERS):
        return ". There are answers: did you mean to leave --queue out?"
    return ""


def _record(path: Path) -> dict[str, Any]:
    """The record of the run that wrote a file; nothing where it is not there, or tells of other files."""
    run = _run(path.parent)
    files = run.get("files")
    return run if not isinstance(files, list) or path.name in files else {}


def _run(folder: Path) -> dict[str, Any]:
    """The record of the last run that wrote into a folder, as far as it can be read."""
    from wisecrowd.utils.files import read_json

    try:
        run = read_json(folder / RECORD)
    except (OSError, ValueError):
        return {}
    return run if isinstance(run, dict) else {}


def _command(run: dict[str, Any]) -> dict[str, Any]:
    told = run.get("command")
    return told if isinstance(told, dict) else {}


def _is_guarded(path: Path, run: dict[str, Any]) -> bool:
    return run.get("spreadsheet") is True and path.suffix in (".csv", ".tsv")


def _unguarded(texts: Any) -> list[Any]:
    from wisecrowd.cli._spreadsheet import unguarded

    return [unguarded(text) for text in texts]
