"""Comparisons, label sets and marks on the command line: recognition, reading, and ``wisecrowd aggregate``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wisecrowd.base.default_method import DEFAULT_METHODS, DEFAULT_WITHOUT_WORKERS
from wisecrowd.cli import _fitting as fitting
from wisecrowd.cli._console import show_progress

if TYPE_CHECKING:
    import pandas as pd

    from wisecrowd.base.label_set_aggregator import LabelSetAggregator
    from wisecrowd.base.mark_aggregator import MarkAggregator
    from wisecrowd.base.mask_aggregator import MaskAggregator
    from wisecrowd.base.pairwise_aggregator import PairwiseAggregator
    from wisecrowd.base.text_aggregator import TextAggregator
    from wisecrowd.cli._reading import Reading
    from wisecrowd.data.comparisons import Comparisons
    from wisecrowd.data.label_sets import LabelSetCrowd
    from wisecrowd.data.marks import MarkCrowd
    from wisecrowd.data.masks import MaskCrowd
    from wisecrowd.data.texts import TextCrowd
    from wisecrowd.io.answer_tables import AnswerTable
    from wisecrowd.io.tools.answer_questions import AnswerQuestion

#: Items, and workers, named in the summary.
SHOWN = 5
#: Answer types whose results are objects.
MARKS = ("boxes", "points", "polygons", "spans")
#: Answer types that some commands do not take.
OBJECTS_AND_TEXTS = (*MARKS, "masks", "texts")


def find_answers(votes: Path, reading: Reading, methods: Iterable[str] = ()) -> AnswerTable | AnswerQuestion | None:
    """Return the comparisons or label sets in a file, or None if it holds ordinary votes.

    Parameters
    ----------
    votes : Path
        File or folder.
    reading : Reading
        Options for reading.
    methods : iterable of str, default=()
        Methods that the user named. If one takes classes, a question of a labelling tool is read as classes.

    Returns
    -------
    AnswerTable, AnswerQuestion or None
    """
    from wisecrowd.base.registry import find
    from wisecrowd.cli._reading import resolve_path
    from wisecrowd.io.answer_tables import find_answer_table

    if reading.numeric or reading.ordered or reading.no_workers or "=" in (reading.question or ""):
        return None
    path = resolve_path(votes)
    if not path.exists():
        return None
    columns = {"task": reading.task, "worker": reading.worker, "label": reading.label}
    source = path if reading.format is None else reading.open(path)
    methods = list(methods)
    as_texts = bool(methods) and all(getattr(find(name), "answer_types", ()) == ("texts",) for name in methods)
    answers = find_answer_table(source, columns=columns, question=reading.question, as_texts=as_texts)
    if answers is not None and answers.source.format.is_tool:
        if answers.answer_type in OBJECTS_AND_TEXTS and not answers.is_assumed:
            return answers
        # Sets of options, and answers that are assumed to be texts, may also be classes, for methods that were named.
        suits = all(answers.answer_type in getattr(find(name), "answer_types", ()) for name in methods)
        return answers if suits else None
    if answers is not None and answers.answer_type == "scores" and reading.label is not None:
        return None  # the user named the column of labels
    return answers


def read_answers(
    answers: AnswerTable | AnswerQuestion, reading: Reading
) -> Comparisons | LabelSetCrowd | MarkCrowd | MaskCrowd | TextCrowd:
    """Read comparisons, label sets, marks or texts by the options of a command.

    Parameters
    ----------
    answers : AnswerTable
        Answers.
    reading : Reading
        Options for reading.

    Returns
    -------
    Comparisons, LabelSetCrowd, MarkCrowd, MaskCrowd or TextCrowd
    """
    from wisecrowd.data.scores import ScoreCrowd
    from wisecrowd.errors import InputError, UsageError

    if answers.answer_type == "scores":
        raise UsageError(
            f"{answers.source.path} holds {answers.description}, which this command does not take; use wisecrowd aggregate, "
            "diagnose or report, or read the scores as labels: --label score"
        )
    unusable = {
        "--classes": reading.classes is not None,
        "--label": reading.label is not None and reading.label not in answers.columns.values(),
        "--weight": reading.weight is not None,
        "--normalise": reading.normalise,
    }
    if options_given := [option for option, is_unusable in unusable.items() if is_unusable]:
        raise UsageError(
            f"{answers.source.name} holds {answers.description}; {' and '.join(options_given)} "
            f"{'applies' if len(options_given) == 1 else 'apply'} to ordinary votes only{_advise_label(answers)}"
        )
    options: dict[str, Any] = {"duplicates": reading.duplicates}
    if answers.answer_type != "multilabel":
        options["missing"] = reading.missing
    try:
        crowd = answers.read(**options)
    except InputError as error:
        error.args = (f"{error}{_describe_other_problems(answers, reading)}",)  # in place: subclasses carry attributes
        raise
    assert not isinstance(crowd, ScoreCrowd)
    return crowd


def _advise_label(answers: AnswerTable | AnswerQuestion) -> str:
    """Return the advice to name the column of classes, for a table of texts that may have one."""
    is_table = answers.answer_type == "texts" and not answers.source.format.is_tool
    return "; to read classes instead, name their column: --label COLUMN" if is_table else ""


def _describe_other_problems(answers: AnswerTable | AnswerQuestion, reading: Reading) -> str:
    """Return a sentence that names all errors in a table of answers, if there are several."""
    from wisecrowd.errors import WisecrowdError
    from wisecrowd.io.validation.vote_checks import check_votes

    try:
        errors = check_votes(answers.source, **reading.read_arguments()).errors
    except WisecrowdError:
        return ""
    if len(errors) < 2:
        return ""
    counts = ", ".join(f"{finding.name} {finding.count:,}" for finding in errors)
    return f". The table has {len(errors)} problems ({counts}); wisecrowd check {answers.source.name} lists them"


def read_documents(answers: AnswerTable | AnswerQuestion) -> Any:
    """Read the texts beside spans, if there are any.

    Parameters
    ----------
    answers : AnswerTable
        Answers.

    Returns
    -------
    pyarrow.Table or None
    """
    return answers.read_documents() if answers.answer_type == "spans" else None


def read_true_answers(score: Path, crowd: Any, reading: Reading) -> Any:
    """Read true objects, masks or texts by the options of a command.

    Parameters
    ----------
    score : Path
        Table without workers.
    crowd : MarkCrowd, MaskCrowd or TextCrowd
        Answers of workers, whose types of ids the result has.
    reading : Reading
        Options for reading.

    Returns
    -------
    DataFrame or Series
        True objects, or true masks or texts by task.
    """
    import pandas as pd

    from wisecrowd.cli._reading import resolve_path
    from wisecrowd.data.vocabulary import match_id_type
    from wisecrowd.io.answer_tables import read_true_masks, read_true_objects, read_true_texts

    path, columns = resolve_path(score), {"task": reading.task}
    if crowd.answer_type == "texts":
        texts = read_true_texts(path, columns=columns)
        return texts.set_axis(match_id_type(texts.index, crowd.tasks))
    if crowd.answer_type == "masks":
        masks = read_true_masks(path, columns=columns)
        return masks.set_axis(match_id_type(masks.index, crowd.tasks))
    objects = read_true_objects(path, crowd.answer_type, columns=columns)
    objects = objects.assign(task=match_id_type(pd.Index(objects["task"]), crowd.tasks))
    if "label" in objects:
        known = objects["label"].notna().to_numpy()
        labels = objects["label"].astype(object).to_numpy().copy()
        labels[known] = match_id_type(pd.Index(labels[known]), crowd.classes).to_numpy()
        objects = objects.assign(label=labels)
    return objects


def check_unused(answers: AnswerTable | AnswerQuestion, options: Mapping[str, object]) -> None:
    """Raise an error if the user gave options that apply to votes on classes only.

    Parameters
    ----------
    answers : AnswerTable
        Answers.
    options : dict of str to object
        Values by name of the option; None and False mean that the option was not given.
    """
    from wisecrowd.errors import UsageError

    unusable = [name for name, value in options.items() if value is not None and value is not False]
    if unusable:
        verb = "applies" if len(unusable) == 1 else "apply"
        raise UsageError(
            f"{answers.source.name} holds {answers.description}; leave out {', '.join(unusable)}, which {verb} to votes on classes"
        )


def refuse_objects_and_texts(votes: Path, reading: Reading, command: str) -> None:
    """Raise an error if a command that takes labels gets objects, masks or texts.

    Parameters
    ----------
    votes : Path
        File or folder.
    reading : Reading
        Options for reading. If they name the column of labels, the table is read as votes.
    command : str
        Name of the command.
    """
    from wisecrowd.errors import UsageError

    if reading.label is not None:
        return
    answers = find_answers(votes, reading)
    if answers is not None and answers.answer_type in OBJECTS_AND_TEXTS and not answers.is_assumed:
        raise UsageError(
            f"{answers.source.path} holds {answers.description}, and wisecrowd {command} takes votes on labels. Boxes, points, "
            "polygons, spans, masks and texts have the commands check, aggregate, diagnose, compare and report"
        )


def aggregate_answers(
    answers: AnswerTable | AnswerQuestion,
    method: str | None,
    parameter: list[str],
    jobs: int,
    reading: Reading,
    *,
    output: Path | None,
    save: bool,
    spreadsheet: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Aggregate comparisons or label sets, write the results and print a summary.

    Parameters
    ----------
    answers : AnswerTable
        Answers.
    method : str or None
        Method; None for the default of the answer type.
    parameter : list of str
        Parameters of the method, as name=value.
    jobs : int
        Maximum number of threads.
    reading : Reading
        Options for reading.
    output : Path or None
        Folder for the results.
    save, spreadsheet, quiet, as_json : bool
        Options of the command.
    """
    from wisecrowd.base.run_record import describe_environment
    from wisecrowd.cli._outputs import RECORD, check_folder
    from wisecrowd.cli._spreadsheet import Guard
    from wisecrowd.cli._summary import describe_crowd
    from wisecrowd.errors import UsageError

    path = Path(answers.source.name)
    if output is not None:
        names = [
            fitting.SCORES,
            fitting.OBJECTS,
            fitting.CANDIDATES,
            fitting.TEXTS,
            fitting.MASKS,
            fitting.TASKS,
            fitting.LABELS,
            fitting.WORKERS,
        ]
        check_folder(output, [*names, RECORD], [path])
    crowd = read_answers(answers, reading)
    default = DEFAULT_METHODS[answers.answer_type]
    if answers.answer_type == "pairwise" and crowd.workers is None:
        default = DEFAULT_WITHOUT_WORKERS
    unfitted = fitting.make_method("aggregate", method or default, parameter, jobs)
    if answers.answer_type not in unfitted.answer_types:
        raise UsageError(
            f"{path} holds {answers.description}, and {unfitted.name} takes other votes; leave -m out, or choose -m {default}"
            f"{_advise_label(answers)}"
        )
    documents = read_documents(answers) if getattr(unfitted, "uses_documents", False) else None
    with show_progress(quiet=quiet):
        fitted = unfitted.fit(crowd) if documents is None else unfitted.fit(crowd, documents)
    warnings = fitting.warn_marks(fitted)
    if answers.answer_type == "pairwise":
        tables, facts, summary = _describe_scores(fitted)
    elif answers.answer_type in MARKS:
        tables, facts, summary = _describe_objects(fitted)
        summary["warnings"] = warnings
    elif answers.answer_type == "masks":
        tables, facts, summary = _describe_masks(fitted)
    elif answers.answer_type == "texts":
        tables, facts, summary = _describe_texts(fitted)
    else:
        tables, facts, summary = _describe_label_sets(fitted, crowd)  # type: ignore[arg-type]  # label sets
    run: dict[str, Any] = {
        "answers": answers.answer_type,
        "columns": dict(answers.columns),
        "method": fitted.name,
        "parameters": {name: value for name, value in fitted.get_params(deep=False).items() if name != "verbose"},
        "summary": summary,
        "votes": str(path),
        "command": {"votes": str(path), **reading.to_record(answers.source)},
        **describe_environment(crowd),
    }
    written = fitting.write_run(
        output,
        tables if output is not None else {},
        run,
        Guard(on=spreadsheet),
        model=fitted if save else None,
        inputs=[path],
    )
    begin = [
        ("Read", f"{path}: {answers.description}"),
        ("Votes", describe_crowd(crowd)),
        ("Method", fitting.describe_fit(fitted)),
    ]
    fitting.print_run(run, [*begin, *facts, ("Wrote", written)], as_json=as_json, quiet=quiet)


def _describe_scores(
    fitted: PairwiseAggregator,
) -> tuple[dict[str, pd.DataFrame], list[tuple[str, str]], dict[str, Any]]:
    """Return the tables, the summary lines and the figures of a fit to comparisons."""
    from wisecrowd.cli._outputs import rounded

    scores = fitted.scores_
    tables = {fitting.SCORES: rounded(scores)}
    has_intervals = fitted.covariance_ is not None
    level = f"{fitted.level:.0%} interval"

    def describe(item: Any) -> str:
        row = scores.loc[item]
        if not has_intervals:
            return f"{item} {row['score']:.2f}"
        interval = f"{row['lower']:.2f} to {row['upper']:.2f}"
        return f"{item} {row['score']:.2f} ({interval}; rank {row['rank_low']:.0f}–{row['rank_high']:.0f})"

    facts = [("Best", "; ".join(map(describe, scores.index[:SHOWN])))]
    if len(scores) > SHOWN:
        facts.append(("Worst", "; ".join(map(describe, scores.index[: -min(SHOWN, len(scores) - SHOWN) - 1 : -1]))))
    if has_intervals:
        facts.append(("Scores", f"logits, mean zero, with {level}; ranks as far as the comparisons decide them"))
    summary: dict[str, Any] = {
        "items": len(scores),
        "best": str(scores.index[0]),
        "components": int(scores["component"].max()) + 1,
        "level": fitted.level if has_intervals else None,
    }
    if fitted.needs_workers:
        workers = fitted.workers_
        tables[fitting.WORKERS] = fitting.with_integer_counts(workers)
        if "lean" in workers:
            leaning = workers["lean"].abs().sort_values(ascending=False).index[:3]
            named = ", ".join(f"{worker} {workers['lean'][worker]:+.2f}" for worker in leaning)
            facts.append(("Sides", f"strongest leans to the left side (+) or right side (−), in logits: {named}"))
    return tables, facts, summary


def _describe_objects(
    fitted: MarkAggregator,
) -> tuple[dict[str, pd.DataFrame], list[tuple[str, str]], dict[str, Any]]:
    """Return the tables, the summary lines and the figures of a fit to marks."""
    from wisecrowd.cli._outputs import rounded

    objects, tasks, workers = fitted.objects_, fitted.tasks_, fitted.workers_
    candidates = fitted.candidates_
    tables = {
        fitting.OBJECTS: rounded(objects.set_index("task")),
        fitting.CANDIDATES: rounded(candidates.set_index("task")),
        fitting.TASKS: rounded(tasks),
        fitting.WORKERS: rounded(workers),
    }
    n_objects, mean_confidence = len(objects), float(objects["confidence"].mean()) if len(objects) else float("nan")
    shares = objects["label"].value_counts(normalize=True).head(SHOWN)
    named = ", ".join(f"{label} {share:.1%}" for label, share in shares.items())
    weakest = workers["detection_rate"].sort_values(kind="stable").index[:3]
    loudest = workers["false_alarms"].sort_values(ascending=False, kind="stable").index[:3]
    facts = [
        (
            "Objects",
            f"{n_objects:,} of {len(candidates):,} candidates, {n_objects / max(len(tasks), 1):.2f} per task; {named}",
        ),
        (
            "Certainty",
            f"mean confidence {mean_confidence:.3f}, mean expected F1 of a task {tasks['expected_f1'].mean():.3f}",
        ),
        ("Threshold", f"objects with a confidence of {fitted.threshold_:.3f} or more are chosen"),
        (
            "Workers",
            f"detect {workers['detection_rate'].median():.0%} of the objects (median), least "
            + ", ".join(f"{worker} {workers['detection_rate'][worker]:.0%}" for worker in weakest)
            + "; most false alarms per task "
            + ", ".join(f"{worker} {workers['false_alarms'][worker]:.2f}" for worker in loudest),
        ),
    ]
    summary = {
        "objects": n_objects,
        "candidates": len(candidates),
        "confidence": mean_confidence if n_objects else None,
        "expected_f1": float(tasks["expected_f1"].mean()),
        "threshold": fitted.threshold_,
        "detection_rate": float(workers["detection_rate"].median()),
        "false_alarms": float(workers["false_alarms"].median()),
    }
    return tables, facts, summary


def _describe_masks(
    fitted: MaskAggregator,
) -> tuple[dict[str, pd.DataFrame], list[tuple[str, str]], dict[str, Any]]:
    """Return the tables, the summary lines and the figures of a fit to masks."""
    from wisecrowd.cli._outputs import rounded

    tasks, workers = fitted.tasks_, fitted.workers_
    tables = {fitting.MASKS: rounded(tasks), fitting.WORKERS: rounded(workers)}
    share = float(tasks["area"].sum() / max((fitted.height_ * fitted.width_).sum(), 1))
    worst = workers["iou"].sort_values(kind="stable").index[:3]
    facts = [
        ("Masks", f"{len(tasks):,}, with {share:.1%} of the pixels"),
        (
            "Certainty",
            f"mean expected intersection over union {tasks['confidence'].mean():.3f}, Dice coefficient "
            f"{tasks['expected_dice'].mean():.3f}",
        ),
        (
            "Workers",
            f"sensitivity {workers['sensitivity'].median():.3f}, specificity {workers['specificity'].median():.3f} (medians); "
            "farthest from the result "
            + ", ".join(f"{worker} {workers['iou'][worker]:.2f}" for worker in worst)
            + " (intersection over union)",
        ),
    ]
    summary = {
        "masks": len(tasks),
        "confidence": float(tasks["confidence"].mean()),
        "expected_dice": float(tasks["expected_dice"].mean()),
        "sensitivity": float(workers["sensitivity"].median()),
        "specificity": float(workers["specificity"].median()),
    }
    return tables, facts, summary


def _describe_texts(
    fitted: TextAggregator,
) -> tuple[dict[str, pd.DataFrame], list[tuple[str, str]], dict[str, Any]]:
    """Return the tables, the summary lines and the figures of a fit to texts."""
    from wisecrowd.cli._outputs import rounded

    tasks, workers = fitted.tasks_, fitted.workers_
    tables = {fitting.TEXTS: rounded(tasks), fitting.WORKERS: rounded(workers)}
    worst = workers["accuracy"].sort_values(kind="stable").index[:3]
    unit = "words" if fitted.unit == "words" else "characters"
    facts = [
        ("Texts", f"{len(tasks):,}, compared by {unit} after normalisation {fitted.normalisation!r}"),
        (
            "Certainty",
            f"mean probability that a text is right {tasks['confidence'].mean():.3f}, expected share of right {unit} "
            f"{tasks['token_confidence'].mean():.3f}",
        ),
        (
            "Workers",
            f"{workers['accuracy'].median():.0%} of the {unit} right (median), least "
            + ", ".join(f"{worker} {workers['accuracy'][worker]:.0%}" for worker in worst),
        ),
    ]
    summary = {
        "texts": len(tasks),
        "confidence": float(tasks["confidence"].mean()),
        "token_confidence": float(tasks["token_confidence"].mean()),
        "accuracy": float(workers["accuracy"].median()),
    }
    return tables, facts, summary


def _describe_label_sets(
    fitted: LabelSetAggregator, crowd: LabelSetCrowd
) -> tuple[dict[str, pd.DataFrame], list[tuple[str, str]], dict[str, Any]]:
    """Return the tables, the summary lines and the figures of a fit to label sets."""
    import pandas as pd

    from wisecrowd.cli._outputs import rounded
    from wisecrowd.io.tools.label_sets import format_label_set

    table = fitted.tasks_
    table["labels"] = [format_label_set(tuple(map(str, labels))) for labels in table["labels"]]
    probs = pd.DataFrame({"probability": fitted.proba_.stack()})
    probs["chosen"] = probs["probability"] >= fitted.threshold_
    tables = {
        fitting.LABELS: rounded(table.drop(columns="n_votes")),
        fitting.POSTERIOR: rounded(probs),
        fitting.WORKERS: rounded(fitted.workers_),
    }
    chosen = fitted.label_probs_ >= fitted.threshold_
    share = chosen.mean(axis=0)
    order = (-share).argsort(kind="stable")[:SHOWN]
    mean_size, mean_f1 = float(chosen.sum(axis=1).mean()), float(table["expected_f1"].mean())
    facts = [
        (
            "Labels",
            f"{mean_size:.2f} per task; "
            + ", ".join(f"{fitted.label_index_[code]} {share[code]:.1%}" for code in order),
        ),
        (
            "Certainty",
            f"expected F1 {mean_f1:.3f}, mean probability that a whole set is right {table['confidence'].mean():.3f}",
        ),
        ("Threshold", f"labels with a probability of {fitted.threshold_:.3f} or more are chosen"),
    ]
    summary = {
        "labels_per_task": mean_size,
        "expected_f1": mean_f1,
        "threshold": fitted.threshold_,
        "labels": crowd.n_labels,
    }
    return tables, facts, summary
