"""Scores as input of a panel: their classes, and the labels that they amount to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.aggregate.categorical.panel._coded_answers import CodedAnswers
from wisecrowd.data.alignment import as_truth_series, encode_truth
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.scores import ScoreCrowd
from wisecrowd.data.types import TruthLike
from wisecrowd.data.vocabulary import as_vocabulary, match_id_type, unite_vocabularies
from wisecrowd.em.incremental import recode_classes
from wisecrowd.errors import InputError, preview

Array = NDArray[np.float64]


def is_score_input(votes: Any) -> bool:
    """Return whether votes are scores: a `ScoreCrowd`, or a table with a column score and without a column label.

    Parameters
    ----------
    votes : object
        Argument of ``fit``.

    Returns
    -------
    bool

    Examples
    --------
    >>> is_score_input({"task": ["t1"], "worker": ["gpt"], "score": [3]}), is_score_input([("t1", "gpt", "a")])
    (True, False)
    """
    if isinstance(votes, ScoreCrowd):
        return True
    names = votes.keys() if isinstance(votes, dict) else getattr(votes, "columns", getattr(votes, "column_names", ()))
    try:
        columns = {str(name) for name in names}
    except TypeError:
        return False
    return "score" in columns and "label" not in columns


def find_score_classes(
    scores: ScoreCrowd, truth: TruthLike | None, classes: Any
) -> tuple[pd.Index, Crowd | None, NDArray[np.int32] | None]:
    """Return the classes of a panel of scores, the votes of people by these classes, and gold as codes.

    Parameters
    ----------
    scores : ScoreCrowd
        Scores.
    truth : truth-like or None
        Gold.
    classes : sequence or None
        Classes that the user named.

    Returns
    -------
    classes : Index
    votes : Crowd or None
    gold : ndarray of shape (n_tasks,) or None

    Raises
    ------
    InputError
        If there are fewer than two classes, gold and votes have other classes than the user named, or a worker is a judge and a
        person.

    Examples
    --------
    >>> scores = ScoreCrowd.from_frame({"task": ["t1", "t2"], "worker": ["gpt", "gpt"], "score": [3, 4]})
    >>> find_score_classes(scores, {"t1": "toxic", "t2": "fine"}, None)[2].tolist()
    [1, 0]
    """
    votes = scores.votes
    if votes is not None and votes.workers is not None:
        both = votes.workers[votes.workers.isin(scores.workers)]
        if len(both):
            raise InputError(f"workers with scores and labels: {preview(both)}; give people other ids than judges")
    series = None if truth is None else as_truth_series(truth)
    vocabularies = [] if votes is None or votes.classes is None else [votes.classes]
    if series is not None and len(series):
        gold_classes = pd.Index(series.unique())
        is_sortable = gold_classes.inferred_type not in ("mixed", "mixed-integer")
        vocabularies.append(gold_classes.sort_values() if is_sortable else gold_classes)
    if len(vocabularies) == 2 and vocabularies[0].dtype != vocabularies[1].dtype:
        vocabularies[1] = match_id_type(vocabularies[1], vocabularies[0])
    if classes is not None:
        index = as_vocabulary(classes, "class")
        unknown = [name for part in vocabularies for name in part if name not in match_id_type(index, part)]
        if unknown:
            raise InputError(
                f"gold or votes have classes that were not named: {preview(unknown)}; the classes are {preview(index, 8)}"
            )
        if not vocabularies and len(index) != 2:
            raise InputError(
                f"scores without gold and votes of people can be divided into two classes only; got {len(index):,} classes. "
                "Give gold: truth=…"
            )
    else:
        index = unite_vocabularies(vocabularies) if vocabularies else pd.Index([0, 1])
    if len(index) < 2:
        raise InputError(
            f"gold and votes have the class {preview(index)} only; add gold of another class, or name all classes: classes=[…]"
        )
    aligned = None if votes is None else recode_classes(votes, index)
    empty = np.empty(0, dtype=np.int32)
    reference = Crowd.from_codes(empty, empty, empty, tasks=scores.tasks, workers=scores.workers, classes=index)
    return index, aligned, None if series is None else encode_truth(series, reference)


def convert_scores(
    scores: ScoreCrowd, answers: CodedAnswers, posterior: Array, people: Crowd | None, classes: pd.Index
) -> Crowd:
    """Return scores as votes: each score counts as the class that is most frequent where the judge gives it.

    Parameters
    ----------
    scores : ScoreCrowd
        Scores.
    answers : CodedAnswers
        Their levels.
    posterior : ndarray of shape (n_tasks, n_classes)
        Posterior.
    people : Crowd or None
        Votes of people.
    classes : Index
        Classes.

    Returns
    -------
    Crowd
        Votes of judges, then of people.
    """
    counts = np.asarray(answers.table.T @ posterior)
    level = answers.levels.find(scores.worker, scores.score)
    task, worker, label, weight = scores.task, scores.worker, counts.argmax(axis=1)[level], scores.weight
    workers = scores.workers
    if people is not None:
        assert people.workers is not None
        workers = pd.Index([*workers, *people.workers])
        task = np.concatenate([task, people.task])
        worker = np.concatenate([worker, people.worker_codes + scores.n_workers])
        label = np.concatenate([label, people.label])
        weight = np.concatenate([weight, people.weight])
    return Crowd.from_codes(
        task, worker, label, tasks=scores.tasks, workers=workers, classes=classes, weight=weight, duplicates="keep"
    )
