"""Simulated transcriptions with known texts and known workers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from wisecrowd.data.texts import TextCrowd
from wisecrowd.errors import UsageError

#: Shares of errors: another word, no word, an additional word.
ERROR_SHARES = (0.6, 0.2, 0.2)


@dataclass(frozen=True)
class SimulatedTexts:
    """Texts with the truth that they were drawn from.

    Parameters
    ----------
    crowd : TextCrowd
        Votes.
    truth : Series
        True text of every task.
    workers : DataFrame
        True accuracy of words of every worker.
    """

    crowd: TextCrowd
    truth: pd.Series
    workers: pd.DataFrame


def simulate_texts(
    *,
    n_tasks: int = 100,
    n_workers: int = 15,
    votes_per_task: int = 5,
    words_per_text: int = 12,
    n_words: int = 500,
    accuracy: float = 0.85,
    worker_spread: float = 0.8,
    error_shares: tuple[float, float, float] = ERROR_SHARES,
    random_state: int = 0,
) -> SimulatedTexts:
    """Simulate workers who write down texts.

    Parameters
    ----------
    n_tasks, n_workers, votes_per_task : int
        Numbers of tasks and workers, and of workers who transcribe each task.
    words_per_text, n_words : int
        Number of words of a text, and of different words.
    accuracy : float, default=0.85
        Probability that an average worker writes a word as it is. Other words are replaced, left out or followed by another word.
    worker_spread : float, default=0.8
        Standard deviation of the workers' accuracies, in logits.
    error_shares : tuple of float, default=(0.6, 0.2, 0.2)
        Shares of errors: another word, no word (a miss), an additional word (a false alarm).
    random_state : int, default=0
        Seed.

    Returns
    -------
    SimulatedTexts

    Raises
    ------
    UsageError
        If a size or a rate is outside its range.

    Examples
    --------
    >>> simulation = simulate_texts(n_tasks=10, n_workers=5, votes_per_task=2)
    >>> simulation.crowd.n_votes, len(simulation.truth)
    (20, 10)
    """
    if votes_per_task > n_workers or min(n_tasks, n_workers, votes_per_task, words_per_text, n_words) < 1:
        raise UsageError(
            f"a task needs between 1 and {n_workers} different workers, and all sizes must be positive; got "
            f"votes_per_task={votes_per_task}"
        )
    if not 0 < accuracy < 1:
        raise UsageError(f"accuracy must be between 0 and 1; got {accuracy}")
    shares = np.asarray(error_shares, dtype=np.float64)
    if shares.shape != (3,) or shares.min() < 0 or not np.isclose(shares.sum(), 1):
        raise UsageError(f"error_shares must be three shares that add up to 1; got {error_shares}")
    rng = np.random.default_rng(random_state)
    rates = 1 / (1 + np.exp(-(np.log(accuracy / (1 - accuracy)) + worker_spread * rng.standard_normal(n_workers))))
    truth = rng.integers(0, n_words, (n_tasks, words_per_text))
    worker = np.argsort(rng.random((n_tasks, n_workers)), axis=1)[:, :votes_per_task].ravel()
    task = np.repeat(np.arange(n_tasks), votes_per_task)
    shape = (len(task), words_per_text)
    is_right = rng.random(shape) < rates[worker][:, None]
    kind = np.where(is_right, -1, rng.choice(3, shape, p=error_shares))
    written = np.where(kind == 0, rng.integers(0, n_words, shape), truth[task])
    written = np.where(kind == 1, -1, written)
    added = np.where(kind == 2, rng.integers(0, n_words, shape), -1)
    rows = np.stack([written, added], axis=2).reshape(len(task), -1)
    texts = [" ".join(f"w{word}" for word in row if word >= 0) for row in rows]
    tasks = pd.Index([f"t{number}" for number in range(n_tasks)])
    workers = pd.Index([f"p{number}" for number in range(n_workers)])
    return SimulatedTexts(
        TextCrowd(task, worker, texts, tasks=tasks, workers=workers),
        pd.Series([" ".join(f"w{word}" for word in row) for row in truth], index=tasks.rename("task"), name="text"),
        pd.DataFrame({"accuracy": rates}, index=workers.rename("worker")),
    )
