"""``wisecrowd compare``: which method to believe, without gold."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.cli import _features as feature_files
from wisecrowd.cli import _fitting as fitting
from wisecrowd.cli._console import shortened, show, table, watched
from wisecrowd.cli._options import Quiet, with_options
from wisecrowd.cli._reading import Reading, Votes

if TYPE_CHECKING:
    import pandas as pd

    from wisecrowd.evaluate.model_selection import Comparison

COMPARED, DISPUTED, AGREEMENT = "methods.csv", "disputed.csv", "agreement.csv"
#: Disputed tasks to show; all are in the file.
SHOWN = 5


@with_options(Reading)
def compare(
    votes: Votes,
    *,
    features: feature_files.FeaturesFile = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            "-m",
            metavar="METHOD",
            show_default=False,
            help="A method to compare; may be repeated. A choice of quick ones unless given.",
        ),
    ] = None,
    truth: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Known truth, to see how good the choice is; never used for choosing.",
        ),
    ] = None,
    folds: Annotated[
        int, typer.Option(metavar="N", min=2, help="How many parts of the votes are hidden, in turn.")
    ] = 5,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the dealing.")] = 0,
    output: fitting.Output = None,
    spreadsheet: fitting.Spreadsheet = False,
    quiet: Quiet = False,
    as_json: fitting.AsJson = False,
    reading: Reading,
) -> None:
    """Which method to believe when there is no gold?

    Every method must foretell votes that were hidden from it; those that do it better know more about tasks and workers.
    It ends with a sentence: what to use, how sure, and why.

      wisecrowd compare votes.csv
      wisecrowd compare votes.csv --features X.npz
      wisecrowd compare votes.csv -m dawid-skene -m majority-vote -o results

    Where some truth is known, see whether the choice is a good one:

      wisecrowd compare votes.csv --truth gold.csv

    Writes methods.csv, disputed.csv (tasks on which methods differ), agreement.csv and run.json with -o.
    """  # fmt: skip
    from wisecrowd.base.provenance import surroundings
    from wisecrowd.cli._outputs import RECORD, check_folder
    from wisecrowd.cli._reading import read_truth
    from wisecrowd.cli._spreadsheet import Guard
    from wisecrowd.cli._summary import size
    from wisecrowd.evaluate.model_selection import compare as compared

    fitting.needs_folder(output, spreadsheet=spreadsheet)
    inputs = [path for path in (votes, features, truth) if path is not None]
    if output is not None:
        check_folder(output, [COMPARED, DISPUTED, AGREEMENT, RECORD], inputs)
    with reading.hushed(quiet=quiet):
        crowd = reading.read(votes)
        known = None if truth is None else read_truth(truth, reading, crowd)
        given = None if features is None else feature_files.read(features, reading)
    fitting.warn_of_look_alikes(crowd, votes)
    fitting.warn_of_strange_truth(known, crowd, truth)
    fitting.warn_of_filled_votes(crowd)
    X, crowd = feature_files.beside(given, crowd)
    with watched(quiet=quiet):
        found = compared(crowd, method or None, X, truth=known, folds=folds, random_state=seed)
    run: dict[str, Any] = {
        "use": found.best,
        "cannot_be_told_apart": list(found.tied),
        "sentence": found.sentence,
        "methods": found.table.reset_index().to_dict("records"),
        "votes": str(votes), **reading.recorded(votes), "features": fitting.text(features), "truth": fitting.text(truth),
        "folds": folds, "random_state": seed, **surroundings(crowd),
    }  # fmt: skip
    tables = {} if output is None else _tables(found)
    kept = fitting.keep(output, tables, run, Guard(on=spreadsheet), inputs=inputs, what="tables")
    begin = [("Read", str(votes)), ("Votes", size(crowd)), ("Wrote", kept)]
    fitting.tell(run, begin, as_json=as_json, quiet=quiet)
    if not (as_json or quiet):
        _show(found)


def _tables(found: Comparison) -> dict[str, pd.DataFrame]:
    from wisecrowd.cli._outputs import rounded

    tables = {
        COMPARED: found.table,
        DISPUTED: found.disputed.rename_axis("task"),
        AGREEMENT: found.agreement.rename_axis("method"),
    }
    return {name: rounded(table) for name, table in tables.items()}


def _show(found: Comparison) -> None:
    columns = ["method", "log P(vote)", "behind", "interval", "seconds"]
    known = "accuracy" in found.table
    rows = []
    for name, row in found.table.iterrows():
        mark = "*" if name in found.tied else ""
        cells: list[object] = [f"{name}{mark}", f"{row['log_likelihood']:.3f}", f"{row['behind']:.3f}"]
        cells += [f"{row['low']:.3f} to {row['high']:.3f}", f"{row['seconds']:.2f}"]
        rows.append([*cells, f"{row['accuracy']:.3f}", f"{row['p_mcnemar']:.2f}"] if known else cells)
    show()
    show(table([*columns, "accuracy", "p"] if known else columns, rows))
    show("* cannot be told from the best" + ("; p: of so many differences from the first, by chance" if known else ""))
    if len(found.disputed):
        show()
        few = found.disputed.head(SHOWN)
        show(f"Methods differ on {len(found.disputed):,} tasks, most of all on {', '.join(map(shortened, few.index))}.")
    show()
    show(found.sentence, style="bold")
