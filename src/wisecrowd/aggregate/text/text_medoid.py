"""The text of a task that is nearest to all others, with weights of workers."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from wisecrowd.aggregate.text._text_distances import compare_texts, find_medoids
from wisecrowd.base.fields import method_class, parameter
from wisecrowd.base.text_aggregator import Array, InferredTexts, TextAggregator
from wisecrowd.data.texts import TextCrowd, TokenCodes
from wisecrowd.em.loop import iterate_to_fixed_point
from wisecrowd.errors import UsageError

#: Smallest mean distance of a worker, so that no worker decides alone.
MIN_DISTANCE = 0.01


@method_class
class TextMedoid(TextAggregator):
    """The answer of a worker that is nearest to the other answers, where reliable workers count more.

    The distance of two texts is their edit distance over the length of the longer one. A worker weighs 1 / v, where v is the mean
    distance of the worker's texts to those of others, weighted in turn. The result is always the text of a worker, as it was
    written. `Rover` combines words of several workers and is more accurate for transcriptions; a medoid suits texts that must
    not be mixed, such as translations.

    Examples
    --------
    >>> from wisecrowd import TextMedoid
    >>> votes = {"task": ["t"] * 3, "worker": ["ann", "bob", "cy"], "text": ["The cat sat.", "the cat sad", "a cat sat"]}
    >>> TextMedoid().fit(votes).texts_.to_dict()
    {'t': 'The cat sat.'}
    """

    references: ClassVar[tuple[str, ...]] = ("li2019dataset",)

    weighted: bool = parameter(default=True, help="Weight workers by their mean distance to others.")
    shrinkage: float = parameter(default=5.0, help="Pseudo-texts that draw a worker's distance to that of the crowd.")
    max_iter: int = parameter(default=100, help="Maximum number of iterations.")
    tol: float = parameter(default=1e-4, help="Largest relative change of a weight at convergence.")

    def _infer_texts(self, crowd: TextCrowd, tokens: TokenCodes) -> InferredTexts:
        if not self.shrinkage >= 0:
            raise UsageError(f"shrinkage must be 0 or more; got {self.shrinkage}")
        pairs = compare_texts(crowd, tokens)
        worker, n_workers = crowd.worker, crowd.n_workers
        has_others = (crowd.votes_per_task[crowd.task] > 1).astype(np.float64)
        chances = np.bincount(worker, has_others, n_workers)

        def measure(weight: Array) -> Array:
            """Return the mean distance of every text to the others of its task."""
            total = np.bincount(crowd.task, weight[worker], crowd.n_tasks)[crowd.task] - weight[worker]
            return pairs.sum_distances(weight[worker]) / np.maximum(total, 1e-12)

        def estimate(weight: Array) -> Array:
            """Return the mean distance of every worker."""
            distances = np.bincount(worker, measure(weight) * has_others, n_workers)
            pooled = distances.sum() / max(chances.sum(), 1.0)
            strength = max(self.shrinkage, 1e-9)
            return np.asarray(np.maximum((distances + strength * pooled) / (chances + strength), MIN_DISTANCE))

        def step(weight: Array) -> tuple[Array, float]:
            updated = 1 / estimate(weight)
            updated /= updated.mean()
            return updated, float(np.abs(updated / weight - 1).max(initial=0))

        weight, n_iter, converged = np.ones(n_workers), 0, True
        if self.weighted:
            weight, n_iter, converged = iterate_to_fixed_point(
                step, weight, max_iter=self.max_iter, tol=self.tol, title="Texts"
            )
        cost = pairs.sum_distances(weight[worker])
        medoid = find_medoids(crowd, cost, tokens)
        is_answered = medoid >= 0
        # The confidence is the weighted share of the answers that equal the chosen one.
        is_equal = np.zeros(crowd.n_votes)
        for one, other in ((pairs.first, pairs.second), (pairs.second, pairs.first)):
            is_medoid = (medoid[crowd.task[one]] == one) & (pairs.distance == 0)
            is_equal[other[is_medoid]] = 1.0
        is_equal[medoid[is_answered]] = 1.0
        total = np.maximum(np.bincount(crowd.task, weight[worker], crowd.n_tasks), 1e-12)
        confidence = np.bincount(crowd.task, weight[worker] * is_equal, crowd.n_tasks) / total
        nearness = np.zeros(crowd.n_tasks)
        nearness[is_answered] = 1 - cost[medoid[is_answered]] / total[is_answered]
        texts = [str(crowd.text[text]) if text >= 0 else "" for text in medoid]
        return InferredTexts(texts, confidence, nearness, 1 - estimate(weight), n_iter, converged)
