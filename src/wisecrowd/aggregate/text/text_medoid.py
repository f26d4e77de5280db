"""The text of a task that is nearest to all others, with weights of workers."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from wisecrowd.aggregate.text import _vector_means as means
from wisecrowd.aggregate.text._gleu import compute_gleu
from wisecrowd.aggregate.text._text_distances import compare_texts, find_medoids, group_equal_texts
from wisecrowd.base.fields import method_class, parameter
from wisecrowd.base.text_aggregator import Array, InferredTexts, TextAggregator
from wisecrowd.data.text_vectors import TextVectors
from wisecrowd.data.texts import TextCrowd, TokenCodes
from wisecrowd.em.loop import iterate_to_fixed_point
from wisecrowd.errors import UsageError, check_choice

#: Smallest mean distance of a worker, so that no worker decides alone.
MIN_DISTANCE = 0.01


@method_class
class TextMedoid(TextAggregator):
    """The answer of a worker that is nearest to the other answers, where reliable workers count more.

    The distance of two texts is their edit distance over the length of the longer one, or with vectors (embeddings) of the texts
    in ``fit(texts, X)`` their cosine distance (1 - cos) / 2. A worker weighs 1 / v, where v is the mean
    distance of the worker's texts to those of others, weighted in turn. The result is always the text of a worker, as it was
    written. `Rover` combines words of several workers and is more accurate for transcriptions; a medoid suits texts that must
    not be mixed, such as translations.

    With ``model="rasa"``, the result is the text whose vector has the highest cosine with the weighted mean of the task's
    vectors. A worker weighs β = χ²(n) / Σ d², where χ²(n) is a quantile of the chi-squared distribution for n texts, and d is
    the Euclidean distance of a vector from the mean. ``model="hrrasa"`` multiplies this weight by a local reliability γ of each
    text and divides d² by γ, which is the mean similarity to the other texts of the task in vectors, exp(-d² / (‖e‖² ‖e'‖²)),
    and in words (GLEU). Both need vectors, which should have length 1: the formulas depend on their scale. Texts that are alone
    on their task do not count for a worker.

    Examples
    --------
    >>> from wisecrowd import TextMedoid
    >>> votes = {"task": ["t"] * 3, "worker": ["ann", "bob", "cy"], "text": ["The cat sat.", "the cat sad", "a cat sat"]}
    >>> TextMedoid().fit(votes).texts_.to_dict()
    {'t': 'The cat sat.'}
    >>> def encode(texts):
    ...     return [[text.count("a"), text.count("t")] for text in texts]
    >>> TextMedoid(model="rasa").fit(votes, encode).texts_.to_dict()
    {'t': 'The cat sat.'}
    """

    references: ClassVar[tuple[str, ...]] = ("li2019dataset", "li2020crowdsourced")
    uses_vectors: ClassVar[bool] = True

    model: Literal["medoid", "rasa", "hrrasa"] = parameter(
        default="medoid",
        help="The text nearest to the others, or nearest to the weighted mean of vectors, with reliabilities of workers ('rasa') "
        "or of workers and texts ('hrrasa').",
    )
    weighted: bool = parameter(default=True, help="Weight workers by their distance to others.")
    shrinkage: float = parameter(
        default=5.0, help="Pseudo-texts that draw a worker's distance to that of the crowd, with model='medoid'."
    )
    quantile: float = parameter(
        default=0.975,
        help="Quantile of the chi-squared distribution of 'rasa' and 'hrrasa'. Workers with few texts count more with 0.975, "
        "and less with 0.025.",
    )
    embedding_share: float = parameter(
        default=0.5, help="Weight of vectors, as against words, in the local reliability of 'hrrasa'."
    )
    max_iter: int = parameter(default=100, help="Maximum number of iterations.")
    tol: float = parameter(default=1e-4, help="Largest relative change of a weight at convergence.")

    def _infer_texts(self, crowd: TextCrowd, tokens: TokenCodes, vectors: TextVectors | None) -> InferredTexts:
        self._check_parameters(vectors)
        distances = None if vectors is None else means.compare_vectors(crowd, vectors)
        pairs = compare_texts(crowd, tokens) if distances is None else distances.compute_angles()
        worker, n_workers = crowd.worker, crowd.n_workers
        has_others = crowd.votes_per_task[crowd.task] > 1
        chances = np.bincount(worker, has_others, n_workers)
        local = np.ones(crowd.n_votes)
        if self.model == "hrrasa":
            assert distances is not None
            gleu = compute_gleu(tokens, pairs.first, pairs.second)
            local = means.compute_local_reliability(crowd, distances, gleu, self.embedding_share)

        def measure(weight: Array) -> Array:
            """Return the mean distance of every text to the others of its task."""
            total = np.bincount(crowd.task, weight, crowd.n_tasks)[crowd.task] - weight
            return pairs.sum_distances(weight) / np.maximum(total, 1e-12)

        def estimate(weight: Array) -> Array:
            """Return the mean distance of every worker."""
            distance = np.bincount(worker, measure(weight[worker] * local) * has_others, n_workers)
            pooled = distance.sum() / max(chances.sum(), 1.0)
            strength = max(self.shrinkage, 1e-9)
            return np.asarray(np.maximum((distance + strength * pooled) / (chances + strength), MIN_DISTANCE))

        def step(weight: Array) -> tuple[Array, float]:
            if self.model == "medoid":
                updated = 1 / estimate(weight)
                updated /= updated.mean()
            else:
                assert distances is not None
                squared, _ = distances.measure_from_mean(crowd, weight[worker] * local)
                updated = means.update_reliability(crowd, squared, local, has_others, self.quantile)
            return updated, float(np.abs(updated / weight - 1).max(initial=0))

        weight, n_iter, converged = np.ones(n_workers), 0, True
        if self.weighted:
            weight, n_iter, converged = iterate_to_fixed_point(
                step, weight, max_iter=self.max_iter, tol=self.tol, title="Texts"
            )
        text_weight = weight[worker] * local
        cost = pairs.sum_distances(text_weight)
        if self.model == "medoid":
            medoid = find_medoids(crowd, cost, tokens)
        else:
            assert distances is not None
            medoid = find_medoids(crowd, distances.measure_from_mean(crowd, text_weight)[1], tokens)
        is_answered = medoid >= 0
        # The confidence is the weighted share of the answers that equal the chosen one.
        group = group_equal_texts(tokens)
        is_equal = group == group[medoid[crowd.task]]
        total = np.maximum(np.bincount(crowd.task, text_weight, crowd.n_tasks), 1e-12)
        confidence = np.bincount(crowd.task, text_weight * is_equal, crowd.n_tasks) / total
        nearness = np.zeros(crowd.n_tasks)
        nearness[is_answered] = 1 - cost[medoid[is_answered]] / total[is_answered]
        texts = [str(crowd.text[text]) if text >= 0 else "" for text in medoid]
        return InferredTexts(texts, confidence, nearness, 1 - estimate(weight), n_iter, converged)

    def _check_parameters(self, vectors: TextVectors | None) -> None:
        check_choice("model", self.model, ("medoid", "rasa", "hrrasa"))
        if not self.shrinkage >= 0:
            raise UsageError(f"shrinkage must be 0 or more; got {self.shrinkage}")
        if not 0 < self.quantile < 1:
            raise UsageError(f"quantile must be between 0 and 1; got {self.quantile}")
        if not 0 <= self.embedding_share <= 1:
            raise UsageError(f"embedding_share must be between 0 and 1; got {self.embedding_share}")
        if self.model != "medoid" and vectors is None:
            raise UsageError(
                f"model={self.model!r} needs vectors of the texts: call fit(texts, X) in Python, "
                "or use model='medoid', which compares words"
            )
