"""What commands that fit a method have in common: their options, the score, and the files they leave."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.base.fields import parameter_fields
from wisecrowd.cli._console import show_facts, show_json, warn
from wisecrowd.cli._members import CALIBRATION, CONFUSION, GROUPS, JUDGES
from wisecrowd.cli._options import flag, place

if TYPE_CHECKING:
    import pandas as pd

    from wisecrowd.base.method import Method
    from wisecrowd.cli._outputs import Writer
    from wisecrowd.cli._spreadsheet import Guard
    from wisecrowd.data.crowd import Crowd

LABELS, LABELS_PARQUET, POSTERIOR = "labels.csv", "labels.parquet", "posterior.csv"
WORKERS, TASKS = "workers.csv", "tasks.csv"
PREDICTIONS, MODEL = "predictions.csv", "model"
COMPLETED, COMPLETED_PARQUET, JUDGED, SCORED = "completed.csv", "completed.parquet", "judged.csv", "scored.csv"
#: What some run may have left in a folder, and another does not write.
KNOWN = (
    LABELS,
    LABELS_PARQUET,
    WORKERS,
    TASKS,
    POSTERIOR,
    PREDICTIONS,
    COMPLETED,
    COMPLETED_PARQUET,
    JUDGED,
    SCORED,
    JUDGES,
    CONFUSION,
    GROUPS,
    CALIBRATION,
    MODEL,
)

Parameter = Annotated[
    list[str] | None,
    typer.Option(
        "--parameter",
        "-p",
        metavar="NAME=VALUE",
        show_default=False,
        help="A parameter of the method; may be repeated.",
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", parser=place, metavar="FOLDER", show_default=False, help="Where to write the results."
    ),
]
Gold = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        show_default=False,
        help="Gold questions: tasks of known truth, used for fitting. They keep it, and teach what workers are worth.",
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--method", "-m", metavar="NAME", show_default=False,
        help="By which workers and tasks are judged, such as ibcc or one-coin; dawid-skene unless given.",
    ),
]  # fmt: skip
Jobs = Annotated[int, typer.Option("--jobs", "-j", metavar="N", min=1, help="Threads at most.")]
Spreadsheet = Annotated[
    bool, flag("--spreadsheet", help="Make CSV files safe to open in one: an apostrophe before what it would run.")
]
AsJson = Annotated[bool, flag("--json", help="Print the record of the run as JSON instead.")]


def chosen(kind: str, name: str, assignments: list[str], jobs: int, engine: str = "local") -> Any:
    """The method with its parameters, not yet fitted; it must be of the kind that the command is for."""

    from wisecrowd.base.registry import find, kind_of
    from wisecrowd.cli._parameters import parse_parameters
    from wisecrowd.errors import UsageError

    method = find(name)
    if kind_of(method) != kind:
        raise UsageError(
            f"{method.name} is no method to {kind}; use it with wisecrowd {kind_of(method)} -m {method.name}"
        )
    parameters = parse_parameters(method, assignments)
    names = {field.name for field in parameter_fields(method)}
    if "n_jobs" in names:
        parameters.setdefault("n_jobs", jobs)
    if engine != "local":
        if "engine" not in names:
            raise UsageError(f"{method.name} runs on this machine only; leave --engine out, or choose another method")
        parameters["engine"] = engine
    return method(**parameters)


def warn_of_look_alikes(crowd: Crowd, votes: Path) -> None:
    """The one complaint of ``wisecrowd check`` that costs nothing to find and changes answers without a word."""
    from wisecrowd.errors import some
    from wisecrowd.io.validation.checks import same_but_for_case_or_space

    alike = [] if crowd.classes is None else same_but_for_case_or_space(crowd.classes)
    if alike:
        warn(
            f"{len(alike):,} labels differ only by case or space, and count as different ({some(alike)}); "
            f"see wisecrowd check {shlex.quote(str(votes))}"
        )


def warn_of_filled_votes(crowd: Crowd) -> None:
    """Say that votes which a completer filled in do not count where real ones are looked at."""
    if not crowd.observed.all():
        warn(
            "votes that were filled in (observed is false) do not count here: only what workers really said is looked at"
        )


def summary_of(
    fitted: Method, crowd: Crowd, gold: pd.Series | None, known: pd.Series | None, score: Path | None
) -> dict[str, Any]:
    """The figures of a result, ready for JSON: at a glance, and by the truth in the file ``score``."""
    from wisecrowd.cli._summary import summarise

    summary = summarise(fitted, crowd)
    if gold is not None:
        summary["gold"] = {"tasks": int(tasks_of(gold, crowd.tasks).isin(crowd.tasks).sum())}
    if known is not None:
        summary["score"] = _score(known, gold, fitted, crowd)
        if unknown := summary["score"].get("unknown_classes"):
            warn(_nobody_chose(unknown, score, fitted.classes_))
    return summary


def text(path: Path | None) -> str | None:
    """A path for JSON."""
    return None if path is None else str(path)


def tasks_of(truth: pd.Series, tasks: pd.Index) -> pd.Index:
    """The tasks of known truth, as others write them: a number in one file may be a text in another."""
    from wisecrowd.data.vocabulary import same_kind

    return same_kind(truth.index, tasks)


def _score(known: pd.Series, gold: pd.Series | None, fitted: Method, crowd: Crowd) -> dict[str, Any]:
    """How good the labels are on tasks that the method was not told the truth of."""
    from wisecrowd.errors import InputError

    if gold is None:
        return _figures(known, fitted)
    told = tasks_of(known, crowd.tasks).isin(tasks_of(gold, crowd.tasks))
    if told.all():
        raise InputError(
            "every task of --score is among those of --truth, where the method was told; score other tasks"
        )
    return _figures(known[~told], fitted) | {"gold_left_out": int(told.sum())}


def _figures(known: pd.Series, fitted: Method) -> dict[str, Any]:
    """The usual figures, and how many tasks are of which classes that the crowd never had."""
    from wisecrowd.evaluate.aligned import align
    from wisecrowd.evaluate.metrics import summary

    figures: dict[str, Any] = summary(known, fitted)
    if hasattr(fitted, "posterior_"):
        both = align(known, fitted)
        true = both.classes[both.truth]
        if unknown := _unknown(true, fitted.classes_):
            figures["unknown_classes"] = unknown
    return figures


def warn_of_strange_truth(known: pd.Series | None, crowd: Crowd, path: Path | None) -> None:
    """Say if there is truth that names classes which no vote does, for it will count against every method."""
    import pandas as pd

    from wisecrowd.data.vocabulary import same_kind

    if known is None or crowd.classes is None:
        return
    true = known[tasks_of(known, crowd.tasks).isin(crowd.tasks)]
    if unknown := _unknown(same_kind(pd.Index(true), crowd.classes), crowd.classes):
        warn(_nobody_chose(unknown, path, crowd.classes))


def _unknown(true: pd.Index, classes: pd.Index) -> dict[str, int]:
    """How many tasks are of which classes that the crowd never had."""
    counts = true[~true.isin(classes)].value_counts(sort=False)
    return {str(name): int(n) for name, n in counts.items()}


def _nobody_chose(unknown: dict[str, int], score: Path | None, classes: pd.Index) -> str:
    """What to say of classes that are true and that nobody chose."""
    from wisecrowd.errors import did_you_mean, some
    from wisecrowd.utils.text import count_noun

    tasks = sum(unknown.values())
    return (
        f"{score}: no label of the crowd is {some(unknown)}, so {count_noun(tasks, 'task')} of known truth "
        f"{'counts' if tasks == 1 else 'count'} as wrong.{did_you_mean(next(iter(unknown)), map(str, classes))}"
    )


def needs_folder(output: Path | None, **options: bool) -> None:
    """Refuse options about files that nobody wants."""
    from wisecrowd.errors import UsageError

    given = [f"--{name}" for name, chosen in options.items() if chosen]
    if output is None and given:
        verb = "is" if len(given) == 1 else "are"
        raise UsageError(f"{' and '.join(given)} {verb} about files to write; say where with -o FOLDER")


def keep(
    output: Path | None,
    tables: Mapping[str, pd.DataFrame | Writer],
    run: dict[str, Any],
    guard: Guard,
    *,
    model: Method | None = None,
    inputs: Iterable[Path] = (),
    what: str = "results",
) -> str:
    """Write what was found if somebody wants it, enter the names of the files into the record, and say what was kept."""
    from wisecrowd.cli._outputs import RECORD, check_folder, write_results

    if output is None:
        return f"nothing; -o FOLDER keeps the {what}"
    check_folder(output, tables, inputs)  # some are known only now
    run["files"] = [*tables, *([] if model is None else [MODEL]), RECORD]
    if guard.on:
        run["spreadsheet"] = True
    stale = [name for name in KNOWN if name not in run["files"] and (output / name).exists()]
    if stale:
        warn(f"{', '.join(stale)} in {output}: left there by an earlier run, not part of this one")
    if model is not None:
        model.save(output / MODEL)
    write_results(output, tables, run, guard)
    return f"{', '.join(run['files'])} in {output}"


def tell(run: dict[str, Any], facts: list[tuple[str, str]], *, as_json: bool, quiet: bool) -> None:
    """The record for programs, or the handful of lines that a person wants."""
    if as_json:
        show_json(run)
    elif not quiet:
        show_facts(facts)


def tables_of(fitted: Method, *, proba: bool) -> dict[str, pd.DataFrame]:
    """What was learnt of tasks and workers, by the name of the file."""
    from wisecrowd.cli._outputs import labels_table, rounded

    tables = {LABELS: labels_table(fitted)}
    if fitted.worker_index_ is not None:
        tables[WORKERS] = counted_whole(fitted.workers_)
    if hasattr(fitted, "posterior_") and hasattr(fitted, "tasks_"):  # of numbers, the labels tell all
        tables[TASKS] = counted_whole(fitted.tasks_)
    if proba:
        tables[POSTERIOR] = rounded(fitted.proba_)
    return tables


def counted_whole(table: pd.DataFrame) -> pd.DataFrame:
    """A table for a file; its numbers of labels have no decimals unless votes were weighted."""
    from wisecrowd.cli._outputs import rounded

    made = rounded(table)
    whole = (made["n_votes"] == made["n_votes"].round()).all()
    return made.astype({"n_votes": "int64"}) if whole else made


def how(fitted: Method) -> str:
    """Which method it was, and how long it took."""
    from wisecrowd.utils.text import count_noun

    passes, seconds = getattr(fitted, "n_iter_", None), f"{getattr(fitted, 'fit_seconds_', 0):.2f} s"
    if passes is None:
        return f"{fitted.name}, {seconds}"
    if hasattr(fitted, "history_"):  # it does not converge: it is trained for as long as it is told
        return f"{fitted.name}, trained for {count_noun(passes, 'epoch')}, {seconds}"
    ended = "converged after" if getattr(fitted, "converged_", True) else "stopped before it converged, after"
    if getattr(fitted, "tol", 1) == 0:  # so many passes were asked for
        ended = "after"
    return f"{fitted.name}, {ended} {count_noun(passes, 'iteration')}, {seconds}"
