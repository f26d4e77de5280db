"""``wisecrowd plan``: which votes to buy next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.cli import _fitting as fitting
from wisecrowd.cli import _members as who
from wisecrowd.cli._console import shortened, show, table, watched
from wisecrowd.cli._options import Quiet, with_options
from wisecrowd.cli._reading import Reading, Votes

if TYPE_CHECKING:
    import pandas as pd

    from wisecrowd.plan.acquisition import Plan

ASKS, CURVE, FINISHED = "asks.csv", "curve.csv", "finished.csv"
#: Questions, and points of the curve, to show; all are in the files.
SHOWN, POINTS = 5, 5


@with_options(Reading)
def plan(
    votes: Votes,
    *,
    budget: Annotated[
        float,
        typer.Option(
            metavar="N",
            show_default=False,
            help="What may be spent: votes, or money where --price says what one costs.",
        ),
    ],
    price: Annotated[float, typer.Option(metavar="MONEY", help="What a vote costs.")] = 1.0,
    costs: Annotated[
        str | None,
        typer.Option(
            metavar="WHO=MONEY,…",
            show_default=False,
            help="What a vote costs by kind or worker, such as person=0.20,machine=0.01; others cost --price.",
        ),
    ] = None,
    members: who.MembersFile = None,
    method: fitting.Model = None,
    target: Annotated[
        float, typer.Option(metavar="P", help="How probable a label must be for its task to need no more votes.")
    ] = 0.95,
    per_task: Annotated[int, typer.Option(metavar="N", min=1, help="Questions about a task at most.")] = 2,
    per_worker: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, show_default=False, help="Questions to a worker at most; a tenth of all unless given."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of all that is drawn.")] = 0,
    output: fitting.Output = None,
    spreadsheet: fitting.Spreadsheet = False,
    quiet: Quiet = False,
    as_json: fitting.AsJson = False,
    reading: Reading,
) -> None:
    """Whom to ask about what next, for the money that is left?

    Questions are chosen by how much their answers are expected to tell: about tasks that are open, of workers who know. Who has
    answered is not asked again, spammers are not asked at all, and tasks that are settled may stop.

      wisecrowd plan votes.csv --budget 500
      wisecrowd plan votes.csv --budget 25 --price 0.05 --per-worker 20 -o next

    Where machines vote, too, the question is taken that tells most for its price: of one more person or one more machine, which is
    expected to tell little that others of its group have not told. An export of a labelling tool tells who is a machine, or
    --members does:

      wisecrowd plan votes.csv --budget 25 --costs person=0.20,machine=0.01 --members members.csv

    Buy in rounds: ask, add the answers to the votes, and plan again.

    Writes asks.csv (task, worker, what the answer is worth), curve.csv (money and expected accuracy), finished.csv (tasks that may
    stop) and run.json with -o.
    """  # fmt: skip
    from wisecrowd.base.provenance import surroundings
    from wisecrowd.cli._outputs import RECORD, check_folder, rounded
    from wisecrowd.cli._spreadsheet import Guard
    from wisecrowd.cli._summary import size
    from wisecrowd.plan.acquisition import plan as planned

    fitting.needs_folder(output, spreadsheet=spreadsheet)
    inputs = [path for path in (votes, members) if path is not None]
    if output is not None:
        check_folder(output, [ASKS, CURVE, FINISHED, RECORD], inputs)
    with reading.hushed(quiet=quiet):
        crowd = reading.read(votes)
    fitting.warn_of_look_alikes(crowd, votes)
    known = who.known_to_judge(method, votes, reading, crowd, members)
    prices = who.costs_of(costs, crowd, known)
    with watched(quiet=quiet):
        found = planned(
            crowd, budget, model=who.model_for(method, crowd, known), target=target, per_task=per_task, per_worker=per_worker,
            cost=price, costs=prices, random_state=seed,
        )  # fmt: skip
    by_kind = _by_kind(found, known)
    run: dict[str, Any] = {
        "sentence": found.sentence,
        "asks": len(found.asks),
        "finished": len(found.finished),
        "left_out": [str(name) for name in found.left_out],
        "curve": _few(found.curve).to_dict("records"),
        **({} if by_kind is None else {"asks_by_kind": by_kind}),
        "budget": budget, "price": price, "costs": prices, "members": fitting.text(members),
        "method": method,
        "target": target, "per_task": per_task, "per_worker": per_worker,
        "votes": str(votes), **reading.recorded(votes), "random_state": seed, **surroundings(crowd),
    }  # fmt: skip
    tables = {ASKS: rounded(found.asks), CURVE: rounded(found.curve), FINISHED: rounded(found.finished)}
    kept = fitting.keep(output, tables, run, Guard(on=spreadsheet), inputs=inputs, what="questions")
    begin = [("Read", str(votes)), ("Votes", size(crowd)), ("Wrote", kept)]
    fitting.tell(run, begin, as_json=as_json, quiet=quiet)
    if not (as_json or quiet):
        _show(found, has_price=price != 1 or prices is not None)
        if by_kind and len(found.asks):
            show(f"Of the questions, {by_kind['person']:,} go to people and {by_kind['machine']:,} to machines.")


def _by_kind(found: Plan, known: who.Members) -> dict[str, int] | None:
    """How many questions go to people and to machines; None where nobody knows who is which."""
    if known.kinds is None:
        return None
    kinds = found.asks["worker"].astype(str).map(known.kinds)
    return {kind: int((kinds == kind).sum()) for kind in ("person", "machine")}


def _few(curve: pd.DataFrame) -> pd.DataFrame:
    """The beginning and the end of a curve, and some points between."""
    import numpy as np

    return curve.iloc[np.unique(np.linspace(0, len(curve) - 1, POINTS).round().astype(int))]


def _show(found: Plan, *, has_price: bool) -> None:
    if len(found.asks):
        show()
        has_costs = "cost" in found.asks
        rows = [
            [shortened(ask.task), shortened(ask.worker), *([f"{ask.cost:,.6g}"] if has_costs else []),
             f"{ask.confidence:.2f}", f"{ask.expected_confidence:.2f}"]
            for ask in found.asks.head(SHOWN).itertuples()
        ]  # fmt: skip
        show(table(["ask about", "whom", *["for"] * has_costs, "confidence", "expected then"], rows, left=2))
        if len(found.asks) > SHOWN:
            show(f"and {len(found.asks) - SHOWN:,} more")
        show()
        columns = ["votes", *(["money"] if has_price else []), "expected accuracy"]
        points = [
            [f"{row.labels:,}", *([f"{row.money:,.2f}"] if has_price else []), f"{row.expected_accuracy:.3f}"]
            for row in _few(found.curve).itertuples()
        ]
        show(table(columns, points))
    show()
    show(found.sentence, style="bold")
