"""Tables of truth beside votes: gold, truth to score against, and checks. All are compared with the votes when they are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from wisecrowd.cli._reading import GoldReading, resolve_path

if TYPE_CHECKING:
    import pandas as pd

    from wisecrowd.data.crowd import Crowd
    from wisecrowd.evaluate.confidence import LabelConfidence
    from wisecrowd.io import VoteSource
    from wisecrowd.io.tables.matched_columns import VoteNames

#: Use of a table: gold is used in fitting, score only to evaluate, checks are those of an audit, and decisions those of a review.
Use: TypeAlias = Literal["gold", "score", "checks", "decisions"]
#: Examples of rows in a message.
SHOWN = 3
#: Level of the binomial tests by which a truth contradicts the votes. At 0.001, 40 right gold labels of 20 public crowds lead to a
#: warning in 1 % of random samples, and 40 labels that are shifted by one row in 90 %.
CONTRADICTION_LEVEL = 0.001
#: Texts for a task that a person could not decide, in lower case.
UNDECIDED = frozenset({"?", "??", "???", "-", "--", "–", "—", "n/a", "na", "none", "unknown", "unsure", "undecided", "not sure",
                       "don't know", "dont know"})  # fmt: skip


def read_truth(
    path: Path,
    reading: GoldReading,
    crowd: Crowd | None = None,
    *,
    use: Use = "gold",
    beside: Path | None = None,
    tasks: pd.Index | None = None,
    other_tasks: bool = False,
    new_classes: Sequence[str] = (),
    votes: VoteSource | None = None,
) -> pd.Series:
    """Read the truth in a file or dataset folder; its task column may have the name given by ``--gold-task`` or ``--task``.

    Rows without a truth are left out. With votes, tasks that have none are named in a warning, and classes that no vote names in
    a warning (score) or an error (gold and checks).

    Parameters
    ----------
    path : Path
        File or dataset folder.
    reading : GoldReading
        Options by which the votes were read, and the columns of the truth.
    crowd : Crowd, optional
        Votes.
    use : {"gold", "score", "checks", "decisions"}, default="gold"
        Use of the truth.
    beside : Path, optional
        Other table of truth of the same command. Columns that ``--gold-task`` and ``--gold-label`` name may be in one of the two.
    tasks : Index, optional
        Tasks of answers that are no votes, such as scores, by which the column of tasks is recognised.
    other_tasks : bool, default=False
        Whether the truth may be of other tasks only, such as those that a learner predicts.
    new_classes : sequence of str, default=()
        Classes that no vote names and that checks may have.
    votes : VoteSource, optional
        File of the votes. If both files are exports of a labelling tool, the contents of their tasks are compared.

    Returns
    -------
    Series
    """
    from wisecrowd.io import VoteSource
    from wisecrowd.io.problems import MissingColumn

    source = VoteSource.detect(resolve_path(path))
    _warn_inferred(path)
    reading = fit_reading(path, reading, beside)

    if votes is not None:
        _check_same_project(source, votes)
    options: dict[str, Any] = {
        "numeric": crowd is not None and crowd.is_numeric, "match": crowd if reading.normalise else None,
        "vote_names": _get_vote_names(crowd, tasks),
    }  # fmt: skip
    columns: dict[str, Any] = {"task": reading.gold_task, "truth": reading.gold_label}
    drawn = _read_checked_export(source, reading) if use == "checks" and source.format.is_tool else None
    if drawn is not None:
        true_labels = drawn
    elif reading.question is not None and source.format.is_tool:
        true_labels = source.read_truth(question=reading.question, **options)
    else:
        try:
            named = columns if reading.gold_task is not None else columns | {"task": reading.task}
            true_labels = source.read_truth(**named, **options)
        except MissingColumn as error:
            if reading.gold_task is not None or reading.task is None or "task" not in error.roles:
                raise
            true_labels = source.read_truth(**columns, **options)
    true_labels = _drop_unfilled(true_labels, path, use)
    if crowd is not None and use == "checks":
        true_labels = _match_typed_labels(true_labels, crowd, path)
    if crowd is not None:
        check_truth_tasks(true_labels, crowd.tasks, path, normalise=reading.normalise, other_tasks=other_tasks)
        check_truth_classes(true_labels, crowd, path, use=use, new_classes=new_classes)
        if use != "decisions":  # a review decides tasks whose votes are probably wrong
            warn_contradiction(true_labels, crowd, path, use=use)
        if use == "gold":
            _warn_complete(true_labels, crowd, path)
    return true_labels


def fit_reading(path: Path, reading: GoldReading, beside: Path | None) -> GoldReading:
    """Return the options for one of two tables of truth: without columns that only the other one has.

    Parameters
    ----------
    path : Path
        Table of truth.
    reading : GoldReading
        Options of the command.
    beside : Path or None
        Other table of truth of the same command.

    Returns
    -------
    GoldReading
    """
    if beside is None or (reading.gold_task is None and reading.gold_label is None):
        return reading
    names, other_names = _read_names(path), _read_names(beside)
    absent: dict[str, Any] = {
        option: None
        for option in ("gold_task", "gold_label")
        if (name := getattr(reading, option)) is not None and name not in names and name in other_names
    }
    return replace(reading, **absent)


def _read_names(path: Path) -> list[str]:
    """Return the column names of a table; none for other files."""
    from wisecrowd.io import VoteSource
    from wisecrowd.io.problems import prefix_errors

    source = VoteSource.detect(resolve_path(path))
    if source.format.reader.read_names is None:
        return []
    with prefix_errors(source.path):
        return list(source.format.reader.read_names(source.path))


def _get_vote_names(crowd: Crowd | None, tasks: pd.Index | None) -> VoteNames | None:
    """Return the names by which columns of the truth are recognised."""
    from wisecrowd.io.tables.matched_columns import VoteNames

    if crowd is not None:
        return VoteNames(crowd.tasks, crowd.classes)
    return None if tasks is None else VoteNames(tasks)


def _warn_complete(truth: pd.Series, crowd: Crowd, path: Path) -> None:
    """Warn if all tasks are gold, so that no label is inferred."""
    from wisecrowd.cli._console import warn
    from wisecrowd.data.vocabulary import locate_ids

    is_voted = crowd.votes_per_task > 0
    position = locate_ids(truth.index, crowd.tasks)
    is_voted[position[position >= 0]] = False
    if is_voted.any():
        return
    warn(
        f"{path}: every task with votes is gold, so nothing is estimated: the labels are this truth. To evaluate labels against "
        "it, give it with --score FILE instead of --gold"
    )


def _check_same_project(source: VoteSource, votes: VoteSource) -> None:
    """Raise an error if the truth is the export of another project than the votes, with tasks of the same ids."""
    from wisecrowd.errors import InputError
    from wisecrowd.io.tools.task_identity import describe_different_tasks

    if not (source.format.is_tool and votes.format.is_tool) or source.path.resolve() == votes.path.resolve():
        return
    if difference := describe_different_tasks(votes.read_export(), source.read_export()):
        raise InputError(
            f"{source.name} and {votes.name} are exports of different projects: {difference}. Give the truth of the project of "
            "the votes"
        )


def _read_checked_export(source: VoteSource, reading: GoldReading) -> pd.Series | None:
    """Return the answers to the drawn tasks in an export of Label Studio; None if its tasks were not drawn by wisecrowd."""
    from wisecrowd.errors import InputError, preview
    from wisecrowd.io.problems import prefix_errors
    from wisecrowd.io.tools.exported_answers import OWN_TASK
    from wisecrowd.io.tools.question_votes import select_checks, select_truth

    with prefix_errors(source.path):
        export = source.read_export()
        checks = select_checks(export, reading.question)
        if checks is not None:
            return checks
        queued = [task for task, entry in export.tasks.items() if OWN_TASK in (entry.get("data") or {})]
        if queued and select_truth(export, reading.question) is None:
            raise InputError(
                f"its tasks have the ids of tasks to check ({preview(queued)}) but not their weights, which only the checks.json "
                "of a first draw has; copy the answers into the column truth of checks.csv, and give that file"
            )
    return None


def _warn_inferred(path: Path) -> None:
    """Warn if the truth is a table of labels that wisecrowd inferred."""
    import json

    from wisecrowd.cli._console import warn
    from wisecrowd.cli._fitting import LABELS, LABELS_PARQUET, PREDICTIONS
    from wisecrowd.cli._outputs import RECORD

    record = path.parent / RECORD
    if path.name not in (LABELS, LABELS_PARQUET, PREDICTIONS) or not record.is_file():
        return
    try:
        files = json.loads(record.read_text(encoding="utf-8")).get("files")
    except (OSError, ValueError, AttributeError):
        return
    if isinstance(files, list) and path.name in files:
        warn(
            f"{path}: wisecrowd inferred these labels, so they are no known truth, and say nothing about the accuracy; give labels "
            "that an expert checked"
        )


def _drop_unfilled(truth: pd.Series, path: Path, use: Use) -> pd.Series:
    """Return the rows with a truth; the others are not filled in yet."""
    from wisecrowd.errors import InputError

    is_filled = truth.notna() & (truth.astype(str).str.strip() != "")
    if not is_filled.any():
        advice = "fill in the column truth of the tasks that you checked" if use == "checks" else "fill in the truth"
        raise InputError(f"no row of {path} has a truth yet; {advice}")
    return truth[is_filled]


def _match_typed_labels(truth: pd.Series, crowd: Crowd, path: Path) -> pd.Series:
    """Return checks with labels in the spelling of the votes: a person typed them, and votes must be read as for the draw."""
    import pandas as pd

    from wisecrowd.cli._console import print_note
    from wisecrowd.data.vocabulary import match_id_type
    from wisecrowd.errors import preview
    from wisecrowd.io.tables.spellings import match_spellings
    from wisecrowd.utils.text import count_noun

    if crowd.classes is None:
        return truth
    matched = match_spellings(match_id_type(pd.Index(truth), crowd.classes), crowd.classes)
    is_changed = matched.astype(str) != truth.astype(str).to_numpy()
    if is_changed.any():
        print_note(
            f"Note: {path}: read {count_noun(int(is_changed.sum()), 'check')} in the spelling of the votes, such as "
            f"{preview(truth[is_changed][:1])} as {preview(matched[is_changed][:1])}",
            style="dim",
        )
    return pd.Series(matched.to_numpy(), index=truth.index, name=truth.name)


def check_truth_tasks(
    truth: pd.Series, tasks: pd.Index, path: Path, *, normalise: bool = False, other_tasks: bool = False
) -> None:
    """Warn of tasks with truth that have no votes; raise an error if none has.

    Parameters
    ----------
    truth : Series
        Truth by task.
    tasks : Index
        Tasks of the votes.
    path : Path
        File of the truth.
    normalise : bool, default=False
        Whether spellings were unified.
    other_tasks : bool, default=False
        Whether the truth may be of other tasks.
    """
    from wisecrowd.cli._console import warn
    from wisecrowd.data.vocabulary import locate_ids
    from wisecrowd.errors import InputError, preview
    from wisecrowd.io.tables.spellings import match_spellings
    from wisecrowd.utils.text import count_noun

    unknown = truth.index[locate_ids(truth.index, tasks) < 0]
    if not len(unknown):
        return
    matched = match_spellings(unknown, tasks)
    is_spelling = matched.isin(tasks)
    if len(unknown) == len(truth) and not other_tasks:
        advice = (
            "They differ only in spelling: add --normalise"
            if is_spelling.any() and not normalise
            else "Give the truth of these votes, or say which column holds the task ids: --gold-task COLUMN"
        )
        subject = "its only task has no" if len(truth) == 1 else f"none of its {len(truth):,} tasks has"
        raise InputError(
            f"{path}: {subject} votes. It has {preview(truth.index)}, the votes have {preview(tasks)}. {advice}"
        )
    if is_spelling.any():
        warn(
            f"{path}: the truth has another spelling of {count_noun(int(is_spelling.sum()), 'task')} than the votes, such as "
            f"{preview(unknown[is_spelling][:1])} for {preview(matched[is_spelling][:1])}, and is ignored there; unify them: "
            "--normalise"
        )
    if len(absent := unknown[~is_spelling]) and not other_tasks:
        verb = "has no votes and is" if len(absent) == 1 else "have no votes and are"
        warn(f"{path}: {len(absent):,} of its {len(truth):,} tasks {verb} ignored ({preview(absent)})")


def check_truth_classes(
    truth: pd.Series, crowd: Crowd, path: Path, *, use: Use, new_classes: Sequence[str] = ()
) -> None:
    """Compare true labels of tasks with votes with the classes of the votes.

    Parameters
    ----------
    truth : Series
        Truth by task.
    crowd : Crowd
        Votes.
    path : Path
        File of the truth.
    use : {"gold", "score", "checks", "decisions"}
        Use of the truth. Unknown classes are a warning for a score, else an error.
    new_classes : sequence of str, default=()
        Classes that no vote names and that checks may have.
    """
    import pandas as pd

    from wisecrowd.cli._console import warn
    from wisecrowd.data.vocabulary import locate_ids, match_id_type
    from wisecrowd.errors import InputError

    if crowd.classes is None:
        return
    here = truth[locate_ids(truth.index, crowd.tasks) >= 0]
    labels = match_id_type(pd.Index(here), crowd.classes)
    allowed = {str(name) for name in new_classes} if use == "checks" else set()
    is_unknown = ~labels.isin(crowd.classes)
    unknown = here[is_unknown & ~labels.astype(str).isin(allowed)]
    if unknown.empty:
        return
    if use == "score" and not is_unknown.all():
        warn(_describe_wrong(unknown, crowd.classes, path))
    else:
        raise InputError(_describe_refused(unknown, crowd.classes, path, use, n_tasks=len(here)))


def warn_contradiction(truth: pd.Series, crowd: Crowd, path: Path, *, use: Use) -> None:
    """Warn if labels that are inferred without the truth agree with it far less than the votes lead one to expect.

    Two binomial tests lead to a warning: the agreement is below the interval of the expected accuracy on these tasks; or it is
    below the expected accuracy and not above chance. The second finds a truth of other tasks by few labels, and does not warn of a
    crowd that errs more often than others.

    Parameters
    ----------
    truth : Series
        Truth by task.
    crowd : Crowd
        Votes.
    path : Path
        File of the truth.
    use : {"gold", "score", "checks", "decisions"}
        Use of the truth.
    """
    import numpy as np
    import pandas as pd
    from scipy.stats import binom

    from wisecrowd.cli._console import warn
    from wisecrowd.data.vocabulary import locate_ids, match_id_type
    from wisecrowd.utils.text import format_percent

    if crowd.classes is None or len(crowd.classes) < 2:
        return
    tasks = locate_ids(truth.index, crowd.tasks)
    true_code = crowd.classes.get_indexer(match_id_type(pd.Index(truth), crowd.classes))
    is_compared = tasks >= 0
    is_compared[is_compared] = crowd.select_observed().votes_per_task[tasks[is_compared]] > 0
    tasks, true_code = tasks[is_compared], true_code[is_compared]
    estimate = _infer_without_gold(crowd) if len(tasks) else None
    if estimate is None:
        return
    labels = np.asarray(estimate.label)[tasks]
    n_equal, n_tasks = int((labels == true_code).sum()), len(tasks)
    expected = estimate.calibration.expect_accuracy(estimate.score[tasks])
    # Agreement of labels and truth of different tasks, by their frequencies.
    chance = sum(float((labels == code).mean() * (true_code == code).mean()) for code in range(len(crowd.classes)))
    is_below_expected = binom.cdf(n_equal, n_tasks, expected.accuracy) < CONTRADICTION_LEVEL
    is_below_interval = binom.cdf(n_equal, n_tasks, expected.low) < CONTRADICTION_LEVEL
    is_above_chance = binom.sf(n_equal - 1, n_tasks, chance) < CONTRADICTION_LEVEL
    if not is_below_interval and (not is_below_expected or is_above_chance):
        return
    by_chance = "" if is_above_chance else f", and {format_percent(chance)} would be equal by chance"
    name = {"gold": "gold labels contradict", "checks": "checks contradict"}.get(use, "true labels contradict")
    warn(
        f"the {name} the votes: {n_equal:,} of {n_tasks:,} ({format_percent(n_equal / n_tasks)}) equal the labels that are "
        f"inferred from the votes alone, but {format_percent(expected.accuracy)} of these labels are expected to be right"
        f"{by_chance}; check that ids and labels of {path} belong to these votes and that no row is shifted"
    )


def _infer_without_gold(crowd: Crowd) -> LabelConfidence | None:
    """Return labels with their confidence by the votes alone; of majority vote if the default method would take long."""
    from wisecrowd.base.default_method import DEFAULT_METHOD
    from wisecrowd.base.registry import find
    from wisecrowd.cli._fitting import MAX_ASSESSED_CELLS, MAX_ASSESSED_VOTES
    from wisecrowd.errors import InputError, ignore_fit_warnings
    from wisecrowd.evaluate.confidence import estimate_confidence

    is_small = crowd.n_votes <= MAX_ASSESSED_VOTES and crowd.n_votes * crowd.n_classes <= MAX_ASSESSED_CELLS
    votes = crowd.select_observed()
    try:
        with ignore_fit_warnings():
            method: Any = find(DEFAULT_METHOD if is_small else "majority-vote")
            return estimate_confidence(method().fit(votes), votes)
    except InputError:  # too many rare classes; the fit of the command says so
        return None


def _describe_wrong(unknown: pd.Series, classes: pd.Index, path: Path) -> str:
    """Return a warning about true classes that nobody voted for, which count as errors of every method."""
    from wisecrowd.errors import preview, suggest_name
    from wisecrowd.utils.text import count_noun

    names = list(dict.fromkeys(map(str, unknown)))
    undecided = _describe_undecided(names)
    return (
        f"{path}: no label of the crowd is {preview(names)}, so {count_noun(len(unknown), 'task')} of known truth "
        f"{'counts' if len(unknown) == 1 else 'count'} as wrong."
        f"{f' {undecided}' if undecided else suggest_name(names[0], map(str, classes))}"
    )


def _describe_refused(unknown: pd.Series, classes: pd.Index, path: Path, use: Use, n_tasks: int) -> str:
    """Return an error about true classes that no vote names: the rows, the nearest classes, and what to do."""
    from wisecrowd.errors import preview
    from wisecrowd.io.tables.spellings import match_spellings

    names = list(dict.fromkeys(map(str, unknown)))
    columns = "Is this the column of the true labels, and are these the votes? Name it with --gold-label COLUMN"
    if len(unknown) == n_tasks and n_tasks > 1:
        text = f"{path}: none of its {n_tasks:,} true labels is a class of the votes"
    else:
        noun = "row has" if len(unknown) == 1 else "rows have"
        text = f"{path}: {len(unknown):,} {noun} a class that no vote names"
    rows = [
        f"{preview([label])} for task {preview([task])}{_suggest_class(str(label), classes)}"
        for task, label in list(unknown.items())[:SHOWN]
    ]
    text += f": {'; '.join(rows)}{'; …' * (len(unknown) > SHOWN)}. The classes are {preview(classes, 5)}."
    matched = match_spellings(unknown.drop_duplicates().pipe(_as_index), classes)
    if matched.isin(classes).all():
        return f"{text} They differ only in spelling: add --normalise"
    if use == "score":
        return f"{text} {columns}"
    if use == "decisions":
        return f"{text} Correct them in the table, or settle these tasks on the page: empty their truth"
    listed = ",".join(names[:SHOWN])
    if undecided := _describe_undecided(names):
        others = " Correct the others" if len(unknown[~unknown.astype(str).isin(_select_undecided(names))]) else ""
        return f"{text} {undecided}.{others}"
    if use == "checks":
        return f"{text} Correct them; if it is a true class that no vote names, say so: --new-classes {listed}"
    all_classes = ",".join([*map(str, classes[:5]), *["…"] * (len(classes) > 5), listed])
    advice = f"Correct them; if no vote names a true class, list all classes: --classes {all_classes}"
    return f"{text} {columns}. {advice}" if len(unknown) == n_tasks and n_tasks > 1 else f"{text} {advice}"


def _select_undecided(names: Sequence[str]) -> list[str]:
    """Return the texts that say that a person could not decide."""
    return [name for name in names if name.strip().casefold() in UNDECIDED]


def _describe_undecided(names: Sequence[str]) -> str:
    """Return advice about texts for tasks that a person could not decide; empty if there are none."""
    from wisecrowd.errors import preview

    undecided = _select_undecided(names)
    if not undecided:
        return ""
    verb = "reads" if len(undecided) == 1 else "read"
    return f"{preview(undecided)} {verb} as undecided: leave such cells blank, and the tasks are left out"


def _suggest_class(label: str, classes: pd.Index) -> str:
    from wisecrowd.errors import suggest_name

    suggestion = suggest_name(label, map(str, classes)).strip()
    return f" ({suggestion[0].lower()}{suggestion[1:]})" if suggestion else ""


def _as_index(values: pd.Series) -> pd.Index:
    import pandas as pd

    return pd.Index(values.astype(str))


def read_column(
    path: Path, reading: GoldReading, name: str, *, numeric: bool = False, tasks: pd.Index | None = None
) -> pd.Series | None:
    """Return a further column of a table of truth by task, or None if it has none.

    Parameters
    ----------
    path : Path
        Table of truth.
    reading : GoldReading
        Options by which the votes were read, and the columns of the truth.
    name : str
        Name of the column.
    numeric : bool, default=False
        Read the column as numbers.
    tasks : Index, optional
        Tasks of the votes, by which the column of tasks is recognised.

    Returns
    -------
    Series or None
    """
    from wisecrowd.io import VoteSource
    from wisecrowd.io.problems import MissingColumn

    source = VoteSource.detect(resolve_path(path))
    if source.format.is_tool:
        from wisecrowd.io.tools.question_votes import read_draw

        return read_draw(source.read_export(), name)
    for task in dict.fromkeys([reading.gold_task or reading.task, reading.gold_task]):
        try:
            return source.read_truth(task=task, truth=name, numeric=numeric, vote_names=_get_vote_names(None, tasks))
        except MissingColumn:
            continue
    return None
