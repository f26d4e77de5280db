"""Results of a panel whose dependence between judges was estimated: tables and conclusions in words."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.aggregate.categorical.panel._coded_answers import CodedAnswers
from wisecrowd.aggregate.categorical.panel._judge_model import JudgeFit
from wisecrowd.aggregate.categorical.panel._latent_classes import ErrorCorrelation
from wisecrowd.errors import preview

Array = NDArray[np.float64]

#: Effective number below which several judges are called a single vote.
ONE_VOTE = 1.5
#: Gain of the panel over one judge in nats per task below which the other judges are superfluous.
MIN_GAIN = 0.02


def summarize_members(fit: JudgeFit, judges: pd.Index) -> pd.DataFrame:
    """Return a table of the members of the average.

    Parameters
    ----------
    fit : JudgeFit
        Fit.
    judges : Index
        Ids of the judges.

    Returns
    -------
    DataFrame
        ``member``, ``judge`` (of members that use one), ``weight``; ``log_loss`` and ``accuracy`` on held-out gold and votes of
        people, NaN without both.
    """
    names = np.append(judges.to_numpy(dtype=object), "")
    no_figure = np.full(len(fit.titles), np.nan)
    heldout, hits = fit.heldout_log_probs, fit.heldout_hits
    return pd.DataFrame(
        {
            "member": fit.titles,
            "judge": [str(name) for name in names[fit.judges]],
            "weight": fit.weights,
            "log_loss": no_figure if heldout is None else -heldout.mean(axis=1),
            "accuracy": no_figure if hits is None else hits.mean(axis=1),
        }
    )


def compute_shared_errors(correlation: Array) -> Array:
    """Return the share of each judge's error variance that the errors of the other judges explain.

    Parameters
    ----------
    correlation : ndarray of shape (n_judges, n_judges)
        Correlation of errors.

    Returns
    -------
    ndarray of shape (n_judges,)

    Examples
    --------
    >>> compute_shared_errors(np.array([[1.0, 0.9], [0.9, 1.0]])).round(2).tolist()
    [0.81, 0.81]
    """
    values, vectors = np.linalg.eigh(correlation)
    inverse = (vectors**2 / np.maximum(values, 1e-6)).sum(axis=1)
    return np.clip(1 - 1 / inverse, 0.0, 1.0)


def divide_worth(alone: Array, n_effective: float) -> Array:
    """Return the worth of a vote of each judge if the information of the panel is divided among the judges.

    Parameters
    ----------
    alone : ndarray of shape (n_judges,)
        Information of one vote alone.
    n_effective : float
        Number of independent judges with the information of the panel.

    Returns
    -------
    ndarray of shape (n_judges,)

    Examples
    --------
    >>> divide_worth(np.array([1.0, 1.0]), 1.0).tolist()
    [0.5, 0.5]
    """
    total = np.nansum(alone)
    if not total > 0:
        return alone
    return np.asarray(alone * min(1.0, n_effective * np.nansum(alone**2) / total**2))


def explain_panel(
    fit: JudgeFit, dependence: ErrorCorrelation, answers: CodedAnswers, judges: pd.Index, n_anchored: int
) -> list[str]:
    """Describe in words how many votes the judges are worth, and whether one of them is enough.

    Parameters
    ----------
    fit : JudgeFit
        Fit.
    dependence : ErrorCorrelation
        Correlation of errors.
    answers : CodedAnswers
        Answers of judges.
    judges : Index
        Ids of the judges.
    n_anchored : int
        Number of tasks with gold or votes of people.

    Returns
    -------
    list of str
    """
    n_judges = answers.levels.n_judges
    sentences = []
    if n_judges > 1:
        off_diagonal = dependence.correlation[~np.eye(n_judges, dtype=bool)]
        n_effective = f"{dependence.n_effective:.1f}"
        mean = f"mean correlation of errors {off_diagonal.mean():.2f}"
        if dependence.n_effective < ONE_VOTE:
            sentences.append(
                f"The {n_judges:,} judges are only one vote: they carry the information of {n_effective} independent judges "
                f"({mean}). More judges of this kind add nothing; gold and votes of people do."
            )
        else:
            sentences.append(
                f"The {n_judges:,} judges carry the information of {n_effective} independent judges ({mean})."
            )
    if fit.heldout_log_probs is None or fit.heldout_hits is None or fit.panel_hits is None:
        sentences.append(
            "There is no gold and no vote of a person, so the classes are those that the judges agree on. Gold of 50 to 100 "
            "tasks shows whether they are right, and which judges to trust."
        )
        return sentences
    alone = np.flatnonzero(fit.judges >= 0)
    if not len(alone):
        return sentences
    best = int(alone[fit.heldout_log_probs[alone].sum(axis=1).argmax()])
    panel = np.log(np.maximum(fit.weights @ np.exp(fit.heldout_log_probs), 1e-300))
    gain = panel - fit.heldout_log_probs[best]
    error = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else np.inf
    name, accuracy = preview([judges[fit.judges[best]]]), float(fit.heldout_hits[best].mean())
    figures = (
        f"right on {accuracy:.1%} of {n_anchored:,} held-out tasks alone, the panel on {fit.panel_hits.mean():.1%}"
    )
    if gain.mean() > error:
        sentences.append(f"The panel is better than its best judge: {name} is {figures}.")
    elif gain.mean() + error < MIN_GAIN:
        sentences.append(f"One judge is enough: {name} is {figures}, with the same likelihood.")
    else:
        sentences.append(f"More gold is needed to decide whether one judge is enough: {name} is {figures}.")
    return sentences
