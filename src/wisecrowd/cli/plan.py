"""``wisecrowd plan``: choose the next votes to collect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.cli import _fitting as fitting
from wisecrowd.cli import _members as members_file
from wisecrowd.cli._answers import refuse_objects_and_texts
from wisecrowd.cli._console import shorten_id, show, show_progress, table
from wisecrowd.cli._options import Quiet, with_options
from wisecrowd.cli._reading import GoldReading, Votes

if TYPE_CHECKING:
    import pandas as pd

    from wisecrowd.plan.acquisition import Plan

REQUESTS, CURVE, FINISHED = "requests.csv", "curve.csv", "finished.csv"
#: Requests and points of the curve shown; the files contain all.
SHOWN, POINTS = 5, 5


@with_options(GoldReading, "reading")
def plan(
    votes: Votes,
    *,
    budget: Annotated[
        float,
        typer.Option(
            metavar="N",
            show_default=False,
            help="Budget: number of votes, or money if --price is given.",
        ),
    ],
    price: Annotated[float, typer.Option(metavar="MONEY", help="Cost of a vote.")] = 1.0,
    costs: Annotated[
        str | None,
        typer.Option(
            metavar="WHO=MONEY,…",
            show_default=False,
            help="Cost of a vote by kind or worker, such as person=0.20,machine=0.01; others cost --price.",
        ),
    ] = None,
    members: members_file.MembersFile = None,
    method: fitting.Model = None,
    gold: fitting.Gold = None,
    target: Annotated[float, typer.Option(metavar="P", help="Confidence from which a task needs no more votes.")] = 0.9,
    per_task: Annotated[int, typer.Option(metavar="N", min=1, help="Maximum number of new votes per task.")] = 2,
    per_worker: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            show_default=False,
            help="Maximum number of new votes per worker. Default: a tenth of all.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Random seed.")] = 0,
    output: fitting.Output = None,
    spreadsheet: fitting.Spreadsheet = False,
    quiet: Quiet = False,
    as_json: fitting.AsJson = False,
    reading: GoldReading,
) -> None:
    """Choose which worker should label which task next, within a budget.

    Maximises the expected information of the new votes. Workers do not label a
    task twice, spammers are left out, and tasks that reached the target
    confidence are finished.

      wisecrowd plan votes.csv --budget 500
      wisecrowd plan votes.csv --budget 25 --price 0.05 --per-worker 20 -o next

    If machines label, too, the plan weighs information against cost; a further
    machine of the same group adds little. The export of a labelling tool or
    --members says which workers are machines:

      wisecrowd plan votes.csv --budget 25 --members who.csv --costs machine=0.01

    Known truth of some tasks (gold) is used in fitting and calibrates the
    confidence, as in aggregate; gold tasks are not requested:

      wisecrowd plan votes.csv --budget 500 --gold gold.csv

    Work in rounds: collect the votes, add them to the file, and plan again.

    With -o, writes requests.csv (task, worker, expected information), curve.csv
    (cost and expected accuracy), finished.csv (finished tasks) and run.json.
    """  # fmt: skip
    from wisecrowd.base.run_record import describe_environment
    from wisecrowd.cli._outputs import RECORD, check_folder, rounded
    from wisecrowd.cli._spreadsheet import Guard
    from wisecrowd.cli._summary import assessment_lines, describe_crowd
    from wisecrowd.cli._truth_files import read_truth
    from wisecrowd.plan.acquisition import plan_votes

    reading.check_gold_columns(gold)
    fitting.check_output_options(output, spreadsheet=spreadsheet)
    inputs = [path for path in (votes, members, gold) if path is not None]
    if output is not None:
        check_folder(output, [REQUESTS, CURVE, FINISHED, RECORD], inputs)
    refuse_objects_and_texts(votes, reading, "plan")
    with reading.silence_notes(quiet=quiet):
        vote_source = reading.open(votes)
        crowd, row_counts = reading.read_counted(vote_source)
        gold_truth = None if gold is None else read_truth(gold, reading, crowd, votes=vote_source)
    chosen, member_info = members_file.choose_method(method, vote_source, reading, crowd, members, quiet=quiet)
    prices = members_file.parse_costs(costs, crowd, member_info)
    with show_progress(quiet=quiet):
        vote_plan = plan_votes(
            crowd, budget, model=members_file.fit_model(chosen, crowd, member_info, gold_truth), gold=gold_truth,
            target=target, per_task=per_task, per_worker=per_worker, cost=price, costs=prices, random_state=seed,
        )  # fmt: skip
        figures = vote_plan.assessment.to_dict()
    by_kind = _by_kind(vote_plan, member_info)
    run: dict[str, Any] = {
        "figures": figures,
        "sentence": vote_plan.summary,
        "requests": len(vote_plan.requests),
        "finished": len(vote_plan.finished_tasks),
        "left_out": [str(name) for name in vote_plan.excluded_workers],
        "curve": _few(vote_plan.curve).to_dict("records"),
        **({} if by_kind is None else {"requests_by_kind": by_kind}),
        "budget": budget, "price": price, "costs": prices, "members": fitting.path_text(members),
        "gold": fitting.path_text(gold),
        "method": chosen,
        "target": target, "per_task": per_task, "per_worker": per_worker,
        "votes": str(votes), **reading.to_record(vote_source), "random_state": seed,
        **describe_environment(crowd, rows=row_counts.to_dict()),
    }  # fmt: skip
    tables = {
        REQUESTS: rounded(vote_plan.requests),
        CURVE: rounded(vote_plan.curve),
        FINISHED: rounded(vote_plan.finished_tasks),
    }
    written = fitting.write_run(output, tables, run, Guard(on=spreadsheet), inputs=inputs, what="requests")
    fitting.warn_assessment(vote_plan.assessment)
    facts = [
        ("Read", str(votes)),
        ("Votes", describe_crowd(crowd)),
        *assessment_lines(vote_plan.assessment),
        ("Wrote", written),
    ]
    fitting.print_run(run, facts, as_json=as_json, quiet=quiet)
    if not (as_json or quiet):
        _show(vote_plan, has_price=price != 1 or prices is not None)
        if by_kind and len(vote_plan.requests):
            show(f"Of the requests, {by_kind['person']:,} go to people and {by_kind['machine']:,} to machines.")


def _by_kind(vote_plan: Plan, member_info: members_file.Members) -> dict[str, int] | None:
    """Return the number of planned votes by people and by machines, or None if kinds are unknown."""
    if member_info.kinds is None:
        return None
    kinds = vote_plan.requests["worker"].astype(str).map(member_info.kinds)
    return {kind: int((kinds == kind).sum()) for kind in ("person", "machine")}


def _few(curve: pd.DataFrame) -> pd.DataFrame:
    """Return a few points of a curve, including both ends."""
    import numpy as np

    return curve.iloc[np.unique(np.linspace(0, len(curve) - 1, POINTS).round().astype(int))]


def _show(vote_plan: Plan, *, has_price: bool) -> None:
    if len(vote_plan.requests):
        show()
        has_costs = "cost" in vote_plan.requests
        rows = [
            [shorten_id(ask.task), shorten_id(ask.worker), *([f"{ask.cost:,.6g}"] if has_costs else []),
             f"{ask.confidence:.2f}", f"{ask.expected_confidence:.2f}"]
            for ask in vote_plan.requests.head(SHOWN).itertuples()
        ]  # fmt: skip
        show(table(["task", "worker", *["cost"] * has_costs, "confidence", "expected after"], rows, n_text_columns=2))
        if len(vote_plan.requests) > SHOWN:
            show(f"and {len(vote_plan.requests) - SHOWN:,} more")
        show()
        columns = ["votes", *(["money"] if has_price else []), "expected accuracy"]
        points = [
            [f"{row.votes:,}", *([f"{row.money:,.2f}"] if has_price else []), f"{row.expected_accuracy:.3f}"]
            for row in _few(vote_plan.curve).itertuples()
        ]
        show(table(columns, points))
    show()
    show(vote_plan.summary, style="bold")
