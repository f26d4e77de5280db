"""Option ``--features`` and the functions that read and match features."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from wisecrowd.base.aggregator import Aggregator
    from wisecrowd.base.completer import Completer
    from wisecrowd.base.learner import Learner
    from wisecrowd.cli._reading import Reading
    from wisecrowd.data.crowd import Crowd
    from wisecrowd.io.features import Features, MixedFeatures

#: Share of held-out votes that features must add to be useful without doubt; random rows add less.
MIN_USEFUL_GAIN = 0.01

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

FeaturesMissing = Annotated[
    str,
    typer.Option(
        "--features-missing",
        metavar="RULE",
        help="Rule for tasks without features: error, or drop, which leaves out the votes on them.",
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


def refuse_votes_as_features(features: Path | None, votes: Path) -> None:
    """Raise an error if the file of features is the file of votes.

    Parameters
    ----------
    features : Path or None
        File that the user named as features.
    votes : Path
        Path of the votes.
    """
    import os

    from wisecrowd.errors import UsageError

    if features is not None and features.is_file() and os.path.realpath(features) == os.path.realpath(votes):
        raise UsageError(
            f"--features {features} is the file of the votes; expected another file, with the task ids and a row "
            "of features for each"
        )


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
        return read_features(resolve_path(path), task=reading.task, match=match, votes=crowd)
    except MissingColumn:
        return read_features(resolve_path(path), match=match, votes=crowd)


def read_mixed_features_file(
    path: Path, task: str | None, match: Crowd | None = None, votes: Crowd | None = None
) -> Features | MixedFeatures:
    """Read features from a file whose columns may also be strings and dates.

    Parameters
    ----------
    path : Path
        File of features.
    task : str or None
        Column of task ids; a file without it is read by the usual names.
    match : Crowd, optional
        Votes whose spelling of task ids is used.
    votes : Crowd, optional
        Votes whose tasks identify the column of task ids.

    Returns
    -------
    Features or MixedFeatures
    """
    from wisecrowd.cli._reading import resolve_path
    from wisecrowd.io.features import read_mixed_features
    from wisecrowd.io.problems import MissingColumn

    try:
        return read_mixed_features(resolve_path(path), task=task, match=match, votes=votes)
    except MissingColumn:
        return read_mixed_features(resolve_path(path), match=match, votes=votes)


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


def check_missing_rule(rule: str) -> None:
    """Raise an error if the rule for tasks without features is unknown.

    Parameters
    ----------
    rule : str
        Value of ``--features-missing``.
    """
    from wisecrowd.errors import UsageError

    if rule not in ("error", "drop"):
        raise UsageError(f"--features-missing takes error or drop; got {rule!r}")


def drop_tasks_without_features(crowd: Crowd, tasks: pd.Index, source: Path) -> Crowd:
    """Return the votes on tasks with features, and print how many others were left out.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    tasks : Index
        Tasks with features.
    source : Path
        File of the features.

    Returns
    -------
    Crowd
    """
    from wisecrowd.cli._console import warn
    from wisecrowd.data.vocabulary import match_id_type
    from wisecrowd.errors import preview
    from wisecrowd.utils.text import count_noun

    has_features = match_id_type(crowd.tasks, tasks).isin(tasks)
    if has_features.all() or not has_features.any():  # without any, matching the features raises an error with advice
        return crowd
    absent = crowd[~has_features]
    warn(
        f"left out {count_noun(absent.n_tasks, 'task')} of {crowd.n_tasks:,} and {count_noun(absent.n_votes, 'vote')}, because "
        f"{source} has no features of them, for example {preview(absent.tasks)}; wisecrowd aggregate labels them by votes alone"
    )
    return crowd[has_features]


def warn_problems(fitted: Learner, X: Any, crowd: Crowd) -> None:
    """Warn about features that belong to other tasks, say nothing, or hold the answer.

    Parameters
    ----------
    fitted : Learner
        Learner that was fitted to them.
    X : DataFrame or array
        Features in the order of the tasks.
    crowd : Crowd
        Votes.
    """
    import numpy as np
    import pandas as pd

    from wisecrowd.cli._console import warn
    from wisecrowd.data.feature_checks import describe_problems

    encoder = fitted.feature_encoder_
    rows = np.asarray(encoder.transform(X) if encoder is not None and encoder.accepts(X) else X, dtype=np.float64)
    table = X if isinstance(X, pd.DataFrame) else pd.DataFrame(index=crowd.tasks)
    if isinstance(X, pd.DataFrame) and fitted.feature_names_ is None:
        table = X.set_axis([f"number {position}" for position in range(X.shape[1])], axis=1)
    gain = getattr(fitted, "feature_gain_", None)
    is_useful = gain is not None and gain >= MIN_USEFUL_GAIN
    for problem in describe_problems(table, rows, crowd, is_useful=is_useful):
        warn(problem)


def warn_missing_codes(features: Features | MixedFeatures, source: Path | None) -> None:
    """Warn about values of new features that probably stand for missing ones.

    Parameters
    ----------
    features : Features or MixedFeatures
        Features of new tasks.
    source : Path or None
        File of the features.
    """
    from wisecrowd.cli._console import warn
    from wisecrowd.data.feature_checks import describe_missing_codes

    if len(features.shape) == 1 and (problem := describe_missing_codes(features.table)):
        warn(f"{source}: {problem}")


def find_training_tasks(learner: Learner, X: Any, tasks: pd.Index) -> NDArray[np.bool_]:
    """Return which tasks the learner was trained with: those with the id or the features of a training task.

    Tasks with the id of a training task and other features are no training tasks; a warning names them.

    Parameters
    ----------
    learner : Learner
        Fitted learner.
    X : DataFrame or array
        Features of the tasks.
    tasks : Index
        Task ids.

    Returns
    -------
    ndarray of bool, shape (n_tasks,)
    """

    from wisecrowd.cli._console import warn
    from wisecrowd.data.vocabulary import match_id_type
    from wisecrowd.errors import ignore_fit_warnings, preview
    from wisecrowd.utils.text import count_noun

    known_ids, profile = learner.task_index_, getattr(learner, "feature_profile_", None)
    position_by_id = known_ids.get_indexer(match_id_type(tasks, known_ids))
    with ignore_fit_warnings():  # the prediction has warned already
        position_by_row = learner.find_training_rows(X)
    is_training = (position_by_id >= 0) | (position_by_row >= 0)
    if profile is None or not profile.has_distinct_rows or len(profile.digests) != len(known_ids):
        return is_training
    both = (position_by_id >= 0) & (position_by_row >= 0)
    is_other = (position_by_id >= 0) & (position_by_row < 0)
    is_other[both] = profile.digests[position_by_id[both]] != profile.digests[position_by_row[both]]
    if is_other.any():
        warn(
            f"{count_noun(int(is_other.sum()), 'task')} of {len(tasks):,} have the id of a training task, but "
            f"other features than it had, for example {preview(tasks[is_other])}. If these are the same tasks, check "
            "that ids and rows have the same order, and that the features are prepared as in training; if they "
            "are others, give them other ids"
        )
    return is_training & ~is_other


def note_unnamed_features(learner: Learner, new: Features | MixedFeatures, source: Path | None) -> None:
    """Print a note if features without names are matched with the names of training by position.

    Parameters
    ----------
    learner : Learner
        Fitted learner.
    new : Features or MixedFeatures
        Features of new tasks.
    source : Path or None
        File of the features.
    """
    from wisecrowd.cli._console import print_note
    from wisecrowd.errors import preview

    names = learner.feature_names_
    if names is not None and getattr(new, "names", ()) is None and learner.feature_encoder_ is None:
        print_note(
            f"Note: the features in {source} have no names and are matched by position with those of training: {preview(names, 8)}"
        )


def note_training_tasks(tasks: pd.Index, n_tasks: int, labels: str) -> None:
    """Print a note if some predictions are of training tasks, whose labels by votes and features are elsewhere.

    Parameters
    ----------
    tasks : Index
        Training tasks among those that were predicted.
    n_tasks : int
        Number of tasks that were predicted.
    labels : str
        Place of the labels by votes and features.
    """
    from wisecrowd.cli._console import print_note
    from wisecrowd.errors import preview

    if len(tasks):
        print_note(
            f"Note: {len(tasks):,} of {n_tasks:,} tasks were training tasks, for example {preview(tasks)}. These predictions use "
            f"their features only, and a score on them is too good; {labels} has the labels by votes and features"
        )


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
