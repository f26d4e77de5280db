"""Model selection for texts by held-out workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.text_aggregator import TextAggregator
from wisecrowd.data.edit_counts import count_edits
from wisecrowd.data.rows import assign_folds
from wisecrowd.data.texts import TextCrowd, tokenize
from wisecrowd.errors import InputError, ignore_fit_warnings, preview
from wisecrowd.evaluate.answer_candidates import resolve_candidates
from wisecrowd.evaluate.model_selection import Comparison, check_folds, predict_heldout_votes
from wisecrowd.evaluate.ranking import rank_log_probs
from wisecrowd.evaluate.text_metrics import compute_error_rates
from wisecrowd.utils.levels import format_level

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

#: Candidates: method and parameters. The first of several tied methods is chosen.
CANDIDATES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("rover", {}),
    ("text-medoid", {}),
    ("rover", {"weighted": False}),
    ("text-medoid", {"weighted": False}),
)
#: Pseudo-words that draw the accuracy of a worker to that of the crowd.
SHRINKAGE = 10.0
#: Accuracies stay away from 0 and 1 by this much.
MIN_RATE = 1e-3


def compare_text_methods(
    crowd: TextCrowd,
    methods: Sequence[Any] | None = None,
    *,
    truth: pd.Series | None = None,
    folds: int = 5,
    random_state: int = 0,
) -> Comparison:
    """Compare methods for texts by held-out workers.

    The texts are split into folds, so that a task loses some of its workers. A method is fitted to the others, and a held-out text
    is what worker r made of the inferred one: a word of it was written as it is with probability a_r, and every edit (another,
    missing or additional word) has probability (1 − a_r) / V, where V is the number of different words. The accuracy a_r comes
    from the held-out texts of r in other folds, drawn to that of the crowd. Texts are compared without case and punctuation.
    Intervals of differences come from a bootstrap over tasks.

    Parameters
    ----------
    crowd : TextCrowd
        Texts.
    methods : sequence of str or Method, default=None
        Names of methods, or unfitted methods. Defaults to all, with and without weights of workers.
    truth : Series, default=None
        True texts by task. They add mean word and character error rates to the table and do not influence the choice.
    folds : int, default=5
        Number of folds.
    random_state : int, default=0
        Seed of the folds and the bootstrap.

    Returns
    -------
    Comparison
        ``log_likelihood`` is that of a word; ``heldout_wer`` is the number of edits over the number of words of held-out texts.
        ``disputed_tasks`` has the texts of tasks on which methods differ, ``agreement`` the share of tasks with equal texts.

    Raises
    ------
    InputError
        If there are too few texts, or a named method cannot be fitted.

    Examples
    --------
    >>> from wisecrowd import simulate_texts
    >>> crowd = simulate_texts(n_tasks=40, n_workers=6, accuracy=0.7, random_state=0).crowd
    >>> compare_text_methods(crowd, ["rover", "text-medoid"]).best
    'rover'
    """
    check_folds(folds, crowd.n_votes)
    candidates = resolve_candidates(methods, CANDIDATES, TextAggregator, "texts", "texts")
    fold = assign_folds(crowd.task, crowd.n_tasks, folds, np.random.default_rng(random_state))
    is_tested = np.zeros(crowd.n_votes, dtype=bool)
    for number in range(folds):
        n_visible = np.bincount(crowd.task[fold != number], minlength=crowd.n_tasks)
        is_tested |= (fold == number) & (n_visible[crowd.task] > 0)
    if not is_tested.any():
        raise InputError(
            "no task has texts of two workers, so held-out texts cannot be predicted; collect texts of several workers"
        )
    n_words = np.maximum(tokenize(crowd.text).length, 1)[is_tested].astype(np.float64)
    edits: dict[int, float] = {}

    def predict(method: Any) -> Array:
        log_probs, n_edits = _predict_texts(method, crowd, fold, folds)
        edits[id(method)] = float(n_edits[is_tested].sum() / n_words.sum())
        return np.asarray(log_probs[is_tested] / n_words)

    log_probs, seconds = predict_heldout_votes(candidates, predict, folds, failures_are_skipped=methods is None)
    table, tied_methods = rank_log_probs(log_probs, crowd.task[is_tested], crowd.n_tasks, random_state, n_words)
    table["heldout_wer"] = [edits[id(candidates[str(name)])] for name in table.index]
    table["seconds"] = pd.Series(seconds)
    fitted = {str(name): _fit(candidates[str(name)], crowd) for name in table.index}
    if truth is not None:
        table = table.join(_score_with_truth(fitted, truth, crowd))
    disputed, agreement = _compare_results(fitted, crowd)
    summary = _write_summary(table, tied_methods, int(is_tested.sum()))
    return Comparison(table, tied_methods, tied_methods[0], disputed, agreement, summary, fitted)


def _fit(method: Any, crowd: TextCrowd) -> Any:
    with ignore_fit_warnings():
        return method.clone_unfitted().fit(crowd)


def _predict_texts(method: Any, crowd: TextCrowd, fold: NDArray[np.intp], folds: int) -> tuple[Array, Codes]:
    """Return the log-probability of every text under a fit to the other folds, and the number of edits."""
    answers: list[str] = []
    answer = np.zeros(crowd.n_votes, dtype=np.int64)
    for number in range(folds):
        rows = np.flatnonzero(fold == number)
        fitted = _fit(method, crowd.take(fold != number))
        answer[rows] = len(answers) + crowd.task[rows]
        answers += fitted.answer_texts_.tolist()
    tokens = tokenize(np.concatenate([crowd.text, np.asarray(answers, dtype=object)]))
    text = np.arange(crowd.n_votes)
    edits = count_edits(tokens, crowd.n_votes + answer, tokens, text)
    n_right = tokens.length[crowd.n_votes + answer] - edits.deletions - edits.substitutions
    accuracy = _estimate_accuracy(crowd, fold, folds, n_right, edits.total)
    vocabulary = max(len(tokens.tokens), 2)
    log_probs = n_right * np.log(accuracy) + edits.total * (np.log1p(-accuracy) - np.log(vocabulary))
    return np.asarray(log_probs), edits.total


def _estimate_accuracy(crowd: TextCrowd, fold: NDArray[np.intp], folds: int, n_right: Codes, n_edits: Codes) -> Array:
    """Return the accuracy of the worker of every text, from the texts of the other folds."""
    cell = crowd.worker.astype(np.int64) * folds + fold
    n_cells = crowd.n_workers * folds
    right, edits = (np.bincount(cell, count, n_cells).reshape(-1, folds) for count in (n_right, n_edits))
    right, edits = right.sum(axis=1, keepdims=True) - right, edits.sum(axis=1, keepdims=True) - edits
    pooled = right.sum(axis=0) / np.maximum(right.sum(axis=0) + edits.sum(axis=0), 1)
    accuracy = (right + SHRINKAGE * pooled) / (right + edits + SHRINKAGE)
    return np.asarray(np.clip(accuracy.ravel()[cell], MIN_RATE, 1 - MIN_RATE))


def _score_with_truth(fitted: dict[str, Any], truth: pd.Series, crowd: TextCrowd) -> pd.DataFrame:
    """Return the mean word and character error rates of every method on the tasks with truth."""
    tasks = crowd.tasks.intersection(truth.index)
    if not len(tasks):
        raise InputError(
            f"none of the tasks with truth ({preview(truth.index)}) has texts; the tasks are {preview(crowd.tasks)}"
        )
    rows = {}
    for name, method in fitted.items():
        texts = method.texts_.loc[tasks]
        rows[name] = {
            "wer": float(compute_error_rates(texts, truth).mean()),
            "cer": float(compute_error_rates(texts, truth, unit="characters").mean()),
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def _compare_results(fitted: dict[str, Any], crowd: TextCrowd) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the texts of tasks on which methods differ, and the share of tasks with equal texts of every two methods."""
    n_tasks, names = crowd.n_tasks, list(fitted)
    tokens = tokenize(np.concatenate([method.answer_texts_.to_numpy() for method in fitted.values()]))
    padded = tokens.pad(np.arange(len(names) * n_tasks)).reshape(len(names), n_tasks, -1)
    same = np.stack([[(one == other).all(axis=1) for other in padded] for one in padded])
    texts = pd.DataFrame({name: method.texts_ for name, method in fitted.items()})
    agreement = pd.DataFrame(same.mean(axis=2), index=names, columns=names)
    return texts[~same[0].all(axis=0)], agreement


def _write_summary(table: pd.DataFrame, tied_methods: tuple[str, ...], n_texts: int) -> str:
    """Write the recommendation and its evidence."""
    best = tied_methods[0]
    heldout = f"{n_texts:,} held-out texts"
    edits = f"{float(table['heldout_wer'][best]):.3f} edits per word"
    if len(table) == 1:
        return f"Only {best} was compared: its texts differ from {heldout} by {edits}."
    if len(tied_methods) > 1:
        others = [name for name in tied_methods if name != best]
        return (
            f"Use {best}: {heldout} show no significant difference from {preview(others, 8)}, and it comes first among the "
            "candidates."
        )
    runner_up = table.iloc[1]
    return (
        f"Use {best}: it gives each word of {heldout} {np.exp(runner_up['behind']):.3f} times the probability of the second-best "
        f"method, {table.index[1]} ({format_level()} {np.exp(runner_up['low']):.3f} to {np.exp(runner_up['high']):.3f}); its texts "
        f"differ from them by {edits}."
    )
