"""Scores of judges on the command line: ``wisecrowd aggregate`` and ``wisecrowd diagnose``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from wisecrowd.base.default_method import DEFAULT_METHODS
from wisecrowd.cli import _fitting as fitting
from wisecrowd.cli._console import heading, shorten_id, show, show_hanging, show_progress, table
from wisecrowd.cli._members import CONFUSION, JUDGES, make_judge_confusion

if TYPE_CHECKING:
    import pandas as pd

    from wisecrowd.cli._reading import GoldReading, Reading
    from wisecrowd.data.scores import ScoreCrowd
    from wisecrowd.io.answer_tables import AnswerTable
    from wisecrowd.io.tools.answer_questions import AnswerQuestion


#: Judges shown; the files contain all.
SHOWN = 12


def read_scores(answers: AnswerTable | AnswerQuestion, reading: Reading, *, keep_repeated: bool = False) -> ScoreCrowd:
    """Read scores by the options of a command.

    Parameters
    ----------
    answers : AnswerTable
        Table of scores.
    reading : Reading
        Options for reading.
    keep_repeated : bool, default=False
        Keep repeated scores unless the user chose another rule.

    Returns
    -------
    ScoreCrowd
    """
    from wisecrowd.data.scores import ScoreCrowd
    from wisecrowd.errors import UsageError

    if reading.weight is not None or reading.normalise:
        raise UsageError(f"{answers.source.path} holds {answers.description}; leave out --weight and --normalise")
    classes = parse_classes(reading)
    rule = "keep" if keep_repeated and reading.duplicates == "error" else reading.duplicates
    scores = answers.read(duplicates=rule, missing=reading.missing, classes=classes)
    assert isinstance(scores, ScoreCrowd)
    return scores


def read_score_truth(
    path: Path | None, reading: GoldReading, scores: ScoreCrowd, beside: Path | None = None
) -> pd.Series | None:
    """Read known truth beside scores, and compare its tasks with theirs.

    Parameters
    ----------
    path : Path or None
        File of the truth.
    reading : GoldReading
        Options for reading.
    scores : ScoreCrowd
        Scores.
    beside : Path, optional
        Other table of truth of the same command.

    Returns
    -------
    Series or None
        Truth by task; None without a file.
    """
    from wisecrowd.cli._truth_files import check_truth_tasks, read_truth

    if path is None:
        return None
    truth = read_truth(path, reading, beside=beside, tasks=scores.tasks)
    check_truth_tasks(truth, scores.tasks, path)
    return truth


def parse_classes(reading: Reading) -> list[str] | None:
    """Return the classes that the user listed.

    Parameters
    ----------
    reading : Reading
        Options for reading.

    Returns
    -------
    list of str or None
    """
    return None if reading.classes is None else [name.strip() for name in reading.classes.split(",")]


def aggregate_scores(
    answers: AnswerTable | AnswerQuestion,
    method: str | None,
    parameter: list[str],
    reading: GoldReading,
    *,
    gold: Path | None,
    score: Path | None,
    output: Path | None,
    proba: bool,
    save: bool,
    spreadsheet: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Infer labels from scores of judges, write the results and print a summary.

    Parameters
    ----------
    answers : AnswerTable
        Table of scores.
    method : str or None
        Method; None for the default.
    parameter : list of str
        Parameters of the method, as name=value.
    reading : GoldReading
        Options for reading.
    gold, score : Path or None
        Gold, and truth to score the labels against.
    output : Path or None
        Folder for the results.
    proba, save, spreadsheet, quiet, as_json : bool
        Options of the command.
    """
    from wisecrowd.base.run_record import describe_environment
    from wisecrowd.cli._outputs import RECORD, check_folder, rounded
    from wisecrowd.cli._spreadsheet import Guard
    from wisecrowd.cli._summary import describe_crowd
    from wisecrowd.errors import UsageError

    path = answers.source.path
    inputs = [file for file in (path, gold, score) if file is not None]
    if output is not None:
        names = [fitting.LABELS, fitting.WORKERS, JUDGES, CONFUSION, *([fitting.POSTERIOR] if proba else []), RECORD]
        check_folder(output, names, inputs)
    fitted = fitting.make_method("aggregate", method or DEFAULT_METHODS["scores"], parameter, 1)
    if "scores" not in fitted.answer_types:
        raise UsageError(
            f"{path} holds {answers.description}, and {fitted.name} takes other votes; leave -m out, or choose -m panel. To read "
            "scores as classes or numbers, name the column: --label score, --label score --numeric"
        )
    scores = read_scores(answers, reading)
    gold_truth, score_truth = (
        read_score_truth(file, reading, scores, other) for file, other in ((gold, score), (score, gold))
    )
    classes = parse_classes(reading)
    if classes is not None and fitted.classes is None:
        fitted.set_params(classes=tuple(classes))
    with show_progress(quiet=quiet):
        fitted.fit(scores, truth=gold_truth)
    summary = _summarise(fitted, gold_truth, score_truth)
    labels = rounded(fitted.labels_.to_frame().assign(confidence=fitted.posterior_.max(axis=1)))
    tables: dict[str, pd.DataFrame] = {
        fitting.LABELS: labels,
        fitting.WORKERS: fitting.with_integer_counts(fitted.workers_),
        JUDGES: fitting.with_integer_counts(fitted.judges_.drop(columns="group")),
    }
    confusion = make_judge_confusion(fitted)
    if len(confusion):
        tables[CONFUSION] = confusion
    if proba:
        tables[fitting.POSTERIOR] = rounded(fitted.proba_)
    run: dict[str, Any] = {
        "answers": answers.answer_type,
        "columns": dict(answers.columns),
        "method": fitted.name,
        "parameters": {name: value for name, value in fitted.get_params(deep=False).items() if name != "verbose"},
        "summary": summary,
        "votes": str(path),
        "command": {
            "votes": str(path), **reading.to_record(answers.source),
            "gold": fitting.path_text(gold), "score": fitting.path_text(score),
        },
        **describe_environment(scores),
    }  # fmt: skip
    written = fitting.write_run(
        output,
        tables if output is not None else {},
        run,
        Guard(on=spreadsheet),
        model=fitted if save else None,
        inputs=inputs,
    )
    facts = [
        ("Read", f"{path}: {answers.description}"),
        ("Scores", describe_crowd(scores)),
        ("Method", fitting.describe_fit(fitted)),
        *_describe(summary),
        ("Wrote", written),
    ]
    fitting.print_run(run, facts, as_json=as_json, quiet=quiet)


def parse_versions(chains: list[str] | None) -> dict[str, list[str]] | None:
    """Return versions of judges by the name of the last one.

    Parameters
    ----------
    chains : list of str or None
        Judges in order, separated by commas.

    Returns
    -------
    dict or None
    """
    from wisecrowd.errors import UsageError

    versions: dict[str, list[str]] = {}
    for chain in chains or []:
        names = [name.strip() for name in chain.split(",") if name.strip()]
        if len(names) < 2:
            raise UsageError(f"--versions takes two judges or more, in order, such as gpt-4,gpt-4o; got {chain!r}")
        versions[names[-1]] = names
    return versions or None


def diagnose_scores(
    answers: AnswerTable | AnswerQuestion,
    reading: GoldReading,
    *,
    gold: Path | None,
    texts: Path | None,
    versions: list[str] | None,
    output: Path | None,
    spreadsheet: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Diagnose judges that score tasks, write the tables and print a summary.

    Parameters
    ----------
    answers : AnswerTable
        Table of scores.
    reading : GoldReading
        Options for reading. Repeated scores are kept.
    gold, texts : Path or None
        Known truth of some tasks, and texts of the tasks.
    versions : list of str or None
        Versions of judges, in order.
    output : Path or None
        Folder for the tables.
    spreadsheet, quiet, as_json : bool
        Options of the command.
    """
    from wisecrowd.base.run_record import describe_environment
    from wisecrowd.cli._outputs import RECORD, check_folder, rounded
    from wisecrowd.cli._reading import resolve_path
    from wisecrowd.cli._spreadsheet import Guard
    from wisecrowd.cli._summary import describe_crowd
    from wisecrowd.diagnose import diagnose_judges
    from wisecrowd.report.texts import read_texts

    path = answers.source.path
    inputs = [file for file in (path, gold, texts) if file is not None]
    if output is not None:
        check_folder(output, [JUDGES, fitting.CURVES, fitting.DRIFT, RECORD], inputs)
    scores = read_scores(answers, reading, keep_repeated=True)
    truth = read_score_truth(gold, reading, scores)
    lengths = None
    if texts is not None:
        lengths = read_texts(resolve_path(texts), task=reading.task).astype(str).str.count(r"\S+")
    with show_progress(quiet=quiet):
        result = diagnose_judges(scores, gold=truth, lengths=lengths, versions=parse_versions(versions))
        run: dict[str, Any] = {
            "answers": answers.answer_type,
            "crowd": result.overview,
            "method": result.model.name,
            "votes": str(path),
            **describe_environment(scores),
        }
        tables = {JUDGES: result.judges.dropna(axis=1, how="all"), fitting.CURVES: result.curves.set_index("worker")}
        if len(result.drift):
            tables[fitting.DRIFT] = result.drift.set_index("judge")
        files = {} if output is None else {name: rounded(part) for name, part in tables.items()}
        written = fitting.write_run(output, files, run, Guard(on=spreadsheet), inputs=inputs, what="tables")
    source = "the panel’s labels" if truth is None else f"{result.overview['reference_tasks']:,} gold tasks"
    facts = [("Read", f"{path}: {answers.description}"), ("Scores", describe_crowd(scores)), ("Reference", source)]
    facts += [("Judges", sentence) for sentence in result.verdict]
    changed: Any = result.drift[result.drift["significant"]].itertuples()
    for row in changed:
        change = f"mean score {row.shift:+.2f} ± {row.shift_error:.2f}, kappa {row.kappa_change:+.2f} ± {row.kappa_error:.2f}"
        facts.append(("Changed", f"{row.before} to {row.after}: {change}"))
    fitting.print_run(run, [*facts, ("Wrote", written)], as_json=as_json, quiet=quiet)
    if not (as_json or quiet):
        _show_judges(result.judges)


def _show_judges(judges: pd.DataFrame) -> None:
    """Print the best judges, and the flagged ones."""
    ordered = judges.assign(is_flagged=judges["flags"] != "").sort_values("kappa", ascending=False, kind="stable")
    heading("Judges with the highest agreement beyond chance")
    rows = [
        [shorten_id(name), f"{row['n_scores']:,}", f"{row['accuracy']:.0%}", f"{row['kappa']:.2f}"]
        for name, row in ordered.head(SHOWN).iterrows()
    ]
    show(table(["judge", "scores", "accuracy", "kappa"], rows))
    flagged = ordered[ordered["is_flagged"]]
    if len(flagged):
        heading("Flagged judges")
    for name, row in flagged.head(SHOWN).iterrows():
        show_hanging(f"{shorten_id(name, 30)}  ", f"{row['flags']}: {row['why']}", style="bold")
    if len(flagged) > SHOWN:
        show(f"and {len(flagged) - SHOWN:,} more")


def _summarise(fitted: Any, gold: pd.Series | None, truth: pd.Series | None) -> dict[str, Any]:
    """Return the figures of a panel of scores for JSON."""
    from scipy.stats import beta

    labels = fitted.labels_
    summary: dict[str, Any] = {
        "classes": {str(name): int(count) for name, count in labels.value_counts().items()},
        "n_effective": round(float(fitted.n_effective_), 4),
        "verdict": list(fitted.verdict_),
    }
    if gold is not None:
        summary["gold"] = {"tasks": int(gold.index.isin(labels.index).sum())}
    heldout = getattr(fitted, "heldout_accuracy_", None)
    if heldout is not None:
        n_right = float(heldout.sum())
        low, high = beta.ppf([0.05, 0.95], n_right + 0.5, len(heldout) - n_right + 0.5).tolist()  # Jeffreys
        summary["expected_accuracy"] = {
            "accuracy": round(float(heldout.mean()), 4), "low": round(low, 4), "high": round(high, 4), "level": 0.9,
            "tasks": len(heldout),
        }  # fmt: skip
    if truth is not None:
        references = truth.copy()
        references.index = fitting.match_task_ids(truth, labels.index)
        if gold is not None:
            references = references[~references.index.isin(fitting.match_task_ids(gold, labels.index))]
        common = references.index.intersection(labels.index)
        share = (
            None if not len(common) else float((labels[common].astype(str) == references[common].astype(str)).mean())
        )
        summary["score"] = {"tasks": len(common), "accuracy": share}
    return summary


def _describe(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the summary lines of a panel of scores."""
    total = max(sum(summary["classes"].values()), 1)
    shares = ", ".join(f"{name} {count / total:.1%}" for name, count in list(summary["classes"].items())[:6])
    facts = [("Labels", shares)]
    if "gold" in summary:
        facts.append(("Gold", f"{summary['gold']['tasks']:,} tasks"))
    if estimate := summary.get("expected_accuracy"):
        facts.append(
            (
                "Accuracy",
                f"{estimate['accuracy']:.1%} on {estimate['tasks']:,} held-out tasks with gold or votes of people (90 % interval "
                f"{estimate['low']:.1%} to {estimate['high']:.1%})",
            )
        )
    if score := summary.get("score"):
        share = "none is in the scores" if score["accuracy"] is None else f"{score['accuracy']:.1%} right"
        facts.append(("Score", f"{share}, {score['tasks']:,} tasks with known truth that the fit did not use"))
    return [*facts, *(("Judges", sentence) for sentence in summary["verdict"])]
