"""``wisecrowd bench``: published tables beside our own results."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wisecrowd.cli._console import console, print_note, show, show_verbatim, table
from wisecrowd.cli._options import Quiet, flag, parse_output_path
from wisecrowd.utils.text import count_noun

if TYPE_CHECKING:
    from wisecrowd.bench.cells import Cell, Row
    from wisecrowd.bench.session import Session

app = typer.Typer(no_args_is_help=True, help="Run benchmarks: published tables beside our own results.")

FOLDER = Path("benchmarks/results")

Name = Annotated[
    str,
    typer.Argument(metavar="BENCHMARK", show_default=False, help="Name from wisecrowd bench list, or a Python file."),
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TITLE",
        show_default=False,
        help="Run only this method or dataset, by its title in the table (* matches anything); may be repeated.",
    ),
]
Quick = Annotated[bool, flag("--quick", help="Run a small version that takes minutes, if the benchmark has one.")]
Folder = Annotated[
    Path, typer.Option("--output", "-o", parser=parse_output_path, metavar="FOLDER", help="Folder of the results.")
]


@app.command("list")
def list_all() -> None:
    """List the benchmarks.

    Example:

      wisecrowd bench list
    """
    from wisecrowd.bench import list_benchmarks

    show(table(["benchmark", "what it compares"], list_benchmarks().items(), n_text_columns=2, fold="what it compares"))
    show()
    show("Run one: wisecrowd bench run zheng2017")


@app.command()
def run(
    name: Name,
    *,
    only: Only = None,
    quick: Quick = False,
    seeds: Annotated[
        int | None, typer.Option(metavar="N", min=1, show_default=False, help="Number of seeds for random methods.")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", metavar="N", min=1, help="Number of processes.")] = 2,
    time_limit: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", show_default=False, help="Time limit for one method on one dataset."),
    ] = None,
    fresh: Annotated[bool, flag("--fresh", help="Run everything again.")] = False,
    output: Folder = FOLDER,
    quiet: Quiet = False,
) -> None:
    """Run a benchmark, or the rest of it, and show its table.

    Every result is stored at once. An interrupted run continues when it is
    started again.

      wisecrowd bench run zheng2017
      wisecrowd bench run zheng2017 --only MV --only "D_*"
      wisecrowd bench run all-aggregators --jobs 4
      wisecrowd bench run zhang2024ccc --quick
      wisecrowd bench run my_table.py -o results

    Methods whose code changed are run again. After a change in code that all
    methods share, use --fresh.
    """
    from wisecrowd.bench import find_benchmark
    from wisecrowd.bench.session import Session
    from wisecrowd.cli._outputs import check_writable

    benchmark = find_benchmark(name, quick=quick)
    check_writable(output / f"{benchmark.name}.parquet")
    session = Session(benchmark, output, only=only or (), seeds=seeds, time_limit=time_limit, fresh=fresh)
    for title, reason in session.absent.items():
        print_note(f"Note: {title} is skipped: {reason}", style="dim")
    if session.n_settled and not quiet:
        print_note(
            f"{session.n_settled:,} of {session.n_settled + len(session.todo):,} results are stored already",
            style="dim",
        )
    with contextlib.closing(session.run(jobs)) as answers:
        for _ in _watched(answers, session, quiet=quiet):
            pass
    if not quiet:
        _show(session)
        show(f"Wrote {output / benchmark.name}.parquet and {output / benchmark.name}.md")


@app.command("show")
def show_stored(
    name: Name,
    *,
    only: Only = None,
    quick: Quick = False,
    output: Folder = FOLDER,
    markdown: Annotated[bool, flag("--markdown", help="Print the whole page as Markdown.")] = False,
) -> None:
    """Show the table of the stored results.

    Examples:

      wisecrowd bench show zheng2017
      wisecrowd bench show zheng2017 --markdown
    """  # fmt: skip
    from wisecrowd.bench import find_benchmark
    from wisecrowd.bench.session import Session

    session = Session(find_benchmark(name, quick=quick), output, only=only or ())
    if markdown:
        show_verbatim(session.markdown().rstrip())
    else:
        _show(session)


@app.command()
def confirm(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[BENCHMARK]...", show_default=False, help="Benchmarks; all with stored results by default."
        ),
    ] = None,
    *,
    samples: Annotated[
        int, typer.Option("--samples", metavar="N", min=1, help="Number of datasets on which every method runs again.")
    ] = 2,
    jobs: Annotated[int, typer.Option("--jobs", "-j", metavar="N", min=1, help="Number of processes.")] = 2,
    output: Folder = FOLDER,
) -> None:
    """Run a sample of the outdated results again, and keep what it confirms.

    Use it after a change of code that should not change any figure. Every
    method runs again on its quickest datasets, and every dataset has at least
    one method. If the figures are equal to the stored ones, the other results
    of these methods and datasets count as valid; the page of the benchmark
    says how many. Networks round differently on other processors: figures of
    three seeds or more may differ by three standard deviations. Exit code 1 if
    a figure differs: run those methods again with wisecrowd bench run.

      wisecrowd bench confirm
      wisecrowd bench confirm mena2020 --samples 5
    """
    is_all_equal = True
    sessions = _open_sessions(names, output)
    for session in sessions:
        if session.absent:
            n_absent = count_noun(len(session.absent), "dataset")
            print_note(f"{session.benchmark.name}: {n_absent} not checked, because the data are not on this machine")
    if not any(session.outdated for session in sessions):
        print_note("No stored result is outdated: there is nothing to confirm")
    for session in sessions:
        outdated = session.outdated
        if not outdated:
            continue
        name, sample = session.benchmark.name, session.choose_sample(samples)
        show(f"{name}: {len(outdated):,} outdated results, {len(sample):,} run again")
        differing: set[str] = set()
        with contextlib.closing(session.confirm(sample, jobs)) as answers:
            for position, (cell, row, is_equal) in enumerate(answers, 1):
                print_note(f"{position}/{len(sample)} {cell}: {_in_words(cell, row)}")
                if not is_equal:
                    differing.add(str(cell))
        if differing:
            is_all_equal = False
            show(f"  other figures than stored: {', '.join(sorted(differing))}")
    if not is_all_equal:
        raise typer.Exit(1)


@app.command()
def verify(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[BENCHMARK]...", show_default=False, help="Benchmarks; all with stored results by default."
        ),
    ] = None,
    *,
    output: Folder = FOLDER,
) -> None:
    """Check that the stored results are those of the code at hand.

    Lists results of other code, settings or data, seeds that were not run, and
    results of methods or seeds that the benchmark does not have. Data that are
    not on this machine are not checked. Exit code 1 if anything is listed.

      wisecrowd bench verify
      wisecrowd bench verify mena2020 zheng2017
    """
    sessions = _open_sessions(names, output)
    rows = [
        (
            session.benchmark.name, f"{session.n_settled:,}", f"{len(session.outdated):,}", f"{len(session.missing):,}",
            f"{len(session.surplus):,}", f"{len(session.absent):,}",
        )
        for session in sessions
    ]  # fmt: skip
    show(table(["benchmark", "valid", "outdated", "missing", "surplus", "absent data"], rows, n_text_columns=1))
    invalid = [session.benchmark.name for session in sessions if session.todo or session.surplus]
    for session in sessions:
        titles = sorted({cell.entry for cell in session.todo})
        if titles:
            show(f"{session.benchmark.name}: run again {', '.join(titles)}")
    if invalid:
        show()
        show(f"Run again: wisecrowd bench run {invalid[0]}")
        if any(session.outdated for session in sessions):
            show("If the code changed without changing figures, run a sample: wisecrowd bench confirm")
        raise typer.Exit(1)


def _open_sessions(names: list[str] | None, folder: Path) -> list[Session]:
    """Return the sessions of the named benchmarks, or of all with stored results."""
    from wisecrowd.bench import find_benchmark, list_benchmarks
    from wisecrowd.bench.session import Session

    stored = names or [name for name in list_benchmarks() if (folder / f"{name}.parquet").exists()]
    return [Session(find_benchmark(name), folder) for name in stored]


def _show(session: Session) -> None:
    show(session.benchmark.title, style="bold")
    show()
    show_verbatim(session.text(console().width))
    show()
    show(session.describe_run(), style="dim")


def _watched(
    answers: Iterator[tuple[Cell, Row]], session: Session, *, quiet: bool
) -> Iterator[tuple[Cell, Row]]:  # fmt: skip
    """Yield the results with a progress bar, or one line per result if standard error is not a terminal."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    out = console(stderr=True)
    columns = (
        TextColumn("{task.fields[count]}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[news]}", markup=False),
    )
    # Time is roughly proportional to the number of votes, plus a constant per cell.
    weights = {cell.key: cell.size + 1000 for cell in session.todo}
    n_cells, started = len(weights), time.monotonic()
    with Progress(*columns, console=out, transient=True, disable=quiet or not out.is_terminal) as bar:
        task = bar.add_task("", total=sum(weights.values()), count=f"0/{n_cells}", news="")
        for position, (cell, row) in enumerate(answers, 1):
            news = f"{cell}: {_in_words(cell, row)}"
            bar.update(task, advance=weights[cell.key], count=f"{position}/{n_cells}", news=news)
            if not (quiet or out.is_terminal):
                print_note(f"{position}/{n_cells} after {time.monotonic() - started:,.0f} s: {news}")
            yield cell, row


def _in_words(cell: Cell, row: Row) -> str:
    if row["status"] != "ok":
        return f"{row['status']} ({row['reason']})"
    figure = cell.source.figures[0]
    value = row["figures"].get(figure)
    return f"{figure} {'none' if value is None else format(value, '.4g')}, {row['seconds']:.1f} s"
