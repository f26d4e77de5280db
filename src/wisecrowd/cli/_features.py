"""Option ``--features`` and the functions that read and match features."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from wisecrowd.base.aggregator import Aggregator
    from wisecrowd.base.completer import Completer
    from wisecrowd.cli._reading import Reading
    from wisecrowd.data.crowd import Crowd
    from wisecrowd.io.features import Features, MixedFeatures

FeaturesFile = Annotated[
    Path | None,
    typer.Option(
        "--features",
        "-x",
        metavar="FILE",
        show_default=False,
        help="Features of the tasks: npz (arrays task and X), CSV, TSV or Parquet (ids and columns), or a dataset "
        "folder. Not needed when VOTES is a dataset that has them.",
    ),
]


def require_features(features: Path | None, votes: Path, who: str) -> Path:
    """Return the path of the features: the given file, or the dataset folder of the votes.

    Parameters
    ----------
    features : Path or None
        File that the user named.
    votes : Path
        Path of the votes.
    who : str
        Name of the method that needs features, for the error message.

    Returns
    -------
    Path
    """
    from wisecrowd.cli._reading import resolve_path
    from wisecrowd.errors import UsageError

    if features is not None:
        return features
    if resolve_path(votes).is_dir():
        return votes
    raise UsageError(f"{who} needs features of the tasks in {votes}; name their file with --features X.npz")


def find_features(method: Aggregator | Completer, features: Path | None, votes: Path) -> Path | None:
    """Return the path of the features for a method that uses them, or None for one that does not.

    Parameters
    ----------
    method : Aggregator or Completer
        Unfitted method.
    features : Path or None
        File that the user named.
    votes : Path
        Path of the votes.

    Returns
    -------
    Path or None
    """
    from wisecrowd.errors import UsageError

    if method.uses_features:
        return require_features(features, votes, method.name)
    if features is not None:
        raise UsageError(
            f"{method.name} does not use features. Leave --features out, or choose a method that uses them: "
            "wisecrowd methods"
        )
    return None


def read_features_file(path: Path, reading: Reading, crowd: Crowd) -> Features:
    """Read features from a file; its task column may have the name given by ``--task``.

    Parameters
    ----------
    path : Path
        File of features.
    reading : Reading
        Options by which the votes were read.
    crowd : Crowd
        Votes.

    Returns
    -------
    Features
    """
    from wisecrowd.cli._reading import resolve_path
    from wisecrowd.io.features import read_features
    from wisecrowd.io.problems import MissingColumn

    match = crowd if reading.normalise else None
    try:
        return read_features(resolve_path(path), task=reading.task, match=match)
    except MissingColumn:
        return read_features(resolve_path(path), match=match)


def read_mixed_features_file(path: Path, task: str | None, match: Crowd | None = None) -> Features | MixedFeatures:
    """Read features from a file whose columns may also be strings and dates.

    Parameters
    ----------
    path : Path
        File of features.
    task : str or None
        Column of task ids; a file without it is read by the usual names.
    match : Crowd, optional
        Votes whose spelling of task ids is used.

    Returns
    -------
    Features or MixedFeatures
    """
    from wisecrowd.cli._reading import resolve_path
    from wisecrowd.io.features import read_mixed_features
    from wisecrowd.io.problems import MissingColumn

    try:
        return read_mixed_features(resolve_path(path), task=task, match=match)
    except MissingColumn:
        return read_mixed_features(resolve_path(path), match=match)


def match_features(features: Features | None, crowd: Crowd) -> tuple[Any, Crowd]:
    """Return the features (or None) and the crowd in the form that ``fit`` takes.

    Parameters
    ----------
    features : Features or None
        Features of the tasks.
    crowd : Crowd
        Votes.

    Returns
    -------
    tuple
        Features as the method takes them, and the crowd with the tasks that have features.
    """
    return (None, crowd) if features is None else features.align(crowd)


def describe_features(features: Features | MixedFeatures, crowd: Crowd) -> str:
    """Return the number of features and of further tasks as text.

    Parameters
    ----------
    features : Features or MixedFeatures
        Features of the tasks.
    crowd : Crowd
        Votes.

    Returns
    -------
    str
    """
    from wisecrowd.utils.text import count_noun

    further = len(features.tasks) - crowd.n_tasks
    text = " x ".join(f"{n:,}" for n in features.shape) + " for each task"
    return text + (f"; {count_noun(further, 'further task')} not labelled" if further else "")
