"""Results that other commands wrote to a folder: labels, probabilities, tasks to label next."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wisecrowd.cli._audit_draw import CHECKS
from wisecrowd.cli._console import warn
from wisecrowd.cli._fitting import LABELS, LABELS_PARQUET, OBJECTS, POSTERIOR, TASKS, TEXTS
from wisecrowd.cli._outputs import RECORD
from wisecrowd.cli._reading import Reading
from wisecrowd.cli.plan import REQUESTS

if TYPE_CHECKING:
    import pandas as pd

    from wisecrowd.data.crowd import Crowd
    from wisecrowd.io.tools.projects import Project

#: Kind of the answers that a person decided.
GOLD = "gold"
#: Files with labels, and files with tasks to label next.
ANSWERS, QUEUE = (LABELS, LABELS_PARQUET), (REQUESTS,)
#: Files with spans, boxes or points, and with texts.
STRUCTURES = (OBJECTS, TEXTS)
#: Types of values in the record of a run and in its parts. The file may have been edited.
_RECORD_TYPES: dict[str, Any] = {"files": list, "command": dict, "input": dict}
_PART_TYPES: dict[str, dict[str, Any]] = {
    "command": {"question": str, "format": str, "votes": str},
    "input": {"votes": int, "workers": int | None, "tasks": int, "sha256": str},
}


def read_answers(results: Path) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return labels and confidence by task, and the record of the run (empty if there is none)."""
    import pandas as pd

    from wisecrowd import io
    from wisecrowd.io.problems import EmptyInput, MissingColumn

    path = _find_table(results, ANSWERS)
    run = _record(path)
    try:
        column = "labels" if run.get("answers") == "multilabel" else "label"
        table = pd.DataFrame({"label": io.read_truth(path, truth=column)})
    except MissingColumn as error:
        if is_review(path) or path.name == CHECKS or _has_truth(path):
            truth = io.read_truth(path, truth="truth")
            truth = truth[truth.astype(str).str.strip() != ""]
            if truth.empty:
                raise EmptyInput(f"no row of {path} has a truth yet; fill in the column truth first") from None
            command = run.get("command", {}) if path.name == CHECKS else {}  # that of the draw names the question
            return pd.DataFrame({"label": truth, "confidence": 1.0}), {"answers": GOLD, "command": command}
        if path.name in QUEUE:
            error.args = (f"{error}. {path} was written by wisecrowd plan; did you mean --queue?",)
        raise
    with contextlib.suppress(MissingColumn):  # numeric labels have no confidence
        table["confidence"] = io.read_truth(path, truth="confidence", numeric=True)
    if table.empty:
        raise EmptyInput(f"{path} has no rows; expected the label of every task. Run wisecrowd aggregate again")
    if _is_guarded(path, run):
        table["label"] = _unguarded(table["label"])
        table.index = pd.Index(_unguarded(table.index), name=table.index.name)
    return table, run


@dataclasses.dataclass(frozen=True)
class StructuredResults:
    """Objects or texts that ``wisecrowd aggregate`` wrote.

    Parameters
    ----------
    table : DataFrame
        Objects with the column task; or texts by task.
    tasks : DataFrame or None
        All tasks with their expected F1 score, for objects.
    run : dict
        Record of the run, empty if there is none.
    """

    table: pd.DataFrame
    tasks: pd.DataFrame | None
    run: dict[str, Any]

    @property
    def is_texts(self) -> bool:
        """True if the results are texts."""
        return "text" in self.table

    @property
    def n_tasks(self) -> int:
        """Number of tasks with results."""
        return (
            len(self.table)
            if self.is_texts
            else self.table["task"].nunique()
            if self.tasks is None
            else len(self.tasks)
        )


def find_structures(results: Path) -> bool:
    """Return whether results are objects or texts.

    Parameters
    ----------
    results : Path
        Folder of results, or a table.

    Returns
    -------
    bool
    """
    if not results.is_dir():
        return results.name in STRUCTURES
    return str(_run(results).get("answers")) in ("spans", "boxes", "points", "texts")


def read_structures(results: Path) -> StructuredResults:
    """Return objects or texts, and the record of the run.

    Parameters
    ----------
    results : Path
        Folder of results, or a table in it.

    Returns
    -------
    StructuredResults
    """
    path = _find_table(results, STRUCTURES)
    run = _record(path)
    table = _read_structure_table(path, run)
    if "text" in table:
        return StructuredResults(table.set_index("task"), None, run)
    tasks_path = path.with_name(TASKS)
    has_tasks = tasks_path.is_file() and TASKS in run.get("files", ())
    return StructuredResults(
        table, _read_structure_table(tasks_path, run).set_index("task") if has_tasks else None, run
    )


def _read_structure_table(path: Path, run: dict[str, Any]) -> pd.DataFrame:
    """Read a table of objects, tasks or texts. Ids, labels and texts stay texts."""
    import pandas as pd

    from wisecrowd.errors import InputError
    from wisecrowd.io.problems import convert_errors, prefix_errors

    names = ("task", "label", "text")
    with prefix_errors(path), convert_errors():
        table = pd.read_csv(
            path, dtype=dict.fromkeys(names, str), keep_default_na=False, na_values={"confidence": [""]}
        )
    if "task" not in table:
        raise InputError(f"{path} has no column 'task'; give the results of wisecrowd aggregate")
    for name in names:
        if name in table and _is_guarded(path, run):
            table[name] = _unguarded(table[name])
    return table


def is_review(path: Path) -> bool:
    """Return whether ``wisecrowd review`` wrote a table."""
    return path.with_name(f"{path.name}.journal").is_file()


def _has_truth(path: Path) -> bool:
    """Return whether a table has the documented columns of decisions, task and truth, but no label."""
    from wisecrowd.io import VoteSource

    read_names = VoteSource.detect(path).format.reader.read_names
    return read_names is not None and {"task", "truth"} <= set(read_names(path))


def read_posterior(results: Path, run: dict[str, Any]) -> pd.DataFrame | None:
    """Return class probabilities by task, or None if the run did not write them.

    Parameters
    ----------
    results : Path
        Folder of results, or a file in it.
    run : dict
        Record of the run.

    Returns
    -------
    DataFrame or None
    """
    import pandas as pd

    from wisecrowd.io.problems import EmptyInput, prefix_errors
    from wisecrowd.io.tools.export_files import iter_rows

    path = (results if results.is_dir() else results.parent) / POSTERIOR
    if not path.is_file():
        return None
    if POSTERIOR not in run.get("files", ()):
        if results.is_dir():
            warn(f"{path} is ignored: {RECORD} does not list it among the files of this run; see aggregate --proba")
        return None
    with prefix_errors(path):
        frame = pd.DataFrame([row for _, row in iter_rows(path, ",")])
        if frame.empty:
            raise EmptyInput(
                "it has no rows; expected the class probabilities of every task. Run wisecrowd aggregate again"
            )
        first = str(frame.columns[0])  # "task", or "task_id" if a class is named "task"
        frame = frame.set_index(first)
        if _is_guarded(path, run):
            frame.index, frame.columns = pd.Index(_unguarded(frame.index)), pd.Index(_unguarded(frame.columns))
        return frame.astype(float)


def read_queue(results: Path) -> list[str]:
    """Return the tasks of a queue in order."""
    import pyarrow as pa

    from wisecrowd.io.problems import EmptyInput, prefix_errors
    from wisecrowd.io.tables.columns import find_column
    from wisecrowd.io.tools.export_files import iter_rows

    path = _find_table(results, QUEUE)
    if path.suffix == ".parquet":
        from wisecrowd.io.tables.parquet import read_table

        with prefix_errors(path):
            return [str(task) for task in read_table(path, ["task"])["task"].cast(pa.string()).to_pylist()]
    with prefix_errors(path):
        rows = [row for _, row in iter_rows(path, "\t" if path.suffix == ".tsv" else ",")]
        if not rows:
            raise EmptyInput("the file contains no tasks; run wisecrowd plan again")
        column = find_column(list(rows[0]), "task")
    tasks = [row[column] for row in rows]
    return _unguarded(tasks) if _is_guarded(path, _record(path)) else tasks


def check_question(results: Path, run: dict[str, Any], question: str | None) -> str | None:
    """Return the question that the results answer; raise an error if the user asks for another.

    Parameters
    ----------
    results : Path
        Folder of results, or a file in it.
    run : dict
        Record of the run.
    question : str or None
        Question that the user named.

    Returns
    -------
    str or None
    """
    from wisecrowd.errors import UsageError

    facts = run.get("command", {}).get("question")
    if question is None or facts is None or question == facts:
        return question or facts
    if str(facts).startswith(f"{question}="):
        raise UsageError(
            f"{results} has answers to {facts!r}, one option of {question!r}; for answers to the whole question, sets of "
            f"options, aggregate with --question {question} first"
        )
    raise UsageError(f"{results} has answers to {facts!r}, not to {question!r}; aggregate that question first")


def restore_reading(
    run: dict[str, Any], votes: Path, *, question: str | None, format: str | None, duplicates: str | None
) -> Reading:
    """Return the reading options of a run, with the options that are given now on top.

    Parameters
    ----------
    run : dict
        Record of the run.
    votes : Path
        Path of the votes.
    question : str or None
        Question that the user names now.
    format : str or None
        Format that the user names now.
    duplicates : str or None
        Rule for repeated votes that the user names now.

    Returns
    -------
    Reading
    """
    command = run.get("command", {})
    types = {field.name: bool if field.default is False else str for field in dataclasses.fields(Reading)}
    del types["max_unpacked"]  # a file must not raise the limit on what it makes us read
    facts = {name: value for name, value in _keep_types(command, types).items() if name in types and value is not None}
    if votes.suffix != Path(str(command.get("votes", ""))).suffix:
        facts.pop("format", None)  # the same votes in another file format
    overrides = {"question": question, "format": format, "duplicates": duplicates}
    return Reading(**facts | {name: value for name, value in overrides.items() if value is not None})


def check_results_match(
    results: Path, run: dict[str, Any], table: pd.DataFrame, votes: Path, crowd: Crowd, form: str
) -> None:
    """Raise an error if results and votes do not belong together; warn about tasks without a label.

    Parameters
    ----------
    results : Path
        Folder of results, or a file in it.
    run : dict
        Record of the run.
    table : DataFrame
        Labels by task.
    votes : Path
        Path of the votes.
    crowd : Crowd
        Votes.
    form : str
        Format of the votes.
    """
    from wisecrowd.errors import InputError, preview
    from wisecrowd.utils.text import count_noun

    advice = f"give the votes that {results} were made from, read in the same way, or aggregate these"
    command, made_from = run.get("command", {}), run.get("input", {})
    by_features = command.get("features") is not None  # then tasks without votes have labels, too
    sizes = {"votes": crowd.n_votes, "workers": crowd.n_workers, "tasks": crowd.n_tasks}
    facts = {name: made_from.get(name, n) for name, n in sizes.items() if not (by_features and name == "tasks")}
    if facts != {name: sizes[name] for name in facts}:
        raise InputError(
            f"{results} and {votes} do not belong together: the answers are to {count_noun(facts['votes'], 'vote')} of "
            f"{count_noun(facts['workers'] or 0, 'worker')}, and {count_noun(crowd.n_votes, 'vote')} of "
            f"{count_noun(crowd.n_workers, 'worker')} were read; {advice}"
        )
    # In another file format ids may be text instead of numbers, which changes the digest.
    if form == command.get("format") and not by_features and made_from.get("sha256", crowd.digest) != crowd.digest:
        raise InputError(
            f"{results} and {votes} do not belong together: there are as many votes as the answers were made from, but they "
            f"are not the same; {advice}"
        )
    crowd_tasks, there = set(map(str, crowd.tasks)), set(map(str, table.index))
    if not by_features and there - crowd_tasks:
        strange = sorted(there - crowd_tasks)
        raise InputError(
            f"{results} and {votes} do not belong together: {count_noun(len(strange), 'answer')} "
            f"to tasks that have no votes ({preview(strange)}); {advice}"
        )
    if without := len(crowd_tasks - there):
        warn(f"{count_noun(without, 'task')} of {votes} {'has' if without == 1 else 'have'} no answer in {results}")


def check_same_project(results: Path, run: dict[str, Any], path: Path, project: Project, tasks: Iterable[Any]) -> None:
    """Raise an error if the tasks of results have other contents in a project than in the votes that the results were made from.

    Parameters
    ----------
    results : Path
        Folder of results, or a file in it.
    run : dict
        Record of the run. It names the votes, which are compared if they are still there and are the export of a tool.
    path : Path
        Export that the results are written for.
    project : Project
        Its contents.
    tasks : iterable
        Tasks of the results.
    """
    from wisecrowd.errors import InputError, WisecrowdError
    from wisecrowd.io import VoteSource
    from wisecrowd.io.tools.task_identity import describe_different_tasks

    votes = Path(str(run.get("command", {}).get("votes") or ""))
    if not votes.is_file() or votes.resolve() == path.resolve():
        return
    try:
        source = VoteSource.detect(votes)
        if not source.format.is_tool:
            return
        export = source.read_export()
    except WisecrowdError:
        return  # the file has changed since
    if difference := describe_different_tasks(export, project, map(str, tasks)):
        raise InputError(
            f"{results} and {path} do not belong together: in {votes}, which the results were made from, and in {path}, "
            f"{difference}. Give the export that the votes came from"
        )


# ---------------------------------------------------------------------- helpers


def _find_table(results: Path, names: tuple[str, ...]) -> Path:
    """Return the path of a table: the given file, or the first of some names in a folder of results."""
    from wisecrowd.errors import InputError

    if not results.exists():
        raise InputError(
            f"there is no file or folder {results}; give a folder that was written with -o, or a table in it"
        )
    if not results.is_dir():
        return results
    there = [results / name for name in names if (results / name).is_file()]
    if not there:
        command_name = "wisecrowd plan" if names is QUEUE else "wisecrowd aggregate"
        raise InputError(
            f"there is no {' or '.join(names)} in {results}, as {command_name} -o writes it; run {command_name} first, or give "
            f"another folder{_other(results, names)}"
        )
    facts = [path for path in there if _record(path)]
    if not facts and _run(results):
        raise InputError(
            f"{there[0]} was left by an earlier run: according to {RECORD}, the last run did not write it; to use it all the "
            f"same, give the file itself{_other(results, names)}"
        )
    return (facts or there)[0]


def _other(results: Path, names: tuple[str, ...]) -> str:
    """Return a hint if a folder contains the other kind of table."""
    if names is ANSWERS and (results / REQUESTS).is_file():
        return f". There is {REQUESTS}, written by wisecrowd plan; did you mean --queue?"
    if names is QUEUE and any((results / name).is_file() for name in ANSWERS):
        return ". There are labels; leave --queue out to export them"
    return ""


def _record(path: Path) -> dict[str, Any]:
    """Return the record of the run that wrote a file; empty if there is none or it does not list the file."""
    run = _run(path.parent)
    return run if path.name in run.get("files", [path.name]) else {}


def _run(folder: Path) -> dict[str, Any]:
    """Return the record of the last run in a folder, without values of wrong types; empty if it cannot be read."""
    from wisecrowd.utils.files import read_json

    try:
        run = read_json(folder / RECORD)
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(run, dict):
        return {}
    run = _keep_types(run, _RECORD_TYPES)
    return run | {name: _keep_types(run[name], types) for name, types in _PART_TYPES.items() if name in run}


def _keep_types(values: dict[str, Any], types: dict[str, Any]) -> dict[str, Any]:
    """Return the values that have the type of their name; names without a type stay."""
    return {name: value for name, value in values.items() if isinstance(value, types.get(name, object))}


def _is_guarded(path: Path, run: dict[str, Any]) -> bool:
    return run.get("spreadsheet") is True and path.suffix in (".csv", ".tsv")


def _unguarded(texts: Any) -> list[Any]:
    from wisecrowd.cli._spreadsheet import unguarded

    return [unguarded(text) for text in texts]
