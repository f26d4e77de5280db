"""``wisecrowd evaluate``: rates, differences and rankings of systems, from scores of judges and few labels of people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.cli import _fitting as fitting
from wisecrowd.cli._console import shorten_id, show, table
from wisecrowd.cli._options import Quiet, flag

if TYPE_CHECKING:
    import pandas as pd

    from wisecrowd.cli._spreadsheet import Guard
    from wisecrowd.data.comparisons import Comparisons
    from wisecrowd.evaluate.judged_systems import JudgedEstimate, SystemRanking
    from wisecrowd.evaluate.label_plan import LabelPlan
    from wisecrowd.evaluate.prediction_powered import Interval

#: Files: estimates, items to label next, and the design that goes with the labels.
ESTIMATES, NEXT, ITEMS = "estimates.csv", "next.csv", "items.csv"
#: Exit code if the interval is too wide, or the rate is not surely beyond a threshold.
TARGET_MISSED = 3
#: Systems shown; the file contains all.
SHOWN = 20
#: Panel of options about the design of the sample.
DESIGN = "Sample of labelled items"
TARGET = "Target (exit code 3 if missed)"


def evaluate(
    scores: Annotated[
        list[Path],
        typer.Argument(
            metavar="SCORES...",
            show_default=False,
            help="Scores of judges: table with task, judge, score and optionally system; log of Inspect, promptfoo, lm-eval, "
            "DeepEval or MLflow; or comparisons. Several files, such as one for each system, are combined.",
        ),
    ],
    *,
    labels: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Labels of people: table with task, label and optionally rater and system.",
        ),
    ] = None,
    system: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            show_default=False,
            help="System: one for its rate, two for their difference (first minus second). By default, all are ranked.",
        ),
    ] = None,
    positive: Annotated[
        str | None,
        typer.Option(metavar="CLASS", show_default=False, help="Class whose rate is wanted, if labels are words."),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(metavar="NAME", show_default=False, help="Metric that people judged, if a log has several."),
    ] = None,
    items: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            rich_help_panel=DESIGN,
            help="Design: table with task, and inclusion (probability of being labelled), stratum or cluster.",
        ),
    ] = None,
    population: Annotated[
        str,
        typer.Option(
            metavar="WHAT",
            rich_help_panel=DESIGN,
            help="Target: the source of the items, or exactly these items: source or items.",
        ),
    ] = "source",
    raters: Annotated[
        str,
        typer.Option(
            metavar="WHO",
            rich_help_panel=DESIGN,
            help="People like the raters, or exactly these raters: population or panel.",
        ),
    ] = "population",
    level: Annotated[float, typer.Option(metavar="P", help="Confidence level of intervals.")] = 0.95,
    within: Annotated[
        float | None,
        typer.Option(
            metavar="W", show_default=False, rich_help_panel=TARGET, help="Largest half width of the interval."
        ),
    ] = None,
    at_least: Annotated[
        float | None,
        typer.Option(
            metavar="X", show_default=False, rich_help_panel=TARGET, help="The interval must lie at or above X."
        ),
    ] = None,
    at_most: Annotated[
        float | None,
        typer.Option(
            metavar="X", show_default=False, rich_help_panel=TARGET, help="The interval must lie at or below X."
        ),
    ] = None,
    benchmark: Annotated[
        bool,
        flag(
            "--benchmark",
            help="Fit item response theory to models x items instead: abilities, difficulties, defects. --labels is the key.",
        ),
    ] = False,
    plan: Annotated[
        bool, flag("--plan", help="Say how many more labels are needed for --within, and choose the items.")
    ] = False,
    size: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, show_default=False, help="With --plan: number of items to choose, instead of --within."
        ),
    ] = None,
    design: Annotated[
        str, typer.Option(metavar="NAME", help="With --plan: active (uncertain items more often) or random.")
    ] = "active",
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            show_default=False,
            help="Format of SCORES, if it is not recognised: inspect, promptfoo, lm-eval, deepeval, mlflow or table.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Random seed of folds and plans.")] = 0,
    output: fitting.Output = None,
    spreadsheet: fitting.Spreadsheet = False,
    quiet: Quiet = False,
    as_json: fitting.AsJson = False,
) -> None:
    """Estimate the rate of a property, a difference or a ranking from judges and few people.

    Judges score all outputs, people label a random sample of them. The estimate
    corrects the judges by the people, and is shown beside that of people alone:

      wisecrowd evaluate scores.csv --labels labels.csv

    With several systems in the scores, all are ranked; name one for its rate and
    two for their difference. Comparisons of judges and people (left, right,
    winner) are ranked by Bradley-Terry scores:

      wisecrowd evaluate scores.csv --labels labels.csv --system new --system old
      wisecrowd evaluate judges.csv --labels people.csv

    How many more labels for an interval of +-0.03, and which items?

      wisecrowd evaluate scores.csv --labels labels.csv --plan --within .03 -o out

    A benchmark as a test: which models are able, and which items are mis-keyed,
    redundant or without information?

      wisecrowd evaluate gpt.eval claude.eval --benchmark --metric match

    Label out/next.csv, append it to the labels, and add --items out/items.csv.
    Exit codes: 0 within the target, 1 bad input, 2 bad usage, 3 target missed.
    """  # fmt: skip
    from wisecrowd.base.run_record import describe_versions
    from wisecrowd.cli._outputs import RECORD, check_folder
    from wisecrowd.cli._spreadsheet import Guard
    from wisecrowd.errors import UsageError

    if plan and within is None and size is None:
        raise UsageError("--plan needs --within W, the half width that you aim at, or --size N")
    if not plan and size is not None:
        raise UsageError("--size goes with --plan")
    if system is not None and len(system) > 2:
        raise UsageError(f"name one system for its rate or two for their difference; got {len(system)}. None ranks all")
    fitting.check_output_options(output, spreadsheet=spreadsheet)
    inputs = [path for path in (*scores, labels, items) if path is not None]
    if benchmark:
        if plan or system is not None or items is not None or (within, at_least, at_most) != (None, None, None):
            raise UsageError("--benchmark goes with --labels, --metric, --format and --level only")
        _run_benchmark(
            scores, labels, metric, format, level, output, Guard(on=spreadsheet), quiet=quiet, as_json=as_json
        )
        return
    if output is not None:
        check_folder(output, [ESTIMATES, NEXT, ITEMS, RECORD], inputs)
    options: dict[str, Any] = {"population": population, "raters": raters, "level": level, "random_state": seed}
    comparisons = None if format is not None or len(scores) > 1 else _read_comparisons(scores[0], labels)
    facts: list[tuple[str, str]] = [("Read", ", ".join(map(str, scores)))]
    tables: dict[str, Any] = {}
    label_plan = None
    if comparisons is not None:
        if plan:
            raise UsageError("--plan is for scores; wisecrowd plan chooses comparisons")
        result = _evaluate_comparisons(comparisons, system, options)
    else:
        result, label_plan = _evaluate_scores(
            scores, labels, items, format, metric, positive, system, options,
            (within, size, design) if plan else None, facts,
        )  # fmt: skip
    summary: dict[str, Any] = result.to_dict()
    intervals = _list_intervals(result)
    facts += _describe_result(result)
    missed = _find_missed(intervals, within, at_least, at_most)
    if label_plan is not None:
        facts += _describe_plan(label_plan)
        tables |= {NEXT: _make_form(label_plan), ITEMS: _round(label_plan.items.drop(columns="chosen"))}
        summary["plan"] = {
            "further_items": label_plan.n_more,
            "half_width": round(label_plan.half_width, 6),
            "expected_half_width": round(label_plan.expected_half_width, 6),
            "reachable": label_plan.reachable,
        }
    if (within, at_least, at_most) != (None, None, None):
        facts.append(("Target", "met" if not missed else f"missed: {'; '.join(missed)}"))
        summary["target_missed"] = missed
    tables[ESTIMATES] = _make_table(result)
    run: dict[str, Any] = {
        "command": {
            "scores": [str(path) for path in scores], "labels": fitting.path_text(labels), "items": fitting.path_text(items),
            "system": system, "positive": positive, "metric": metric, **options, "within": within, "at_least": at_least,
            "at_most": at_most, "plan": plan, "size": size, "design": design,
        },
        "summary": summary,
        **describe_versions(),
    }  # fmt: skip
    written = fitting.write_run(output, tables if output is not None else {}, run, Guard(on=spreadsheet), inputs=inputs)
    fitting.print_run(run, [*facts, ("Wrote", written)], as_json=as_json, quiet=quiet)
    if not (as_json or quiet):
        _show_ranking(result)
    if missed:
        raise typer.Exit(TARGET_MISSED)


def _run_benchmark(
    scores: list[Path],
    labels: Path | None,
    metric: str | None,
    format: str | None,
    level: float,
    output: Path | None,
    guard: Guard,
    *,
    quiet: bool,
    as_json: bool,
) -> None:
    """Diagnose models and items of a benchmark, and write and print the results."""
    from wisecrowd.base.run_record import describe_versions
    from wisecrowd.cli import _benchmark_items as items_file
    from wisecrowd.cli._outputs import RECORD, check_folder, rounded

    inputs = [path for path in (*scores, labels) if path is not None]
    if output is not None:
        check_folder(output, [items_file.MODELS, items_file.BENCHMARK_ITEMS, RECORD], inputs)
    diagnosis = items_file.diagnose_logs(scores, labels, metric, format, level)
    tables = {items_file.MODELS: rounded(diagnosis.models), items_file.BENCHMARK_ITEMS: rounded(diagnosis.items)}
    run: dict[str, Any] = {
        "command": {
            "scores": [str(path) for path in scores], "labels": fitting.path_text(labels), "metric": metric, "level": level,
        },
        "summary": {
            "models": len(diagnosis.models),
            "items": len(diagnosis.items),
            "items_for_most_information": diagnosis.n_for_most,
            "flagged": {str(name): int(n) for name, n in diagnosis.items["flag"].value_counts().items() if name != ""},
            "notes": list(diagnosis.notes),
        },
        **describe_versions(),
    }  # fmt: skip
    written = fitting.write_run(output, tables if output is not None else {}, run, guard, inputs=inputs)
    facts = [("Read", ", ".join(map(str, scores))), *items_file.describe_benchmark(diagnosis), ("Wrote", written)]
    fitting.print_run(run, facts, as_json=as_json, quiet=quiet)
    if not (as_json or quiet):
        items_file.show_benchmark(diagnosis)


def _read_comparisons(scores: Path, labels: Path | None) -> tuple[Comparisons, Comparisons] | None:
    """Return the comparisons of judges and of people, or None if the file holds scores."""
    from wisecrowd.cli._reading import resolve_path
    from wisecrowd.errors import InputError, WisecrowdError
    from wisecrowd.io.answer_tables import AnswerTable, find_answer_table

    path = resolve_path(scores)
    if not path.exists():
        raise InputError(f"{scores} does not exist; check the path")
    try:
        answers = find_answer_table(path)
    except WisecrowdError:  # an evaluation log is no format of votes
        return None
    if not isinstance(answers, AnswerTable) or answers.answer_type != "pairwise":
        return None
    if labels is not None:
        from wisecrowd.io.answer_tables import read_comparisons

        parts = [read_comparisons(each, duplicates="keep", swapped="keep") for each in (path, labels)]
        return parts[0], parts[1]
    return _divide_comparisons(answers)


def _divide_comparisons(answers: Any) -> tuple[Comparisons, Comparisons]:
    """Return the comparisons of machines and of persons in one table with the column ``kind``."""
    import pyarrow.compute as pc

    from wisecrowd.errors import UsageError
    from wisecrowd.io.answer_tables import build_answers
    from wisecrowd.io.problems import prefix_errors

    source = answers.source
    if "kind" not in source.format.reader.read_names(source.path):
        raise UsageError(
            "comparisons of people are missing; give them with --labels FILE, or mark rows in a column kind"
        )
    with prefix_errors(source.path):
        rows = source.format.reader.read_columns(source.path, [*dict.fromkeys([*answers.columns.values(), "kind"])])
        is_person = pc.is_in(pc.utf8_lower(rows["kind"].cast("string")), value_set=_people_words())
        parts = [
            build_answers("pairwise", rows.filter(mask), answers.columns, duplicates="keep", swapped="keep")
            for mask in (pc.invert(is_person), is_person)
        ]
    return parts[0], parts[1]  # type: ignore[return-value]  # comparisons


def _people_words() -> Any:
    import pyarrow as pa

    return pa.array(["person", "people", "human", "humans"])


def _evaluate_comparisons(
    comparisons: tuple[Comparisons, Comparisons], system: list[str] | None, options: dict[str, Any]
) -> JudgedEstimate | SystemRanking:
    from wisecrowd.errors import UsageError
    from wisecrowd.evaluate import difference, rank

    judges, people = comparisons
    if system is None:
        return rank(judges, people, **options)
    if len(system) == 1:
        raise UsageError("comparisons rank systems, or give the difference of two; name two systems, or none")
    return difference(judges, people, systems=system, **options)


def _evaluate_scores(
    paths: list[Path],
    labels: Path | None,
    items: Path | None,
    format: str | None,
    metric: str | None,
    positive: str | None,
    system: list[str] | None,
    options: dict[str, Any],
    plan: tuple[float | None, int | None, str] | None,
    facts: list[tuple[str, str]],
) -> tuple[JudgedEstimate | SystemRanking, LabelPlan | None]:
    """Return the estimate and, if asked for, the plan."""
    from wisecrowd.cli._reading import resolve_path
    from wisecrowd.errors import UsageError
    from wisecrowd.evaluate import difference, plan_labels, rank, rate
    from wisecrowd.evaluate.evaluation_items import EvaluationItems
    from wisecrowd.io.evaluations.evaluation_log import combine_logs, read_evaluation_log

    log = combine_logs([read_evaluation_log(resolve_path(path), format=format) for path in paths])
    if labels is None:
        people = log.select_metric(metric)
        if people.empty:
            raise UsageError(
                "labels of people are missing: give them with --labels FILE. Judges alone cannot say how far they are off"
            )
    else:
        people = _read_people(labels)
    design = None if items is None else _read_design(items)
    table = EvaluationItems.from_tables(
        log.scores, people.drop(columns="metric", errors="ignore"), items=design, positive=positive
    )
    facts.append(("Judges", f"{len(table.judges):,} on {table.n_items:,} items of {len(table.systems):,} systems"
                  if len(table.systems) > 1 else f"{len(table.judges):,} on {table.n_items:,} items"))  # fmt: skip
    facts.append(("People", f"{len(table.rating):,} labels on {table.n_labelled:,} items"))
    result: JudgedEstimate | SystemRanking
    if system is None and len(table.systems) > 1:
        result = rank(table, **options)
    elif system is not None and len(system) == 2:
        result = difference(table, systems=system, **options)
    else:
        result = rate(table, system=system[0] if system else None, **options)
    if plan is None:
        return result, None
    within, size, name = plan
    target = {"half_width": within} if size is None else {"size": size}
    return result, plan_labels(table, systems=system, design=name, **target, **options)  # type: ignore[arg-type]


def _read_people(path: Path) -> pd.DataFrame:
    """Return a table of labels with the names of columns that people use for raters."""
    from wisecrowd.cli._reading import resolve_path
    from wisecrowd.io.evaluations.evaluation_log import read_evaluation_log

    log = read_evaluation_log(resolve_path(path), format="table")
    rows = log.scores.rename(columns={"judge": "rater", "score": "label"}) if log.labels.empty else log.labels
    # A table without raters has an empty name for all; the estimate then says that raters are unknown.
    return rows.drop(columns="rater") if (rows["rater"].astype(str) == "").all() else rows


def _read_design(path: Path) -> pd.DataFrame:
    """Return the table of the design."""
    from wisecrowd.cli._reading import resolve_path
    from wisecrowd.errors import InputError
    from wisecrowd.io.formats import find_format
    from wisecrowd.io.problems import prefix_errors

    file = resolve_path(path)
    with prefix_errors(file):
        reader = find_format(file).reader
        if reader.read_names is None or reader.read_columns is None:
            raise InputError("it is no table; expected task, and inclusion, stratum or cluster")
        names = [
            name
            for name in reader.read_names(file)
            if name in ("task", "system", "inclusion", "stratum", "cluster", "prompt")
        ]
        return reader.read_columns(file, names).to_pandas()


def _list_intervals(result: JudgedEstimate | SystemRanking) -> list[tuple[str, float, float]]:
    """Return the name and the bounds of every interval."""
    from wisecrowd.evaluate.judged_systems import JudgedEstimate

    if isinstance(result, JudgedEstimate):
        return [(" − ".join(result.systems), result.corrected.low, result.corrected.high)]
    columns = result.table[["low", "high"]].to_numpy()
    return [(str(name), float(low), float(high)) for name, (low, high) in zip(result.table.index, columns, strict=True)]


def _find_missed(
    intervals: list[tuple[str, float, float]], within: float | None, at_least: float | None, at_most: float | None
) -> list[str]:
    """Return the targets that are missed, in words."""
    missed = []
    for name, low, high in intervals:
        if within is not None and (high - low) / 2 > within:
            missed.append(f"the interval of {name} is ±{(high - low) / 2:.3f}, not ±{within:g}")
        if at_least is not None and low < at_least:
            missed.append(f"{name} may be as low as {low:.3f}, below {at_least:g}")
        if at_most is not None and high > at_most:
            missed.append(f"{name} may be as high as {high:.3f}, above {at_most:g}")
    return missed


def _describe_result(result: JudgedEstimate | SystemRanking) -> list[tuple[str, str]]:
    """Return lines about the estimate."""
    from wisecrowd.evaluate.judged_systems import JudgedEstimate

    if not isinstance(result, JudgedEstimate):
        what = "mean labels" if result.scale == "mean" else "Bradley–Terry scores in logits"
        level = f"{100 * result.level:g} %"
        facts = [
            ("Systems", f"{len(result.table):,} by {what}; intervals of {level}, ranks hold together with {level}")
        ]
        return facts + [("Note", note) for note in result.notes]
    facts = [
        ("Estimate" if len(result.systems) == 1 else "Difference", f"{result.corrected}, by people and judges"),
        ("People only", str(result.people_only)),
    ]
    if result.judges_only is not None:
        facts.append(("Judges only", f"{result.judges_only:.3f}, not corrected by people"))
    facts.append(
        (
            "Worth",
            f"the judges were worth {result.labels_saved:,.0f} labelled items beside the {result.n_labelled:,} there are",
        )
    )
    if result.rater_share > 0:
        facts.append(
            (
                "Raters",
                f"{result.rater_share:.0%} of the variance is the severity of the {result.n_raters:,} raters",
            )
        )
    return facts + [("Note", note) for note in result.notes]


def _describe_plan(plan: LabelPlan) -> list[tuple[str, str]]:
    """Return lines about the plan."""
    if plan.n_more == 0:
        return [("Plan", f"no further labels: the interval is within ±{plan.half_width:.3g} already")]
    text = f"label {plan.n_more:,} more items ({NEXT}); the interval is then expected to be ±{plan.expected_half_width:.3g}"
    if not plan.reachable:
        text = (
            f"±{plan.half_width:.3g} is out of reach: with labels on all items, the interval is about "
            f"±{plan.expected_half_width:.3g}; collect more outputs, or ask more raters"
        )
    return [("Plan", text)]


def _make_form(plan: LabelPlan) -> pd.DataFrame:
    """Return the table of items to label, with an empty column for the label."""
    chosen = _round(plan.chosen)
    chosen.insert(2, "label", "")
    if chosen["system"].nunique() == 1 and chosen["system"].iloc[0] == "all":
        chosen = chosen.drop(columns="system")
    return chosen


def _round(frame: pd.DataFrame) -> pd.DataFrame:
    """Return probabilities with enough digits for weights."""
    frame = frame.round({"inclusion": 9})
    if "system" in frame and (frame["system"] == "all").all():
        frame = frame.drop(columns="system") if "labelled" in frame else frame
    return frame.reset_index(drop=True)


def _make_table(result: JudgedEstimate | SystemRanking) -> pd.DataFrame:
    """Return the estimates as a table: a row for each system, or for each way of estimation."""
    import pandas as pd

    from wisecrowd.cli._outputs import DECIMALS
    from wisecrowd.evaluate.judged_systems import JudgedEstimate

    if not isinstance(result, JudgedEstimate):
        return result.table.round(DECIMALS).reset_index()

    def describe(by: str, interval: Interval) -> dict[str, Any]:
        return {"system": " − ".join(result.systems), "by": by, **interval.to_dict()}

    rows = [describe("people and judges", result.corrected), describe("people only", result.people_only)]
    return pd.DataFrame(rows).round(DECIMALS)


def _show_ranking(result: JudgedEstimate | SystemRanking) -> None:
    """Print the best systems with ranks, beside the estimates of people alone."""
    from wisecrowd.evaluate.judged_systems import JudgedEstimate

    if isinstance(result, JudgedEstimate):
        return
    rows = [
        (
            shorten_id(name, 30),
            f"{row['rank_low']:.0f}–{row['rank_high']:.0f}",
            *(f"{row[key]:.3f}" for key in ("estimate", "low", "high", "people_estimate", "people_low", "people_high")),
            f"{row['n_labelled']:.0f}",
        )
        for name, row in result.table.iterrows()
    ]
    show()
    columns = ["system", "ranks", "estimate", "low", "high", "people", "low", "high", "labels"]
    show(table(columns, rows[:SHOWN]))
    if len(rows) > SHOWN:
        show(f"and {len(rows) - SHOWN:,} more")
