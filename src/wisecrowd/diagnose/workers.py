"""Whom to trust: what is known of each worker, how surely, and who should be looked at."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.diagnose.copying import CopyingPairs, exclude_copied_votes, find_copying_pairs
from wisecrowd.diagnose.drift import detect_drift
from wisecrowd.diagnose.preparation import (
    SINGLE_LABEL_SHARE,
    ModelledCrowd,
    compute_peer_posterior,
    count_agreeing_votes,
    get_member_columns,
    get_worker_groups,
    most_frequent_labels,
)
from wisecrowd.em.priors import estimate_crowd_confusion, estimate_prior_strength
from wisecrowd.evaluate.intervals import accuracy_log_likelihood, worker_intervals
from wisecrowd.utils.slices import slice_rows

#: How far from chance to perfection a helpful worker has come at least.
MIN_HELPFULNESS = 0.2
#: How probable a flag must be, given the votes; a spammer is looked at sooner, for to miss one costs more than a look.
FLAG_PROBABILITY, SPAMMER_FLAG_PROBABILITY = 0.5, 0.3
_GRID = 60


@dataclass(frozen=True, eq=False)
class WorkerDiagnosis(ModelledCrowd):
    """What the votes of a crowd say about each of its workers.

    ``table`` has a row for each worker: ``n_votes``; ``accuracy`` with ``low`` and ``high``; ``agreement``, the share of the
    other votes on the same tasks that say the same; ``spammer_score``, 0 where answers have nothing to do with the truth and 1
    where they settle it; ``information`` about the truth in an answer, as a share of what there is to know; the label they
    give most (``top_label``, ``top_share``); ``p_spammer`` and ``p_adversary``; where votes have times, ``p_drift``, accuracy
    ``before`` and ``after`` the likeliest change and ``since`` when; and ``flags``, each with its reason in ``why``.

    A vote is judged by the posterior that the *other* votes on its task give, and matrices of workers with few votes are drawn
    toward that of the crowd; with its own vote left in, anybody would look better than they are, most of all where votes are few.

    Where the model knows who belongs together (a fitted `Panel`), the others are those outside the worker's group: members err
    together, confirm nothing of each other, and are no copies. ``kind`` and ``belongs_to`` then come first. Of whoever nobody
    outside the group shares a task with, votes tell nothing, and nobody is accused.

    >>> from wisecrowd import simulate_crowd
    >>> made = simulate_crowd(n_tasks=300, workers=["expert"] * 8 + ["spammer", "adversary"], votes_per_task=5)
    >>> found = WorkerDiagnosis(made.crowd)
    >>> found.table["flags"].iloc[-2:].tolist()
    ['spammer', 'adversary']
    """

    level: float = 0.9

    purpose: ClassVar[str] = "workers are diagnosed"

    @property
    def table(self) -> pd.DataFrame:
        """A row for each worker."""
        intervals = worker_intervals(self.model, self.crowd, level=self.level, peer_posterior=self.uncopied_posterior)
        top, share = self._top_labels
        worker_ids = self.worker_ids
        flags, why = self._flags
        changes: dict[str, Any] = (
            {} if self.drift is None else {str(name): part.array for name, part in self.drift.items()}
        )
        columns = {
            **get_member_columns(self.model, worker_ids),
            **{name: intervals[name].to_numpy() for name in ("n_votes", "accuracy", "low", "high")},
            "agreement": self.agreement,
            "spammer_score": self.spammer_score,
            "information": self.information,
            "top_label": None if self.crowd.classes is None else self.crowd.classes[top],
            "top_share": share,
            "p_spammer": self.type_probs[:, 1],
            "p_adversary": self.type_probs[:, 2],
            **changes,
            "flags": flags,
            "why": why,
        }
        return pd.DataFrame(columns, index=worker_ids.rename("worker"))

    # ------------------------------------------------------------------ single figures

    @cached_property
    def agreement(self) -> NDArray[np.float64]:
        """Share of the other votes on a worker's tasks that say what the worker says; NaN where nobody else voted."""
        n_same, n_others = count_agreeing_votes(self.crowd, get_worker_groups(self.model))
        with np.errstate(invalid="ignore"):
            return self._sum_by_worker(n_same) / self._sum_by_worker(n_others)

    @cached_property
    def spammer_score(self) -> NDArray[np.float64]:
        """S_r = Σ_{k<k'} |π_r[k] − π_r[k']|² / (K (K − 1)), of Raykar and Yu: rows that are alike say nothing."""
        n_classes = self.crowd.n_classes
        if n_classes == 1:
            return np.zeros(self.crowd.n_workers)

        def score(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
            squares = n_classes * (matrix**2).sum(axis=(1, 2)) - (matrix.sum(axis=1) ** 2).sum(axis=1)
            return np.asarray(squares / (n_classes * (n_classes - 1)))

        return self._map_confusion(score)

    @cached_property
    def information(self) -> NDArray[np.float64]:
        """I(truth; answer) / H(truth): what an answer tells of the truth, whatever the worker calls it."""
        prior = self.model.posterior_.mean(axis=0)
        known = -(prior * np.log(np.maximum(prior, 1e-300))).sum()
        if known <= 0:
            return np.zeros(self.crowd.n_workers)

        def shared(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
            said = np.einsum("k,rkl->rl", prior, matrix)[:, None]
            with np.errstate(divide="ignore", invalid="ignore"):
                terms = np.where(matrix > 0, matrix * np.log(matrix / said), 0.0)
            return np.asarray(np.einsum("k,rkl->r", prior, terms) / known)

        return self._map_confusion(shared)

    @cached_property
    def copying(self) -> CopyingPairs:
        """Workers who give the same answers more often than how good they are explains."""
        return find_copying_pairs(self.crowd, self.model)

    @cached_property
    def drift(self) -> pd.DataFrame | None:
        """Who changed, and when; None where votes have no times."""
        return detect_drift(self) if self.crowd.has_times else None

    @cached_property
    def confusion(self) -> NDArray[np.float64]:
        """What the crowd as a whole says when each class is true, (true, said): by the other votes, too."""
        return estimate_crowd_confusion(self.tally, self.crowd.pairs)

    def confusion_of(self, workers: Any) -> NDArray[np.float64]:
        """Matrices of some workers, by position: (workers, true, said), drawn toward the crowd's where votes are few."""
        chosen = np.asarray(workers, dtype=np.intp)
        n_classes, pairs = self.crowd.n_classes, self.crowd.pairs
        place = np.full(self.crowd.n_workers, -1)
        place[chosen] = np.arange(len(chosen))
        mine = np.flatnonzero(place[pairs.worker] >= 0)
        said = np.zeros((len(chosen), n_classes, n_classes))
        said[place[pairs.worker[mine]], :, pairs.label[mine]] = self.tally[mine]
        said += self._strength * self.confusion
        return np.asarray(said / said.sum(axis=2, keepdims=True))

    # ------------------------------------------------------------------ inside

    @property
    def worker_ids(self) -> pd.Index:
        """Ids of the workers, in the order of every array here."""
        assert self.crowd.workers is not None
        return self.crowd.workers

    def _sum_by_worker(self, values: NDArray[Any]) -> NDArray[np.float64]:
        return np.bincount(self.crowd.worker_codes, values, minlength=self.crowd.n_workers).astype(np.float64)

    @cached_property
    def peer_posterior(self) -> NDArray[np.float64]:
        """The posterior of each vote's task by the other votes, without those of the worker's own group."""
        return compute_peer_posterior(self.model, self.crowd)

    @cached_property
    def peer_weight(self) -> NDArray[np.float64]:
        """By vote, one, or zero where a model with groups has no witness: nobody outside the group voted on the task."""
        if get_worker_groups(self.model) is None:
            return np.ones(self.crowd.n_votes)
        return np.asarray(np.abs(self.peer_posterior - self.model.e_step_prior_).max(axis=1) > 1e-6, dtype=np.float64)

    @cached_property
    def uncopied_posterior(self) -> NDArray[np.float64]:
        """The same by votes of others who neither copy the worker nor are copied: less, and what it says is worth more.

        It is for what weighs how sure it is; matrices, which add it up, would only become flatter by it.
        """
        return exclude_copied_votes(self.peer_posterior, self.crowd, self.model, self.copying.flagged)

    @cached_property
    def tally(self) -> NDArray[np.float64]:
        """The others' posteriors, added up by (worker, label) pair; where there are no others, nothing is known of a vote."""
        pairs, has_peers = self.crowd.pairs, self.crowd.votes_per_task[self.crowd.task] > 1
        weight = self.peer_weight * (self.crowd.weight * has_peers if has_peers.any() else self.crowd.weight)
        columns = [
            np.bincount(pairs.vote_pairs, weight * self.peer_posterior[:, true], minlength=len(pairs))
            for true in range(self.crowd.n_classes)
        ]
        return np.stack(columns, axis=1)

    @cached_property
    def _strength(self) -> float:
        return estimate_prior_strength(self.tally, self.crowd.pairs, self.confusion)

    def _map_confusion(self, figure: Any) -> NDArray[np.float64]:
        """A figure of each worker's matrix, some workers at a time."""
        n_classes = self.crowd.n_classes
        parts = slice_rows(self.crowd.n_workers, n_classes**2)
        everybody = np.arange(self.crowd.n_workers)
        return np.concatenate([figure(self.confusion_of(everybody[part])) for part in parts])

    @cached_property
    def _top_labels(self) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        return most_frequent_labels(self.crowd)

    @cached_property
    def type_probs(self) -> NDArray[np.float64]:
        """Probability that each worker is helpful, a spammer, an adversary: (workers, 3).

        A worker is one of these, in proportions that are estimated from all of them by EM:

        - right with probability a, erring evenly, so that a vote has the likelihood a u + (1 − a)(1 − u)/(K − 1), with u the
          others' belief in what it says; a is anywhere on a grid, helpful well above chance, an adversary so far below it that an
          answer tells as much;
        - a spammer, whose labels have shares of their own, whatever is true;
        - helpful, with a matrix about that of helpful workers;
        - an adversary who knows the truth and says something else: any matrix that avoids the diagonal.
        """
        crowd, n_classes = self.crowd, self.crowd.n_classes
        type_probs = np.zeros((crowd.n_workers, 3))
        if n_classes == 1:
            type_probs[:, 0] = 1
            return type_probs
        right = self.uncopied_posterior[np.arange(crowd.n_votes), crowd.label]
        chance = 1 / n_classes
        grid = (np.arange(_GRID) + 0.5) / _GRID
        coins = accuracy_log_likelihood(right, n_classes, grid, crowd.worker_codes, crowd.n_workers, self.peer_weight)
        counts = np.bincount(crowd.pairs.vote_pairs, self.peer_weight, minlength=len(crowd.pairs))[:, None]
        known = self._sum_by_worker(self.peer_weight)
        own = self._dirichlet_log_likelihood(np.full((1, n_classes), 0.5), counts)
        # Who says something else on purpose says much the same each time: rows are drawn toward few labels.
        evasive = self._dirichlet_log_likelihood(np.full((n_classes, n_classes), 0.3) - 0.2 * np.eye(n_classes))
        # Odd rows of a rare class do not make an adversary of somebody who is right as a rule.
        with np.errstate(invalid="ignore"):
            evasive[self._sum_by_worker(right * self.peer_weight) / known >= 0.5] = -1e300
        # What an answer tells of the truth. Below chance, with many classes, it is next to nothing: spammers with bad luck.
        least = chance + MIN_HELPFULNESS * (1 - chance)
        told, wanted = (
            np.log(n_classes) + a * np.log(a) + (1 - a) * np.log((1 - a) / (n_classes - 1)) for a in (grid, least)
        )
        kind = np.where(grid > least, 0, np.where((grid < chance) & (told >= wanted), 2, 1))
        kind[0] = 2  # who is never right means it
        # Before anybody voted: eight in ten are helpful, one a spammer, one an adversary, by five workers' worth. More would
        # keep mediocre accuracies probable that nobody has, and call helpful who is right by luck; less would let a vote or two
        # make somebody an adversary.
        before = np.array([4.0, 0.5, 0.5])[kind] / np.bincount(kind, minlength=3)[kind]
        evidence, before, kind = np.c_[coins, own, evasive], np.r_[before, 0.5, 0.25], np.r_[kind, 1, 2]
        type_probs = _mixture(evidence, before, kind)
        if type_probs[:, 0].sum() >= 1:
            like = self._dirichlet_log_likelihood(self._type_prior(type_probs[:, 0]))
            type_probs = _mixture(np.c_[evidence, like], np.r_[before, 4.0], np.r_[kind, 0])
        if get_worker_groups(self.model) is not None:  # whom nobody can judge is accused of nothing
            type_probs[known == 0] = (1.0, 0.0, 0.0)
        return type_probs

    def _type_prior(self, share: NDArray[np.float64]) -> NDArray[np.float64]:
        """Pseudo-votes of a worker's matrix, as far as workers are of a kind: what they have in common, and how much."""
        tally, pairs = self.tally * share[self.crowd.pairs.worker, None], self.crowd.pairs
        common = estimate_crowd_confusion(tally, pairs)
        return estimate_prior_strength(tally, pairs, common) * common

    def _dirichlet_log_likelihood(
        self, prior: NDArray[np.float64], tally: NDArray[Any] | None = None
    ) -> NDArray[np.float64]:
        """log P of what each worker said if the rows of their matrix are drawn from Dirichlet(prior), (true, said)."""
        from scipy.special import gammaln

        said = self.tally if tally is None else tally
        pairs = self.crowd.pairs
        before = prior.T[pairs.label]
        cells = (gammaln(said + before) - gammaln(before)).sum(axis=1)
        rows = gammaln(prior.sum(axis=1)) - gammaln(pairs.sum_by_worker(said.astype(np.float64)) + prior.sum(axis=1))
        return np.bincount(pairs.worker, cells, minlength=self.crowd.n_workers) + rows.sum(axis=1)

    @cached_property
    def _flags(self) -> tuple[list[str], list[str]]:
        counts, (top, share) = self.crowd.votes_per_worker, self._top_labels
        worker_ids, classes = self.worker_ids, self.crowd.classes
        assert classes is not None
        places = {name: place for place, name in enumerate(worker_ids)}
        flags: list[list[str]] = [[] for _ in worker_ids]
        why: list[list[str]] = [[] for _ in worker_ids]
        for place in map(int, np.flatnonzero(self.type_probs[:, 1] > SPAMMER_FLAG_PROBABILITY)):
            button = share[place] >= SINGLE_LABEL_SHARE
            flags[place].append("one-button" if button else "spammer")
            why[place].append(
                f"{share[place]:.0%} of {counts[place]:,} votes are {str(classes[top[place]])!r}, whatever the others say"
                if button
                else f"{counts[place]:,} votes that have nothing to do with what the others say "
                f"(probability {self.type_probs[place, 1]:.2f})"
            )
        for place in map(int, np.flatnonzero(self.type_probs[:, 2] > FLAG_PROBABILITY)):
            flags[place].append("adversary")
            why[place].append(
                f"{counts[place]:,} votes, right less often than a guess (probability {self.type_probs[place, 2]:.2f})"
            )
        partners = Counter(who for column in ("first", "second") for who in self.copying.flagged[column])
        for pair in self.copying.flagged.itertuples():
            for mine, other in ((pair.first, pair.second), (pair.second, pair.first)):
                place = places[mine]
                if "copies" in flags[place]:
                    continue
                flags[place].append("copies")
                more = f" (and {partners[mine] - 1:,} more answer alike)" if partners[mine] > 1 else ""
                why[place].append(
                    f"{pair.same:.0%} of {pair.common:,} answers are those of {str(other)!r}{more}, who shares about "
                    f"{pair.copied:.0%} of them for no reason that the truth gives"
                )
        if self.drift is not None:
            for place in map(int, np.flatnonzero(self.drift["p_drift"] > FLAG_PROBABILITY)):
                found = self.drift.iloc[place]
                flags[place].append("drifts")
                why[place].append(
                    f"right {found['before']:.0%} of the time until {found['since']:%Y-%m-%d %H:%M} and {found['after']:.0%} since "
                    f"(probability {found['p_drift']:.2f})"
                )
        return [", ".join(part) for part in flags], ["; ".join(part) for part in why]


def _mixture(evidence: NDArray[np.float64], before: NDArray[np.float64], kind: NDArray[np.intp]) -> NDArray[np.float64]:
    """Probability of each kind, (workers, 3), from the log-likelihoods of components that are each of a kind.

    Proportions of the components are found by EM, from pseudo-workers ``before``.
    """
    from scipy.special import logsumexp

    shares = before / before.sum()
    member = np.empty_like(evidence)
    for _ in range(200):
        weighed = evidence + np.log(shares)
        member = np.exp(weighed - logsumexp(weighed, axis=1, keepdims=True))
        shares = (member.sum(axis=0) + before) / (len(evidence) + before.sum())
    return np.stack([member[:, kind == each].sum(axis=1) for each in range(3)], axis=1)
