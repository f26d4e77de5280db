"""Diagnosis of workers: accuracy, information, spammers, adversaries, copying and drift."""

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
    normalize_log_probs,
)
from wisecrowd.em.priors import estimate_crowd_confusion, estimate_prior_strength
from wisecrowd.evaluate.intervals import accuracy_log_likelihood, worker_intervals
from wisecrowd.utils.levels import LEVEL

#: Smallest accuracy of a helpful worker, as a share of the way from chance to perfection.
MIN_HELPFULNESS = 0.2
#: Probability from which a worker is flagged as adversary or drifting.
FLAG_PROBABILITY = 0.5
#: Probability from which a worker is flagged as spammer. It is lower, because a missed spammer costs more than a review.
SPAMMER_FLAG_PROBABILITY = 0.3
#: Number of accuracies on the grid of worker types.
_GRID_SIZE = 60
#: Largest number of EM steps for the shares of worker types, and largest change of a share at which they stop.
_EM_STEPS, _SHARE_TOLERANCE = 200, 1e-7


@dataclass(frozen=True, eq=False)
class WorkerDiagnosis(ModelledCrowd):
    """Diagnosis of the workers of a crowd.

    ``table`` has one row per worker with these columns:

    - ``n_votes`` and ``accuracy`` with the credible interval ``low`` to ``high``;
    - ``agreement``, the share of other votes on the same tasks with the same label;
    - ``reliability``, from 0 (labels unrelated to the truth, as of a spammer) to 1 (labels determine the truth);
    - ``information``, the mutual information of label and truth as a share of the entropy of the truth;
    - ``top_label`` and ``top_share``, the most frequent label and its share;
    - ``p_spammer`` and ``p_adversary``;
    - ``p_drift``, ``before``, ``after`` and ``since`` if votes have times (see `detect_drift`);
    - ``flags``, and the reason of each flag in ``why``.

    Each vote is compared with the posterior of the *other* votes on its task, and confusion matrices of workers with few votes are
    shrunk towards that of the crowd. Otherwise workers would look better than they are, most of all if votes are few.

    If the model has groups of workers who err together (a fitted `Panel`), the other votes are those from outside the worker's
    group, and members of a group are not reported as copies of each other. The table then starts with ``kind`` and
    ``belongs_to``. Workers without votes from outside their group are not flagged as spammers or adversaries.

    Parameters
    ----------
    crowd : Crowd
        Votes with classes and worker ids.
    fitted : ConfusionEM or str, default=None
        Fitted method with confusion matrices, or its name. Defaults to Dawid–Skene.
    level : float, default=0.9
        Probability of the credible intervals.

    Examples
    --------
    >>> from wisecrowd import simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=300, workers=["expert"] * 8 + ["spammer", "adversary"], votes_per_task=5)
    >>> WorkerDiagnosis(simulation.crowd).table["flags"].iloc[-2:].tolist()
    ['spammer', 'adversary']
    """

    level: float = LEVEL

    purpose: ClassVar[str] = "diagnosing workers"

    @property
    def table(self) -> pd.DataFrame:
        """Table with one row per worker."""
        intervals = worker_intervals(self.model, self.crowd, level=self.level, peer_posterior=self.uncopied_posterior)
        top_label, top_share = self._top_labels
        flags, reasons = self._flags
        drift_columns: dict[str, Any] = (
            {} if self.drift is None else {str(name): column.array for name, column in self.drift.items()}
        )
        columns = {
            **get_member_columns(self.model, self.worker_ids),
            **{name: intervals[name].to_numpy() for name in ("n_votes", "accuracy", "low", "high")},
            "agreement": self.agreement,
            "reliability": self.reliability,
            "information": self.information,
            "top_label": None if self.crowd.classes is None else self.crowd.classes[top_label],
            "top_share": top_share,
            "p_spammer": self.type_probs[:, 1],
            "p_adversary": self.type_probs[:, 2],
            **drift_columns,
            "flags": flags,
            "why": reasons,
        }
        return pd.DataFrame(columns, index=self.worker_ids.rename("worker"))

    @property
    def worker_ids(self) -> pd.Index:
        """Ids of the workers, in the order of all arrays."""
        assert self.crowd.workers is not None
        return self.crowd.workers

    # ------------------------------------------------------------------ statistics by worker

    @cached_property
    def agreement(self) -> NDArray[np.float64]:
        """Share of the other votes on a worker's tasks with the same label; NaN without other votes."""
        n_same, n_others = count_agreeing_votes(self.crowd, get_worker_groups(self.model))
        with np.errstate(invalid="ignore"):
            return self._sum_by_worker(n_same) / self._sum_by_worker(n_others)

    @cached_property
    def reliability(self) -> NDArray[np.float64]:
        """Distance from a spammer, S_r = Σ_{k<k'} |π_r[k] − π_r[k']|² / (K (K − 1)): 0 for equal rows, 1 for distinct ones.

        Raykar and Yu call it the spammer score, although spammers have the lowest values.
        """
        n_classes = self.crowd.n_classes
        if n_classes == 1:
            return np.zeros(self.crowd.n_workers)
        pairs, crowd_votes = self.crowd.pairs, self.prior_strength * self.confusion
        total = self._row_totals
        # Σ_l π_r[k, l]² differs from that of the crowd's votes only in the labels that the worker has given.
        squares = pairs.sum_by_worker(self.tally * (self.tally + 2 * crowd_votes.T[pairs.label]))
        squares = ((squares + (crowd_votes**2).sum(axis=1)) / total**2).sum(axis=1)
        label_sums = self._sum_over_classes(1 / total)
        return np.asarray((n_classes * squares - (label_sums**2).sum(axis=1)) / (n_classes * (n_classes - 1)))

    @cached_property
    def information(self) -> NDArray[np.float64]:
        """Mutual information of label and truth, as a share of the entropy of the truth."""
        prior = self.model.posterior_.mean(axis=0)
        truth_entropy = -(prior * np.log(np.maximum(prior, 1e-300))).sum()
        if truth_entropy <= 0:
            return np.zeros(self.crowd.n_workers)

        pairs, crowd_votes = self.crowd.pairs, self.prior_strength * self.confusion
        total = self._row_totals
        # Σ_l v log v of the votes v = n_r[k, l] + c B[k, l] differs from that of the crowd only in the labels of the worker.
        pair_crowd_votes = crowd_votes.T[pairs.label]
        logs = pairs.sum_by_worker(_x_log_x(self.tally + pair_crowd_votes) - _x_log_x(pair_crowd_votes))
        logs = (logs + _x_log_x(crowd_votes).sum(axis=1)) / total - np.log(total)
        label_shares = self._sum_over_classes(prior / total)
        return np.asarray((logs @ prior - _x_log_x(label_shares).sum(axis=1)) / truth_entropy)

    @cached_property
    def copying(self) -> CopyingPairs:
        """Pairs of workers who copy each other."""
        return find_copying_pairs(self.crowd, self.model)

    @cached_property
    def drift(self) -> pd.DataFrame | None:
        """Changes in accuracy over time; None if votes have no times."""
        return detect_drift(self) if self.crowd.has_times else None

    # ------------------------------------------------------------------ confusion matrices

    @cached_property
    def peer_posterior(self) -> NDArray[np.float64]:
        """Posterior of each vote's task by the other votes, without those of the worker's own group."""
        return compute_peer_posterior(self.model, self.crowd)

    @cached_property
    def peer_weight(self) -> NDArray[np.float64]:
        """Weight of each vote: 0 if the model has groups and only the worker's own group voted on the task, otherwise 1."""
        if get_worker_groups(self.model) is None:
            return np.ones(self.crowd.n_votes)
        return np.asarray(np.abs(self.peer_posterior - self.model.e_step_prior_).max(axis=1) > 1e-6, dtype=np.float64)

    @cached_property
    def uncopied_posterior(self) -> NDArray[np.float64]:
        """Peer posterior without the votes of workers who copy, or are copied by, the worker of the vote.

        It serves accuracies and worker types. Confusion matrices use all other votes, because fewer votes would flatten them.
        """
        return exclude_copied_votes(self.peer_posterior, self.crowd, self.model, self.copying.flagged)

    @cached_property
    def tally(self) -> NDArray[np.float64]:
        """Sum of the peer posteriors by (worker, label) pair; votes without other votes on the task do not count."""
        pairs, has_peers = self.crowd.pairs, self.crowd.votes_per_task[self.crowd.task] > 1
        weight = self.peer_weight * (self.crowd.weight * has_peers if has_peers.any() else self.crowd.weight)
        columns = [
            np.bincount(pairs.vote_pairs, weight * self.peer_posterior[:, code], minlength=len(pairs))
            for code in range(self.crowd.n_classes)
        ]
        return np.stack(columns, axis=1)

    @cached_property
    def confusion(self) -> NDArray[np.float64]:
        """Confusion matrix of the whole crowd, by true class and label."""
        return estimate_crowd_confusion(self.tally, self.crowd.pairs)

    @cached_property
    def prior_strength(self) -> float:
        """Pseudo-votes of the crowd's confusion matrix in each row of a worker's matrix."""
        return estimate_prior_strength(self.tally, self.crowd.pairs, self.confusion)

    def confusion_of(self, workers: Any, classes: Any = None) -> NDArray[np.float64]:
        """Return the confusion matrices of workers, shrunk towards that of the crowd.

        Parameters
        ----------
        workers : sequence of int
            Positions of the workers.
        classes : sequence of int, default=None
            Positions of the classes to return, both as true class and as label. Defaults to all.

        Returns
        -------
        ndarray of shape (n_selected, n_classes, n_classes)
            Probabilities by worker, true class and label. Rows over some of the classes sum to less than one.
        """
        pairs, n_classes = self.crowd.pairs, self.crowd.n_classes
        selected = np.asarray(workers, dtype=np.intp)
        columns = np.arange(n_classes) if classes is None else np.asarray(classes, dtype=np.intp)
        worker_position, label_position = np.full(self.crowd.n_workers, -1), np.full(n_classes, -1)
        worker_position[selected], label_position[columns] = np.arange(len(selected)), np.arange(len(columns))
        rows = np.flatnonzero((worker_position[pairs.worker] >= 0) & (label_position[pairs.label] >= 0))
        counts = np.zeros((len(selected), len(columns), len(columns)))
        cells = worker_position[pairs.worker[rows]], slice(None), label_position[pairs.label[rows]]
        counts[cells] = self.tally[rows][:, columns]
        counts += self.prior_strength * self.confusion[np.ix_(columns, columns)]
        counts /= self._row_totals[selected[:, None], columns][:, :, None]
        return counts

    @cached_property
    def _row_totals(self) -> NDArray[np.float64]:
        """Votes and pseudo-votes by worker and true class."""
        return np.asarray(self.crowd.pairs.sum_by_worker(self.tally) + self.prior_strength)

    def _sum_over_classes(self, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return Σ_k weight_r[k] (n_r[k, l] + c B[k, l]) by worker and label: never a matrix per worker."""
        pairs = self.crowd.pairs
        sums = weight @ (self.prior_strength * self.confusion)
        sums[pairs.worker, pairs.label] += (self.tally * weight[pairs.worker]).sum(axis=1)
        return np.asarray(sums)

    def _sum_by_worker(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Sum values of the votes by worker."""
        return np.bincount(self.crowd.worker_codes, values, minlength=self.crowd.n_workers).astype(np.float64)

    # ------------------------------------------------------------------ worker types

    @cached_property
    def type_probs(self) -> NDArray[np.float64]:
        """Probability of each worker to be helpful, a spammer or an adversary, of shape (n_workers, 3).

        The types are mixture components whose shares are estimated by EM:

        - a worker who is right with probability a and errs uniformly, so that a vote has the likelihood
          a u + (1 − a)(1 − u)/(K − 1), where u is the peer posterior of its label. The accuracy a lies on a grid: helpful well
          above chance, an adversary so far below chance that a label is as informative, and a spammer in between;
        - a spammer whose labels have fixed shares, whatever the true class;
        - a helpful worker with a confusion matrix close to that of helpful workers;
        - an adversary with a confusion matrix that avoids the diagonal.
        """
        crowd, n_classes = self.crowd, self.crowd.n_classes
        if n_classes == 1:
            return np.tile([1.0, 0.0, 0.0], (crowd.n_workers, 1))
        p_right = self.uncopied_posterior[np.arange(crowd.n_votes), crowd.label]
        chance = 1 / n_classes
        grid = (np.arange(_GRID_SIZE) + 0.5) / _GRID_SIZE
        by_accuracy = accuracy_log_likelihood(
            p_right, n_classes, grid, crowd.worker_codes, crowd.n_workers, self.peer_weight
        )
        counts = np.bincount(crowd.pairs.vote_pairs, self.peer_weight, minlength=len(crowd.pairs))[:, None]
        n_compared = self._sum_by_worker(self.peer_weight)
        constant = self._dirichlet_log_likelihood(np.full((1, n_classes), 0.5), counts)
        # An adversary gives much the same wrong label each time, so the prior favours rows with few labels.
        evasive = self._dirichlet_log_likelihood(np.full((n_classes, n_classes), 0.3) - 0.2 * np.eye(n_classes))
        # Unusual rows of a rare class do not make a mostly right worker an adversary.
        with np.errstate(invalid="ignore"):
            evasive[self._sum_by_worker(p_right * self.peer_weight) / n_compared >= 0.5] = -1e300
        # Information of a label. Just below chance it is close to zero: such a worker is a spammer with bad luck.
        min_accuracy = chance + MIN_HELPFULNESS * (1 - chance)
        label_information, min_information = (
            np.log(n_classes) + a * np.log(a) + (1 - a) * np.log((1 - a) / (n_classes - 1))
            for a in (grid, min_accuracy)
        )
        is_adversary = (grid < chance) & (label_information >= min_information)
        worker_type = np.where(grid > min_accuracy, 0, np.where(is_adversary, 2, 1))
        worker_type[0] = 2  # a worker who is never right is an adversary
        # Prior of five pseudo-workers: eight in ten helpful, one a spammer, one an adversary. A stronger prior would keep
        # accuracies probable that no worker has and call lucky guessers helpful; with a weaker one, a vote or two would be
        # enough for an adversary.
        pseudo_workers = np.array([4.0, 0.5, 0.5])[worker_type] / np.bincount(worker_type, minlength=3)[worker_type]
        evidence = np.c_[by_accuracy, constant, evasive]
        pseudo_workers, worker_type = np.r_[pseudo_workers, 0.5, 0.25], np.r_[worker_type, 1, 2]
        type_probs = _estimate_type_probs(evidence, pseudo_workers, worker_type)
        if type_probs[:, 0].sum() >= 1:
            similar = self._dirichlet_log_likelihood(self._type_prior(type_probs[:, 0]))
            type_probs = _estimate_type_probs(
                np.c_[evidence, similar], np.r_[pseudo_workers, 4.0], np.r_[worker_type, 0]
            )
        if get_worker_groups(self.model) is not None:  # without votes from outside the group there is no evidence
            type_probs[n_compared == 0] = (1.0, 0.0, 0.0)
        return type_probs

    def _type_prior(self, share: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return Dirichlet pseudo-votes for the confusion matrix of a worker type, given each worker's probability of it."""
        tally, pairs = self.tally * share[self.crowd.pairs.worker, None], self.crowd.pairs
        common = estimate_crowd_confusion(tally, pairs)
        return estimate_prior_strength(tally, pairs, common) * common

    def _dirichlet_log_likelihood(
        self, prior: NDArray[np.float64], tally: NDArray[Any] | None = None
    ) -> NDArray[np.float64]:
        """Return the log-likelihood of each worker's votes if the rows of the matrix have a Dirichlet prior."""
        from scipy.special import gammaln

        counts = self.tally if tally is None else tally
        pairs = self.crowd.pairs
        pseudo_votes = prior.T[pairs.label]
        cells = (gammaln(counts + pseudo_votes) - gammaln(pseudo_votes)).sum(axis=1)
        rows = gammaln(prior.sum(axis=1)) - gammaln(pairs.sum_by_worker(counts.astype(np.float64)) + prior.sum(axis=1))
        return np.bincount(pairs.worker, cells, minlength=self.crowd.n_workers) + rows.sum(axis=1)

    # ------------------------------------------------------------------ flags

    @cached_property
    def _top_labels(self) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Most frequent label of each worker and its share."""
        return most_frequent_labels(self.crowd)

    @cached_property
    def _flags(self) -> tuple[list[str], list[str]]:
        """Flags of each worker and the reasons for them."""
        reasons: list[dict[str, str]] = [{} for _ in self.worker_ids]
        self._add_type_flags(reasons)
        self._add_copying_flags(reasons)
        self._add_drift_flags(reasons)
        return [", ".join(by_flag) for by_flag in reasons], ["; ".join(by_flag.values()) for by_flag in reasons]

    def _add_type_flags(self, reasons: list[dict[str, str]]) -> None:
        """Flag spammers and adversaries."""
        n_votes, (top_label, top_share), classes = self.crowd.votes_per_worker, self._top_labels, self.crowd.classes
        assert classes is not None
        for worker in map(int, np.flatnonzero(self.type_probs[:, 1] > SPAMMER_FLAG_PROBABILITY)):
            if top_share[worker] >= SINGLE_LABEL_SHARE:
                label = str(classes[top_label[worker]])
                reasons[worker]["one-button"] = (
                    f"{top_share[worker]:.0%} of {n_votes[worker]:,} votes are {label!r}, whatever the other votes"
                )
            else:
                reasons[worker]["spammer"] = (
                    f"{n_votes[worker]:,} votes are unrelated to the other votes (probability {self.type_probs[worker, 1]:.2f})"
                )
        for worker in map(int, np.flatnonzero(self.type_probs[:, 2] > FLAG_PROBABILITY)):
            reasons[worker]["adversary"] = (
                f"{n_votes[worker]:,} votes are right less often than by chance (probability {self.type_probs[worker, 2]:.2f})"
            )

    def _add_copying_flags(self, reasons: list[dict[str, str]]) -> None:
        """Flag both workers of copying pairs."""
        position = {name: number for number, name in enumerate(self.worker_ids)}
        flagged = self.copying.flagged
        n_partners = Counter(name for column in ("first", "second") for name in flagged[column])
        for pair in flagged.itertuples():
            for name, partner in ((pair.first, pair.second), (pair.second, pair.first)):
                more = f" (and {n_partners[name] - 1:,} other workers)" if n_partners[name] > 1 else ""
                reasons[position[name]].setdefault(
                    "copies",
                    f"{pair.same:.0%} of {pair.common:,} common labels equal those of {str(partner)!r}{more}; "
                    f"about {pair.copied:.0%} are copied",
                )

    def _add_drift_flags(self, reasons: list[dict[str, str]]) -> None:
        """Flag workers whose accuracy changes."""
        if self.drift is None:
            return
        for worker in map(int, np.flatnonzero(self.drift["p_drift"] > FLAG_PROBABILITY)):
            change = self.drift.iloc[worker]
            reasons[worker]["drifts"] = (
                f"accuracy {change['before']:.0%} until {change['since']:%Y-%m-%d %H:%M} and {change['after']:.0%} since "
                f"(probability {change['p_drift']:.2f})"
            )


def _x_log_x(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return x log x, which is 0 at 0."""
    return values * np.log(np.maximum(values, np.finfo(np.float64).tiny))


def _estimate_type_probs(
    evidence: NDArray[np.float64], pseudo_workers: NDArray[np.float64], worker_type: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Return the probability of each type, (workers, 3), from the log-likelihoods of mixture components.

    The shares of the components are estimated by EM with ``pseudo_workers`` as prior; each component has one ``worker_type``.
    """
    shares = pseudo_workers / pseudo_workers.sum()
    memberships = np.empty_like(evidence)
    for _ in range(_EM_STEPS):
        joint = evidence + np.log(shares)
        memberships = normalize_log_probs(joint)
        previous_shares = shares
        shares = (memberships.sum(axis=0) + pseudo_workers) / (len(evidence) + pseudo_workers.sum())
        if np.abs(shares - previous_shares).max() < _SHARE_TOLERANCE:
            break
    return np.stack([memberships[:, worker_type == code].sum(axis=1) for code in range(3)], axis=1)
