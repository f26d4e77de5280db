"""Features of tasks on the command line: the option, and what it leads to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from wisecrowd.base.aggregator import Aggregator
    from wisecrowd.base.completer import Completer
    from wisecrowd.cli._reading import Reading
    from wisecrowd.data.crowd import Crowd
    from wisecrowd.io.features import Features

FeaturesFile = Annotated[
    Path | None,
    typer.Option(
        "--features",
        "-x",
        metavar="FILE",
        show_default=False,
        help="Features of the tasks: npz (arrays task and X), CSV, TSV or Parquet (ids and numbers), or a dataset "
        "folder. Not needed when VOTES is a dataset that has them.",
    ),
]


def where(features: Path | None, votes: Path, who: str) -> Path:
    """Where the features are that somebody needs: in the file that is named, or beside the votes."""
    from wisecrowd.cli._reading import located
    from wisecrowd.errors import UsageError

    if features is not None:
        return features
    if located(votes).is_dir():
        return votes
    raise UsageError(f"{who} needs features of the tasks in {votes}; name their file with --features X.npz")


def source_of(method: Aggregator | Completer, features: Path | None, votes: Path) -> Path | None:
    """Where the features are of a method that looks at them; None if it does not."""
    from wisecrowd.errors import UsageError

    if method.uses_features:
        return where(features, votes, method.name)
    if features is not None:
        raise UsageError(
            f"{method.name} looks at votes alone; leave --features out, or choose a method that uses them: "
            "see wisecrowd methods"
        )
    return None


def read(path: Path, reading: Reading) -> Features:
    """Features in a file; its task column may be called as that of the votes is."""
    from wisecrowd.cli._reading import located
    from wisecrowd.io.features import read_features
    from wisecrowd.io.problems import MissingColumn

    try:
        return read_features(located(path), task=reading.task)
    except MissingColumn:
        return read_features(located(path))


def beside(given: Features | None, crowd: Crowd) -> tuple[Any, Crowd]:
    """Features, if there are any, and the crowd, as methods take both."""
    return (None, crowd) if given is None else given.beside(crowd)


def size(given: Features, crowd: Crowd) -> str:
    """How many features there are, in a line."""
    from wisecrowd.utils.text import count_noun

    further = len(given.tasks) - crowd.n_tasks
    text = " x ".join(f"{n:,}" for n in given.rows.shape[1:]) + " for each task"
    return text + (f"; {count_noun(further, 'further task')} not labelled" if further else "")
