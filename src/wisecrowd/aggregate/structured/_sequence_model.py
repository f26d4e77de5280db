"""Bayesian sequence combination: true tags form a Markov chain, and workers tag every token that they saw.

Tags are O, and B and I of each class: B begins a span, I continues it. A span has the tags B I … I. All sequences advance
together, token by token, so no loop runs over tasks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import digamma

from wisecrowd.data.documents import TokenTexts
from wisecrowd.data.spans import SpanCrowd
from wisecrowd.em.loop import iterate_to_fixed_point

Array = NDArray[np.float64]
Codes = NDArray[np.int64]
WorkerModel = Literal["sequential", "accuracy"]

#: Pseudo-count of tags that cannot follow each other, such as O and I.
FORBIDDEN = 1e-12
#: Logarithms of probabilities are bounded, so that a forbidden tag that a worker gave does not rule out all tags.
MIN_LOG_PROB = -1e3


class SequencePrior(NamedTuple):
    """Pseudo-counts of Dirichlet priors.

    Parameters
    ----------
    confusion : float
        Of every tag that a worker may give.
    correct : float
        Additional pseudo-count of the right tag.
    transition : float
        Of every transition of true tags.
    word : float
        Of every word, for each tag.
    """

    confusion: float
    correct: float
    transition: float
    word: float


@dataclass(frozen=True)
class SequenceFit:
    """Posterior of the tags of all tokens.

    Parameters
    ----------
    tag_probs : ndarray of shape (n_tokens, n_tags)
        Posterior of every tag.
    forward, backward, likelihood : ndarray of shape (n_tokens, n_tags)
        Scaled messages, and the evidence for each tag.
    scale : ndarray of shape (n_tokens,)
        Normalising constants of the forward messages.
    transition : ndarray of shape (n_tags, n_tags)
        Transitions as used by the messages.
    n_iter : int
        Number of iterations.
    converged : bool
        Whether the iteration converged.
    trace : ndarray of shape (n_iter,)
        Evidence of all tags, the logarithm of the sum over sequences, before every iteration.
    """

    tag_probs: Array
    forward: Array
    backward: Array
    likelihood: Array
    scale: Array
    transition: Array
    n_iter: int
    converged: bool
    trace: Array


class _Messages(NamedTuple):
    forward: Array
    backward: Array
    likelihood: Array
    scale: Array
    tag_probs: Array
    transitions: Array
    log_evidence: float


def encode_tags(crowd: SpanCrowd, length: Codes) -> tuple[Codes, Codes]:
    """Return the tags that workers gave, assignment by assignment.

    Where two spans of a worker overlap, the later one is left out.

    Parameters
    ----------
    crowd : SpanCrowd
        Spans with offsets in tokens.
    length : ndarray of shape (n_tasks,)
        Number of tokens of each task.

    Returns
    -------
    tags : ndarray of shape (n_tags_given,)
        Tags: 0 is O, 1 + 2c is B and 2 + 2c is I of class c.
    offset : ndarray of shape (n_votes + 1,)
        Assignment ``n`` has the tags ``offset[n]:offset[n + 1]``.

    Examples
    --------
    >>> crowd = SpanCrowd.from_frame({"task": ["d"], "worker": ["ann"], "start": [1], "end": [3]})
    >>> encode_tags(crowd, np.array([4]))[0].tolist()
    [0, 1, 2, 0]
    """
    offset = np.concatenate([[0], np.cumsum(length[crowd.task])]).astype(np.int64)
    tags = np.zeros(offset[-1], dtype=np.int64)
    start, end = crowd.coordinates.astype(np.int64).T
    begin, stop = offset[crowd.mark] + start, offset[crowd.mark] + end
    # Of a worker's equal spans of two classes, the one of the more frequent class stays, whatever the classes are called.
    frequency = np.bincount(crowd.label, minlength=crowd.n_classes)
    order = np.lexsort((crowd.label, -frequency[crowd.label], stop, begin))
    begin, stop, label = begin[order], stop[order], crowd.label[order].astype(np.int64)
    is_free = np.ones(len(begin), dtype=bool)
    # Spans are sorted by their first token; one is free if no earlier span reaches it. Removing spans may free others.
    while len(begin):
        reached = np.maximum.accumulate(np.concatenate([[0], np.where(is_free, stop, 0)[:-1]]))
        overlaps = is_free & (begin < reached)
        if not overlaps.any():
            break
        first = int(np.flatnonzero(overlaps)[0])
        clashing = np.flatnonzero(overlaps)
        # Overlapping spans that are preceded by a span that stays are left out at once.
        previous_is_free = np.concatenate([[True], ~overlaps[:-1]])[clashing]
        is_free[clashing[previous_is_free] if previous_is_free.any() else first] = False
    begin, stop, label = begin[is_free], stop[is_free], label[is_free]
    inside = np.repeat(2 + 2 * label, stop - begin)
    size = stop - begin
    position = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size) + np.repeat(begin, size)
    tags[position] = inside
    tags[begin] = 1 + 2 * label
    return tags, offset


class SequenceModel:
    """Variational inference for tags of sequences.

    Parameters
    ----------
    crowd : SpanCrowd
        Spans with offsets in tokens.
    texts : TokenTexts
        Lengths, sentences and words of the tasks.
    prior : SequencePrior
        Priors.
    worker_model : {"sequential", "accuracy"}
        Tags of a worker depend on the true tag and the worker's previous tag ("sequential"), or a worker has an accuracy per tag
        ("accuracy").
    """

    def __init__(self, crowd: SpanCrowd, texts: TokenTexts, prior: SequencePrior, worker_model: WorkerModel) -> None:
        self.texts, self.prior, self.worker_model = texts, prior, worker_model
        self.n_workers, self.n_tags = crowd.n_workers, 1 + 2 * crowd.n_classes
        tags, offset = encode_tags(crowd, texts.length)
        count = np.diff(offset)
        position = np.arange(offset[-1]) - np.repeat(offset[:-1], count)
        token = np.repeat(texts.offset[crowd.task], count) + position
        previous = np.concatenate([[0], tags[:-1]]) if len(tags) else tags
        previous[texts.begins_sentence[token]] = 0
        n_tags = self.n_tags
        self.n_tokens = int(texts.length.sum())
        self.seen_by = np.repeat(crowd.votes_per_task, texts.length)
        # Most tags are an O after an O. They are summed by task; only the others are listed.
        listed = np.flatnonzero((previous != 0) | (tags != 0))
        self.token, self.tag = token[listed], tags[listed]
        self.worker = np.repeat(crowd.worker.astype(np.int64), count)[listed]
        self.key = (self.worker * n_tags + previous[listed]) * n_tags + self.tag
        self.assignments = sparse.csr_matrix(
            (np.ones(crowd.n_votes), crowd.worker, crowd.task_offset), shape=(crowd.n_tasks, crowd.n_workers)
        )
        self.is_forbidden = np.zeros((n_tags, n_tags), dtype=bool)
        for inside in range(2, n_tags, 2):
            self.is_forbidden[:, inside] = True
            self.is_forbidden[[inside - 1, inside], inside] = False
        self._plan_steps()

    def _plan_steps(self) -> None:
        """Order the tokens by their position in the sentence, so that all sentences advance together."""
        begins = self.texts.begins_sentence
        sentence = np.cumsum(begins) - 1
        position = (
            np.arange(self.n_tokens) - np.flatnonzero(begins)[sentence] if self.n_tokens else np.empty(0, np.int64)
        )
        order = np.argsort(position, kind="stable")
        ends = np.cumsum(np.bincount(position)) if self.n_tokens else np.empty(0, np.int64)
        self.steps = np.split(order, ends[:-1]) if self.n_tokens else []

    def vote_shares(self) -> Array:
        """Return the share of workers who gave each tag to each token, from which the iteration starts.

        Returns
        -------
        ndarray of shape (n_tokens, n_tags)
        """
        cell = self.token * self.n_tags + self.tag
        shares = np.bincount(cell, minlength=self.n_tokens * self.n_tags).reshape(self.n_tokens, self.n_tags) + 1e-9
        shares[:, 0] += self.seen_by - np.bincount(self.token, minlength=self.n_tokens)
        # A token that nobody saw is outside, as most tokens are.
        shares[:, 0] += 1e-6
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def fit(self, *, max_iter: int, tol: float) -> SequenceFit:
        """Run variational inference.

        Parameters
        ----------
        max_iter : int
            Maximum number of iterations.
        tol : float
            Largest change of a probability at convergence.

        Returns
        -------
        SequenceFit
        """
        trace: list[float] = []
        last: list[tuple[_Messages, Array]] = []
        counts = np.full((self.n_tags, self.n_tags), 1.0)

        def step(state: tuple[Array, Array]) -> tuple[tuple[Array, Array], float]:
            tag_probs, transition_counts = state
            transition = self._expect_transition(transition_counts)
            messages = self._pass_messages(self._compute_evidence(tag_probs), transition)
            trace.append(messages.log_evidence)
            last[:] = [(messages, transition)]
            change = float(np.abs(messages.tag_probs - tag_probs).max(initial=0))
            return (messages.tag_probs, messages.transitions), change

        _, n_iter, converged = iterate_to_fixed_point(
            step, (self.vote_shares(), counts), max_iter=max_iter, tol=tol, title="Sequences"
        )
        messages, transition = last[0]
        return SequenceFit(
            messages.tag_probs, messages.forward, messages.backward, messages.likelihood, messages.scale, transition,
            n_iter, converged, np.array(trace),
        )  # fmt: skip

    def _expect_transition(self, counts: Array) -> Array:
        """Return exp(E[log P(tag | previous tag)])."""
        posterior = np.where(self.is_forbidden, FORBIDDEN, self.prior.transition + counts)
        log_probs = digamma(posterior) - digamma(posterior.sum(axis=1, keepdims=True))
        return np.asarray(np.exp(np.maximum(log_probs, -700.0)))

    def _compute_evidence(self, tag_probs: Array) -> Array:
        """Return the expected log-probability of what workers gave, and of the word, under each tag."""
        table = (
            self._sequential_table(tag_probs) if self.worker_model == "sequential" else self._accuracy_table(tag_probs)
        )
        outside = table.reshape(self.n_workers, self.n_tags**2, self.n_tags)[:, 0]  # an O after an O
        evidence = np.repeat(self.assignments @ outside, self.texts.length, axis=0)
        for tag in range(self.n_tags):
            difference = table[self.key, tag] - outside[self.worker, tag]
            evidence[:, tag] += np.bincount(self.token, difference, self.n_tokens)
        if self.texts.word is not None:
            counts = np.stack(
                [np.bincount(self.texts.word, column, self.texts.n_words) for column in tag_probs.T], axis=1
            )
            posterior = counts + self.prior.word
            evidence += (digamma(posterior) - digamma(posterior.sum(axis=0)))[self.texts.word]
        return evidence

    def _count_labels(self, tag_probs: Array) -> Array:
        """Return expected counts by worker, previous tag given, tag given, and true tag."""
        n = self.n_workers * self.n_tags**2
        columns = [np.bincount(self.key, column[self.token], n) for column in tag_probs.T]
        counts = np.stack(columns, axis=1).astype(np.float64).reshape(self.n_workers, self.n_tags**2, self.n_tags)
        sums = np.concatenate([np.zeros((1, self.n_tags)), np.cumsum(tag_probs, axis=0)])
        offset = self.texts.offset
        total = self.assignments.T @ (sums[offset[1:]] - sums[offset[:-1]])
        counts[:, 0] += np.maximum(total - counts.sum(axis=1), 0)
        return counts.reshape(self.n_workers, self.n_tags, self.n_tags, self.n_tags)

    def _sequential_table(self, tag_probs: Array) -> Array:
        """Return E[log P(tag given | true tag, previous tag given)] by key and true tag."""
        n_tags = self.n_tags
        prior = np.full((n_tags, n_tags, n_tags), self.prior.confusion)  # previous given, given, true
        prior[:, np.arange(n_tags), np.arange(n_tags)] += self.prior.correct
        prior[self.is_forbidden] = FORBIDDEN
        posterior = prior + self._count_labels(tag_probs)
        log_probs = digamma(posterior) - digamma(posterior.sum(axis=2, keepdims=True))
        return np.asarray(np.maximum(log_probs, MIN_LOG_PROB).reshape(-1, n_tags))

    def _accuracy_table(self, tag_probs: Array) -> Array:
        """Return E[log P(tag given | true tag)] if all wrong tags are equally likely, by key and true tag."""
        n_tags = self.n_tags
        counts = self._count_labels(tag_probs).sum(axis=1)  # worker, given, true
        right = np.diagonal(counts, axis1=1, axis2=2) + self.prior.correct
        wrong = counts.sum(axis=1) - np.diagonal(counts, axis1=1, axis2=2) + self.prior.confusion
        log_right = digamma(right) - digamma(right + wrong)
        log_wrong = digamma(wrong) - digamma(right + wrong) - np.log(max(n_tags - 1, 1))
        table = np.repeat(log_wrong[:, None, :], n_tags, axis=1)
        table[:, np.arange(n_tags), np.arange(n_tags)] = log_right
        shape = (self.n_workers, n_tags, n_tags, n_tags)
        return np.broadcast_to(table[:, None], shape).reshape(-1, n_tags)

    def _pass_messages(self, evidence: Array, transition: Array) -> _Messages:
        """Run the forward–backward algorithm on all sentences at once."""
        highest = evidence.max(axis=1, keepdims=True) if len(evidence) else np.zeros((0, 1))
        likelihood = np.exp(evidence - highest)
        forward, backward = np.empty_like(likelihood), np.ones_like(likelihood)
        scale = np.ones(self.n_tokens)
        for number, tokens in enumerate(self.steps):
            arriving = transition[:1] if number == 0 else forward[tokens - 1] @ transition
            message = arriving * likelihood[tokens]
            scale[tokens] = message.sum(axis=1)
            forward[tokens] = message / scale[tokens][:, None]
        for tokens in self.steps[:0:-1]:
            backward[tokens - 1] = (likelihood[tokens] * backward[tokens]) @ transition.T / scale[tokens][:, None]
        tag_probs = forward * backward
        tag_probs /= tag_probs.sum(axis=1, keepdims=True)
        first = self.steps[0] if self.steps else np.empty(0, np.int64)
        following = np.concatenate(self.steps[1:]) if len(self.steps) > 1 else np.empty(0, np.int64)
        leaving = likelihood[following] * backward[following] / scale[following][:, None]
        transitions = (forward[following - 1].T @ leaving) * transition
        transitions[0] += tag_probs[first].sum(axis=0)  # a sentence begins after an O
        log_evidence = float(np.log(scale).sum() + highest.sum())
        return _Messages(forward, backward, likelihood, scale, tag_probs, transitions, log_evidence)


def find_likely_spans(fit: SequenceFit, texts: TokenTexts) -> tuple[Codes, Codes, Codes, Codes]:
    """Return the spans that the most probable tag of every token makes.

    Parameters
    ----------
    fit : SequenceFit
        Posterior.
    texts : TokenTexts
        Lengths of the tasks.

    Returns
    -------
    task, start, end, label : ndarray of shape (n_spans,)
    """
    best = fit.tag_probs.argmax(axis=1)
    is_begin = (best % 2 == 1) & (best > 0)
    label = (best - 1) // 2
    is_inside = (best > 0) & (best % 2 == 0)
    begin = np.flatnonzero(is_begin)
    if not len(begin):
        empty = np.empty(0, np.int64)
        return empty, empty, empty, empty
    # A span ends where a token is not the inside of its class, or a sentence begins.
    continues = np.zeros(len(best), dtype=bool)
    continues[1:] = is_inside[1:] & (label[1:] == label[:-1]) & (best[:-1] > 0) & ~texts.begins_sentence[1:]
    breaks = np.append(np.flatnonzero(~continues), len(best))
    end = breaks[np.searchsorted(breaks, begin, side="right")]
    offset = texts.offset
    task = np.searchsorted(offset, begin, side="right") - 1
    return task, begin - offset[task], end - offset[task], label[begin]


def compute_span_probs(
    fit: SequenceFit, texts: TokenTexts, task: Codes, start: Codes, end: Codes, label: Codes
) -> Array:
    """Return the posterior probability of exact spans: B, then I up to the end, then no I.

    Parameters
    ----------
    fit : SequenceFit
        Posterior.
    texts : TokenTexts
        Lengths of the tasks.
    task, start, end, label : ndarray of shape (n_spans,)
        Spans.

    Returns
    -------
    ndarray of shape (n_spans,)
        Zero for a span across sentences.
    """
    first, length = texts.offset[task] + start, end - start
    tag_begin, tag_inside = 1 + 2 * label, 2 + 2 * label
    probs = fit.forward[first, tag_begin].copy() if len(first) else np.empty(0)
    tag = tag_begin.copy()
    for step in range(1, int(length.max(initial=0))):
        rows = np.flatnonzero((length > step) & (probs > 0))
        tokens = first[rows] + step
        factor = (
            fit.transition[tag[rows], tag_inside[rows]] * fit.likelihood[tokens, tag_inside[rows]] / fit.scale[tokens]
        )
        probs[rows] *= np.where(texts.begins_sentence[tokens], 0.0, factor)
        tag[rows] = tag_inside[rows]
    last = first + length - 1
    following = np.minimum(last + 1, max(len(fit.scale) - 1, 0))
    is_inner = (last + 1 < len(fit.scale)) & ~texts.begins_sentence[following] if len(first) else np.empty(0, bool)
    leaving = fit.transition[tag] * fit.likelihood[following] * fit.backward[following] / fit.scale[following][:, None]
    leaving[np.arange(len(tag)), tag_inside] = 0.0
    return np.asarray(probs * np.where(is_inner, leaving.sum(axis=1), 1.0))
