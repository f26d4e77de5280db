"""Quality of single votes: the probability that the label of a vote is right."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.default_method import DEFAULT_METHOD
from wisecrowd.base.method import Method
from wisecrowd.data.types import CrowdLike
from wisecrowd.diagnose.preparation import compute_peer_posterior, resolve_model
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.errors import UsageError, check_choice
from wisecrowd.evaluate.inputs import require_categorical_crowd


def vote_quality(
    crowd: CrowdLike, model: Method | str | None = None, *, score: Literal["probability", "margin"] = "probability"
) -> pd.DataFrame:
    """Score every vote by how probable its label is.

    With ``score="probability"`` the quality of a vote is the posterior probability of its label (self-confidence). With
    ``score="margin"`` it is (1 + p − q) / 2 for the probability p of its label and the largest probability q of another class
    (normalised margin). Votes of low quality are probably wrong; sort by ``quality`` to find them.

    The posterior of a task contains the vote itself. ``quality_by_others`` is the same score by all other votes on the task; it
    judges workers more fairly, and is the class prior for the only vote on a task. It exists for methods with confusion matrices.

    With ``model=CrowdLab(pred_probs=P).fit(X, crowd)`` the quality equals ``detailed_label_quality`` of
    ``cleanlab.multiannotator.get_label_quality_multiannotator`` (cleanlab 2.9.0) for the predictions P, with
    ``label_quality_score_kwargs={"method": "self_confidence"}`` or ``"normalized_margin"``; ``model.workers_["quality"]`` and
    ``model.tasks_["quality"]`` are its ``annotator_quality`` and ``consensus_quality_score``.

    Parameters
    ----------
    crowd : Crowd or DataFrame
        Votes with classes and worker ids. Votes that a completer filled in are ignored.
    model : Method or str, default=None
        Method fitted to ``crowd``: an aggregator, or a learner such as `CrowdLab`. A name is fitted first. Defaults to the
        default of ``wisecrowd aggregate``, `ModelAverage`.
    score : {"probability", "margin"}, default="probability"
        Score of a vote.

    Returns
    -------
    DataFrame
        One row per vote in the order of the crowd: task, worker, label, quality and, where it exists, quality_by_others.

    Raises
    ------
    UsageError
        If the model was fitted to other tasks, or infers no classes.

    References
    ----------
    Goh, H. W., Tkachenko, U., Mueller, J. (2022). CROWDLAB: Supervised learning to infer consensus labels and quality scores for
    data with multiple annotators. NeurIPS Workshop on Human in the Loop Learning.

    Examples
    --------
    >>> import wisecrowd as wc
    >>> votes = [("t1", "ann", "cat"), ("t1", "bob", "cat"), ("t1", "cy", "dog"), ("t2", "ann", "dog"), ("t2", "bob", "dog")]
    >>> table = wc.vote_quality(wc.Crowd.from_triples(votes))
    >>> table.loc[table["quality"].idxmin(), ["task", "worker", "label"]].tolist()
    ['t1', 'cy', 'dog']
    """
    check_choice("score", score, ("probability", "margin"))
    votes = require_categorical_crowd(crowd, "scoring votes")
    if not isinstance(model, Method):
        model = resolve_model(votes, model or DEFAULT_METHOD)
    if getattr(model, "posterior_", None) is None:
        raise UsageError(
            f"{type(model).__name__} has no class probabilities of tasks; pass a fitted aggregator or learner for classes, "
            "such as ModelAverage().fit(crowd)"
        )
    fitted: Any = model
    if not votes.tasks.equals(fitted.task_index_) or not pd.Index(fitted.classes_).equals(votes.classes):
        raise UsageError(
            "crowd differs from the crowd that the model was fitted to; pass that crowd, or refit the model"
        )
    table = votes.to_frame()[["task", "worker", "label"]]
    table["quality"] = _score_labels(fitted.posterior_[votes.task], votes.label, score)
    if isinstance(model, ConfusionEM):
        table["quality_by_others"] = _score_labels(compute_peer_posterior(model, votes), votes.label, score)
    return table


def _score_labels(probs: NDArray[Any], label: NDArray[Any], score: str) -> NDArray[np.float64]:
    """Return the probability of each label, or its margin to the most probable other class."""
    rows = np.arange(len(label))
    own = np.asarray(probs[rows, label], dtype=np.float64)
    if score == "probability":
        return own
    others = np.array(probs, dtype=np.float64)
    others[rows, label] = -np.inf if probs.shape[1] > 1 else 0.0
    return np.asarray((1 + own - others.max(axis=1, initial=0.0)) / 2)
