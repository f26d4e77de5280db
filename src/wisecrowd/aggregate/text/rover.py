"""ROVER: alignment of the texts of a task, and a vote on every word."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.aggregate.text._alignment import EMPTY, SlotVotes, align_texts
from wisecrowd.aggregate.text._text_distances import compare_texts, find_medoids, rank_texts
from wisecrowd.base.fields import method_class, parameter
from wisecrowd.base.text_aggregator import Array, InferredTexts, TextAggregator
from wisecrowd.data.text_vectors import TextVectors
from wisecrowd.data.texts import TextCrowd, TokenCodes
from wisecrowd.em.loop import iterate_to_fixed_point
from wisecrowd.errors import UsageError

Codes = NDArray[np.int64]
#: Accuracy of workers at the start, and its bounds.
START_ACCURACY, ACCURACY_BOUNDS = 0.85, (0.02, 0.995)
#: Number of wrong words at the start, and at most.
START_ALTERNATIVES, MAX_ALTERNATIVES = 2.0, 1000.0
#: Pseudo-pairs of wrong votes, half of which agree.
PAIR_PRIOR = 10.0


@method_class
class Rover(TextAggregator):
    """Alignment of texts and a weighted vote on every word (ROVER), with the accuracy of workers estimated.

    The texts of a task are aligned one after the other, beginning with the text that is nearest to the others, into slots in
    which every text has one word or none. In every slot the word with the highest weight wins. A worker weighs
    log(a m / (1 − a)), where the accuracy a is the share of slots in which the worker gives the right word, and m is the number
    of wrong words to choose from: two workers who make errors agree with probability 1 / m. Both are estimated by EM. With
    ``weighted=False`` all workers weigh the same, as in the original method.

    Texts are those of the normalised words: with the default, in lower case and without punctuation.

    Examples
    --------
    >>> from wisecrowd import Rover
    >>> votes = {"task": ["t"] * 3, "worker": ["ann", "bob", "cy"], "text": ["the cat sat", "the cat sad", "a cat sat"]}
    >>> Rover().fit(votes).texts_.to_dict()
    {'t': 'the cat sat'}
    """

    references: ClassVar[tuple[str, ...]] = ("fiscus1997post",)

    weighted: bool = parameter(default=True, help="Weight workers by their accuracy.")
    shrinkage: float = parameter(default=10.0, help="Pseudo-words that draw a worker's accuracy to that of the crowd.")
    max_iter: int = parameter(default=100, help="Maximum number of EM iterations.")
    tol: float = parameter(default=1e-4, help="Largest change of an accuracy at convergence.")

    def _infer_texts(self, crowd: TextCrowd, tokens: TokenCodes, vectors: TextVectors | None) -> InferredTexts:
        if not self.shrinkage >= 0:
            raise UsageError(f"shrinkage must be 0 or more; got {self.shrinkage}")
        pairs = compare_texts(crowd, tokens)
        medoid = find_medoids(crowd, pairs.sum_distances(np.ones(crowd.n_votes)), tokens)
        # Texts follow by their distance to the medoid; the medoid itself comes first.
        distance = np.zeros(crowd.n_votes)
        for one, other in ((pairs.first, pairs.second), (pairs.second, pairs.first)):
            is_medoid = medoid[crowd.task[one]] == one
            distance[other[is_medoid]] = pairs.distance[is_medoid]
        distance[medoid[medoid >= 0]] = -1.0
        order = np.lexsort((rank_texts(crowd), tokens.length, distance, crowd.task))
        votes = align_texts(tokens, order, crowd.task_offset)
        return self._vote(crowd, tokens, votes)

    def _vote(self, crowd: TextCrowd, tokens: TokenCodes, votes: SlotVotes) -> InferredTexts:
        """Decide every slot, and join the words of each task."""
        n_slots, worker = len(votes.slot_task), crowd.worker[votes.text]
        key = votes.slot * np.int64(len(tokens.tokens) + 2) + votes.token - EMPTY
        distinct, option = np.unique(key, return_inverse=True)
        option = option.ravel()
        slot, token = np.divmod(distinct, np.int64(len(tokens.tokens) + 2))
        token += EMPTY
        chances = np.bincount(worker, minlength=crowd.n_workers)

        n_votes = np.bincount(option, minlength=len(distinct))

        def count_alternatives(probs: Array) -> float:
            """Return the effective number of wrong words, from the agreement of votes that are probably wrong."""
            best = np.zeros(n_slots)
            np.maximum.at(best, slot, probs)
            wrong = np.where(probs < best[slot], n_votes, 0)
            in_slot = np.bincount(slot, wrong, n_slots)
            n_pairs, n_equal = float((in_slot * (in_slot - 1)).sum()), float((wrong * (wrong - 1)).sum())
            return float(np.clip((n_pairs + PAIR_PRIOR) / (n_equal + PAIR_PRIOR / 2), 1, MAX_ALTERNATIVES))

        def decide(accuracy: Array, alternatives: float) -> Array:
            log_odds = np.log(accuracy * alternatives / (1 - accuracy))[worker]
            score = np.bincount(option, log_odds, len(distinct))
            highest = np.full(n_slots, -np.inf)
            np.maximum.at(highest, slot, score)
            probs = np.exp(score - highest[slot])
            return np.asarray(probs / np.bincount(slot, probs, n_slots)[slot])

        def step(state: tuple[Array, float]) -> tuple[tuple[Array, float], float]:
            accuracy, alternatives = state
            probs = decide(accuracy, alternatives)
            hits = np.bincount(worker, probs[option], crowd.n_workers)
            pooled = hits.sum() / max(chances.sum(), 1)
            strength = max(self.shrinkage, 1e-9)
            updated = np.clip((hits + strength * pooled) / (chances + strength), *ACCURACY_BOUNDS)
            return (updated, count_alternatives(probs)), float(np.abs(updated - accuracy).max(initial=0))

        state, n_iter, converged = (np.full(crowd.n_workers, START_ACCURACY), START_ALTERNATIVES), 0, True
        if self.weighted:
            state, n_iter, converged = iterate_to_fixed_point(
                step, state, max_iter=self.max_iter, tol=self.tol, title="Words"
            )
        accuracy, alternatives = state
        probs = decide(accuracy, alternatives)
        # Of equal probabilities the word that comes first in the vocabulary wins, and a word against none.
        best = np.lexsort((-token, -np.round(probs, 12), slot))
        winner = best[np.append(True, np.diff(slot[best]) != 0)] if len(best) else best
        log_probs = np.log(np.maximum(probs[winner], 1e-12))
        task = votes.slot_task
        has_slots = np.bincount(task, minlength=crowd.n_tasks)
        confidence = np.exp(np.bincount(task, log_probs, crowd.n_tasks))
        mean = np.bincount(task, probs[winner], crowd.n_tasks) / np.maximum(has_slots, 1)
        is_answered = crowd.votes_per_task > 0
        hits = np.bincount(worker, probs[option], crowd.n_workers) if not self.weighted else accuracy * chances
        return InferredTexts(
            join_tokens(tokens, task, token[winner], crowd.n_tasks, " " if self.unit == "words" else ""),
            np.where(is_answered, confidence, 0.0),
            np.where(is_answered, np.where(has_slots > 0, mean, 1.0), 0.0),
            np.asarray(hits / np.maximum(chances, 1), dtype=np.float64),
            n_iter,
            converged,
        )


def join_tokens(tokens: TokenCodes, task: Codes, token: Codes, n_tasks: int, separator: str) -> list[str]:
    """Return the text of every task from its tokens.

    Parameters
    ----------
    tokens : TokenCodes
        Vocabulary.
    task, token : ndarray of shape (n_slots,)
        Task and token of each slot, in the order of the text; negative tokens are left out.
    n_tasks : int
        Number of tasks.
    separator : str
        Text between tokens.

    Returns
    -------
    list of str
    """
    is_token = token >= 0
    words = tokens.tokens.to_numpy()[token[is_token]]
    ends = np.cumsum(np.bincount(task[is_token], minlength=n_tasks))
    return [separator.join(part) for part in np.split(words, ends[:-1])]
