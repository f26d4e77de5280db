"""Detection of workers who copy each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.diagnose.preparation import compute_peer_posterior, count_agreeing_votes, get_worker_groups
from wisecrowd.diagnose.worker_pairs import (
    WorkerPairs,
    find_near_duplicates,
    find_redundant_copiers,
    find_worker_pairs,
    independent_units,
    is_contradicted,
    share_single_label,
)
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.errors import ignore_fit_warnings
from wisecrowd.evaluate.leave_one_out import RemovedVotes
from wisecrowd.utils.deduplication import MIN_ROWS_TO_MERGE, merge_equal_rows

#: Largest total of votes times classes over all refits, which bounds the running time.
MAX_REFIT_CELLS = 40_000_000
#: Largest share of the votes that one refit may exclude to examine several suspects at once.
MAX_EXCLUDED_SHARE = 0.02
#: Smallest estimated share of copied labels of a flagged pair.
MIN_COPIED_SHARE = 0.35
#: Probability of flagging any pair of a crowd without copying.
FALSE_ALARM_RATE = 0.05
#: Smallest estimated share of copied labels of a flagged pair of near-duplicates.
DUPLICATE_MIN_COPIED_SHARE = 0.8
#: Factor on the evidence limit for near-duplicates, whose test rests on fewer independent votes.
DUPLICATE_EVIDENCE_FACTOR = 2.0
#: Smallest number of pairs for estimating how much pairs in general agree more than expected.
MIN_PAIRS_FOR_INFLATION = 20
#: EM steps per pair. Three parameters converge quickly.
EM_STEPS = 60


@dataclass(frozen=True, eq=False)
class CopyingPairs:
    """Pairs of workers who give the same labels too often.

    Attributes
    ----------
    suspects : DataFrame
        Pairs who agree more with each other than with others: first, second, common (number of common tasks), same (share with
        equal labels), copied (estimated share of copied labels) and evidence (gain in log-likelihood).
    flagged : DataFrame
        Suspects whose agreement is explained by copying and not by chance.

    Examples
    --------
    >>> from wisecrowd import DawidSkene, simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=300, workers=["noisy"] * 8 + ["copier(1)"], votes_per_task=5)
    >>> len(find_copying_pairs(simulation.crowd, DawidSkene().fit(simulation.crowd)).flagged)
    1
    """

    suspects: pd.DataFrame
    flagged: pd.DataFrame


def find_copying_pairs(crowd: Crowd, model: ConfusionEM, *, min_common: int = 10) -> CopyingPairs:
    """Find pairs of workers who copy each other.

    Every two workers with at least ``min_common`` common tasks who agree more with each other than with others are suspects. Two
    explanations of their votes are compared. In both, the first worker r is right with probability a_r and errs uniformly, and the
    truth of task i is k with the probability q_i(k) that the *other* votes give it:

        independent  the second worker s is right with probability a_s, whatever the label of r
        copying      s repeats the label of r with probability c, otherwise as above

    Good workers agree often, and both models explain it; only copying explains repeated agreement against all other workers. A
    model that treats copies as independent votes overrates workers who copy, so the truth is inferred again without the second
    worker of each suspected pair and without the first worker's own vote. Members of a group of a `Panel` are not compared, and a
    group counts as one vote.

    Both models are fitted by EM. ``evidence`` is the gain in log-likelihood by copying. It must exceed a limit that depends on the
    number of pairs. If tasks mislead all workers alike, all pairs agree more than their accuracies explain; the limit therefore
    grows with the square of the upper quartile of the pairs' excess agreement, as in genomic control. Near-duplicate pairs are
    examined first, by the votes of workers who are not linked to them. The votes do not show which worker of a pair copies.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    model : ConfusionEM
        Model fitted to ``crowd``.
    min_common : int, default=10
        Smallest number of common tasks of a pair.

    Returns
    -------
    CopyingPairs

    Examples
    --------
    >>> from wisecrowd import DawidSkene, simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=300, workers=["noisy"] * 9, votes_per_task=5)
    >>> len(find_copying_pairs(simulation.crowd, DawidSkene().fit(simulation.crowd)).flagged)
    0
    """
    pairs = find_worker_pairs(crowd, model, min_common)
    duplicates = find_near_duplicates(crowd, pairs)
    duplicate_table = _weigh_explanations(crowd, duplicates, _collect_by_independent(crowd, model, duplicates))
    flagged = duplicate_table[
        _is_copied(duplicate_table, DUPLICATE_EVIDENCE_FACTOR * _evidence_limit(len(pairs)), DUPLICATE_MIN_COPIED_SHARE)
    ]
    redundant = find_redundant_copiers(flagged)
    if len(redundant):  # one of several near-duplicates is kept as evidence about the other workers
        assert crowd.workers is not None
        crowd = crowd.take(~np.isin(crowd.worker_codes, crowd.workers.get_indexer(redundant)))
        model = model.clone_unfitted()
        with ignore_fit_warnings():
            model.fit(crowd)
        pairs = find_worker_pairs(crowd, model, min_common)
    suspects = _find_suspects(crowd, pairs, get_worker_groups(model))
    suspect_table = _weigh_explanations(crowd, suspects, _collect_by_refits(crowd, model, suspects))
    flagged_suspects = suspect_table[
        _is_copied(suspect_table, _evidence_limit(len(pairs)) * _estimate_inflation(model, crowd, pairs))
    ]
    table, flagged = _merge_pair_tables(duplicate_table, suspect_table), _merge_pair_tables(flagged, flagged_suspects)
    return CopyingPairs(table, flagged.sort_values("evidence", ascending=False, ignore_index=True))


def _evidence_limit(n_compared: int) -> float:
    """Return the evidence that chance exceeds with probability `FALSE_ALARM_RATE` over all pairs."""
    from scipy.special import chdtri

    rate = 2 * FALSE_ALARM_RATE  # one-sided test, because the share c cannot be negative
    return float(chdtri(1, rate / max(n_compared, 1)) / 2)


def _is_copied(table: pd.DataFrame, limit: float, share: float = MIN_COPIED_SHARE) -> pd.Series:
    """Return whether pairs of a table exceed both limits."""
    return (table["copied"] >= share) & (table["evidence"] >= limit)


def _merge_pair_tables(duplicates: pd.DataFrame, others: pd.DataFrame) -> pd.DataFrame:
    """Concatenate two tables of pairs without duplicates."""
    if not len(duplicates):
        return others
    merged = pd.concat([duplicates, others] if len(others) else [duplicates], ignore_index=True)
    return merged.drop_duplicates(["first", "second"], ignore_index=True)


class _CommonVotes(NamedTuple):
    """Votes of pairs of workers on common tasks, with the probabilities of both labels by other votes."""

    pair: NDArray[np.intp]
    is_same: NDArray[np.bool_]
    p_first: NDArray[np.float64]
    p_second: NDArray[np.float64]

    @classmethod
    def from_posterior(
        cls, pair: int | np.integer[Any], first_label: NDArray[Any], second_label: NDArray[Any], posterior: NDArray[Any]
    ) -> _CommonVotes:
        """Return the common votes of one pair.

        Parameters
        ----------
        pair : int
            Position of the pair.
        first_label, second_label : ndarray of shape (n_tasks,)
            Labels of both workers on their common tasks.
        posterior : ndarray of shape (n_tasks, n_classes)
            Posterior of these tasks by other votes.

        Returns
        -------
        _CommonVotes
        """
        rows = np.arange(len(posterior))
        p_first, p_second = posterior[rows, first_label], posterior[rows, second_label]
        return cls(np.full(len(rows), pair), first_label == second_label, p_first, p_second)

    @classmethod
    def concatenate(cls, parts: list[_CommonVotes]) -> _CommonVotes:
        """Concatenate the common votes of several pairs."""
        if not parts:
            return cls(np.empty(0, dtype=np.intp), np.empty(0, dtype=bool), np.empty(0), np.empty(0))
        return cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _weigh_explanations(crowd: Crowd, suspects: WorkerPairs, common_votes: _CommonVotes) -> pd.DataFrame:
    """Fit both explanations of the votes of suspected pairs."""
    first, second = suspects.first, suspects.second
    pair, same, p_first, p_second = common_votes
    n_classes, n_pairs = crowd.n_classes, len(first)
    n_common, n_agreed = np.bincount(pair, minlength=n_pairs), np.bincount(pair, same, minlength=n_pairs)
    multiplicity = np.ones(len(pair))
    if len(pair) > MIN_ROWS_TO_MERGE:
        rows, multiplicity = merge_equal_rows(p_second, p_first, same, pair, weight=multiplicity)
        pair, same, p_first, p_second = pair[rows], same[rows], p_first[rows], p_second[rows]
    independent = _fit_copying(pair, same, p_first, p_second, multiplicity, n_classes, n_pairs, copying=False)
    copying = _fit_copying(pair, same, p_first, p_second, multiplicity, n_classes, n_pairs, copying=True)
    names = crowd.workers
    assert names is not None
    columns = {
        "first": names[first], "second": names[second], "common": n_common,
        "same": n_agreed / np.maximum(n_common, 1),
        "copied": copying.share, "evidence": np.maximum(copying.log_likelihood - independent.log_likelihood, 0.0),
    }  # fmt: skip
    return pd.DataFrame(columns)


def exclude_copied_votes(
    peer_posterior: NDArray[np.float64], crowd: Crowd, model: ConfusionEM, flagged: pd.DataFrame
) -> NDArray[np.float64]:
    """Remove the votes of copying partners from the posterior of each vote's task.

    Two spammers who copy each other would otherwise confirm each other.

    Parameters
    ----------
    peer_posterior : ndarray of shape (n_votes, n_classes)
        Posterior of each vote's task by the other votes; returned as it is if no pair is flagged.
    crowd : Crowd
        Votes.
    model : ConfusionEM
        Model fitted to ``crowd``.
    flagged : DataFrame
        Copying pairs with columns first and second.

    Returns
    -------
    ndarray of shape (n_votes, n_classes)

    Examples
    --------
    >>> from wisecrowd import DawidSkene
    >>> from wisecrowd.evaluate.leave_one_out import leave_one_out_posterior
    >>> crowd = Crowd.from_triples([(0, "ann", 0), (0, "bob", 1), (0, "cy", 1), (1, "ann", 0), (1, "bob", 1), (1, "cy", 0)])
    >>> model = DawidSkene().fit(crowd)
    >>> pair = pd.DataFrame({"first": ["bob"], "second": ["cy"]})
    >>> posterior = exclude_copied_votes(leave_one_out_posterior(model, crowd), crowd, model, pair)
    >>> bool(np.allclose(posterior[1], posterior[2]))  # only Ann's vote on the first task remains for both
    True
    """
    if not len(flagged):
        return peer_posterior
    assert crowd.workers is not None
    units = independent_units(model, crowd)
    also_removed: list[RemovedVotes] = []
    row_of = np.full(crowd.n_tasks, -1)
    removed: set[tuple[int, int]] = (
        set()
    )  # the votes of a group on a task are removed once, however many members are copied
    for first, second in zip(
        *(crowd.workers.get_indexer(pd.Index(flagged[name])) for name in ("first", "second")), strict=True
    ):
        first_rows, second_rows = (np.flatnonzero(crowd.worker_codes == worker) for worker in (first, second))
        row_of[:] = -1
        row_of[crowd.task[second_rows]] = second_rows
        first_rows = first_rows[row_of[crowd.task[first_rows]] >= 0]
        second_rows = row_of[crowd.task[first_rows]]
        for rows, source_rows, worker, source in (
            (first_rows, second_rows, first, second),
            (second_rows, first_rows, second, first),
        ):
            if (int(worker), int(units[source])) not in removed:
                removed.add((int(worker), int(units[source])))
                also_removed.append((rows, source_rows))
    return compute_peer_posterior(model, crowd, also_removed)


def _find_suspects(crowd: Crowd, pairs: WorkerPairs, group: NDArray[np.int32] | None) -> WorkerPairs:
    """Return the pairs who agree with each other more than either does with the others."""
    first, second, n_common, n_same = pairs
    by_worker = [
        np.bincount(crowd.worker_codes, part, minlength=crowd.n_workers) for part in count_agreeing_votes(crowd, group)
    ]
    # Usual agreement with other workers, without the votes of the pair on common tasks.
    with np.errstate(invalid="ignore", divide="ignore"):
        usual_agreement = [
            (by_worker[0][worker] - n_same) / (by_worker[1][worker] - n_common) for worker in (first, second)
        ]
    usual_agreement = [np.nan_to_num(part, nan=1 / crowd.n_classes) for part in usual_agreement]
    excess = (n_same / n_common - np.maximum(*usual_agreement)) * np.sqrt(n_common)
    excess[share_single_label(crowd, pairs)] = 0
    # Only the most suspicious pairs are examined, because each needs a refit.
    n_at_once = max(1, int(MAX_EXCLUDED_SHARE * crowd.n_votes / max(crowd.votes_per_worker.mean(), 1)))
    max_suspects = max(10, n_at_once * (MAX_REFIT_CELLS // max(crowd.n_votes * crowd.n_classes, 1)))
    candidates = np.sort(np.argsort(-excess, kind="stable")[:max_suspects])
    return pairs.select(candidates[excess[candidates] > 1])


def _estimate_inflation(model: ConfusionEM, crowd: Crowd, pairs: WorkerPairs) -> float:
    """Return (z₇₅ / 0.67)² of the pairs' agreement given their accuracies, at least one."""
    if len(pairs) < MIN_PAIRS_FOR_INFLATION:
        return 1.0
    accuracy = np.clip(model.workers_["accuracy"].to_numpy(dtype=np.float64), 0.01, 0.99)
    first_accuracy, second_accuracy = accuracy[pairs.first], accuracy[pairs.second]
    expected = first_accuracy * second_accuracy + (1 - first_accuracy) * (1 - second_accuracy) / max(
        crowd.n_classes - 1, 1
    )
    z = (pairs.n_same - pairs.n_common * expected) / np.sqrt(pairs.n_common * expected * (1 - expected))
    return float(max(np.quantile(z, 0.75) / 0.6745, 1.0) ** 2)


def _collect_by_independent(crowd: Crowd, fitted: ConfusionEM, duplicates: WorkerPairs) -> _CommonVotes:
    """Return the common votes of near-duplicate pairs and their probabilities by workers who are not linked to them.

    Ten identical workers look right to each other and to every model that counts them as ten. The independent workers are used only
    where they contradict the near-duplicates; ten experts would otherwise be compared with workers who guess.
    """
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    units = independent_units(fitted, crowd)
    ends = units[duplicates.first], units[duplicates.second]
    size = int(units.max(initial=-1)) + 1
    links = sparse.coo_array((np.ones(len(duplicates)), ends), shape=(size, size))
    cluster = connected_components(links, directed=False)[1][units]
    parts: list[_CommonVotes] = []
    labels = np.full((2, crowd.n_tasks), -1)
    max_clusters = max(10, MAX_REFIT_CELLS // max(crowd.n_votes * crowd.n_classes, 1))
    for number in pd.unique(cluster[duplicates.first])[:max_clusters]:
        in_cluster = cluster[crowd.worker_codes] == number
        independent_votes = crowd.take(~in_cluster)
        if not is_contradicted(crowd.take(in_cluster), independent_votes):
            continue
        model = fitted.clone_unfitted()
        with ignore_fit_warnings():
            model.fit(independent_votes)
        has_votes = independent_votes.votes_per_task > 0
        for pair in np.flatnonzero(cluster[duplicates.first] == number):
            labels[:] = -1
            for worker_labels, worker in zip(labels, (duplicates.first[pair], duplicates.second[pair]), strict=True):
                rows = np.flatnonzero(crowd.worker_codes == worker)
                worker_labels[crowd.task[rows]] = crowd.label[rows]
            tasks = np.flatnonzero((labels >= 0).all(axis=0) & has_votes)
            first_label, second_label = labels[:, tasks]
            parts.append(_CommonVotes.from_posterior(pair, first_label, second_label, model.posterior_[tasks]))
    return _CommonVotes.concatenate(parts)


def _collect_by_refits(crowd: Crowd, fitted: ConfusionEM, suspects: WorkerPairs) -> _CommonVotes:
    """Return the pair of every common vote, whether the labels are equal, and their probabilities by the other votes."""
    first, second = suspects.first, suspects.second
    parts: list[_CommonVotes] = []
    for excluded in _iter_excluded(crowd, first, second):
        remaining = crowd.take(~np.isin(crowd.worker_codes, excluded))
        model = fitted.clone_unfitted()
        with ignore_fit_warnings():
            model.fit(remaining)
        peer_posterior, units = compute_peer_posterior(model, remaining), independent_units(fitted, crowd)
        second_label, row_of = np.full(crowd.n_tasks, -1), np.full(crowd.n_tasks, -1)
        for pair in np.flatnonzero(np.isin(second, excluded)):
            second_rows = np.flatnonzero(crowd.worker_codes == second[pair])
            second_label[:] = -1
            second_label[crowd.task[second_rows]] = crowd.label[second_rows]
            rows = np.flatnonzero((remaining.worker_codes == first[pair]) & (second_label[remaining.task] >= 0))
            p_class = peer_posterior[rows]
            if units[second[pair]] >= crowd.n_workers:
                # The rest of the second worker's group is not independent evidence.
                group_rows = np.flatnonzero(units[remaining.worker_codes] == units[second[pair]])
                row_of[:] = -1
                row_of[remaining.task[group_rows]] = group_rows
                shared_rows = np.flatnonzero(row_of[remaining.task[rows]] >= 0)
                shared_votes = rows[shared_rows], row_of[remaining.task[rows[shared_rows]]]
                p_class = compute_peer_posterior(model, remaining, [shared_votes])[rows]
            labels = remaining.label[rows], second_label[remaining.task[rows]]
            parts.append(_CommonVotes.from_posterior(pair, *labels, p_class))
    return _CommonVotes.concatenate(parts)


def _iter_excluded(crowd: Crowd, first: NDArray[np.int64], second: NDArray[np.int64]) -> Iterator[list[int]]:
    """Yield lists of workers to exclude from a refit: the second worker of every pair, several at once if they have few votes.

    No worker is excluded together with a partner, because the partner's votes are needed.
    """
    excluded: list[int] = []
    n_excluded_votes = 0
    for worker in np.unique(second):
        partners = set(first[second == worker].tolist()) | set(second[first == worker].tolist())
        n_votes = int(crowd.votes_per_worker[worker])
        if excluded and (n_excluded_votes + n_votes > MAX_EXCLUDED_SHARE * crowd.n_votes or partners & set(excluded)):
            yield excluded
            excluded, n_excluded_votes = [], 0
        excluded.append(int(worker))
        n_excluded_votes += n_votes
    if excluded:
        yield excluded


class _CopyingFit(NamedTuple):
    """Share of copied labels and log-likelihood of each pair."""

    share: NDArray[np.float64]
    log_likelihood: NDArray[np.float64]


def _fit_copying(
    pair: NDArray[np.intp], same: NDArray[np.bool_], p_first: NDArray[np.float64], p_second: NDArray[np.float64],
    multiplicity: NDArray[np.float64], n_classes: int, n_pairs: int, *, copying: bool,
) -> _CopyingFit:  # fmt: skip
    """Fit a_r, a_s and c of every pair by EM; equal rows count ``multiplicity`` times."""
    n_common = np.maximum(np.bincount(pair, multiplicity, minlength=n_pairs), 1)
    first_accuracy, second_accuracy = np.full(n_pairs, 0.7), np.full(n_pairs, 0.7)
    copy_share = np.full(n_pairs, 0.5 if copying else 0.0)
    neither = np.where(same, 1 - p_first, np.maximum(1 - p_first - p_second, 0.0))
    likelihood = np.ones(len(pair))

    def by_pair(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(pair, multiplicity * values, minlength=n_pairs).astype(np.float64)

    for _ in range(EM_STEPS if n_pairs else 0):
        a, b, c = first_accuracy[pair], second_accuracy[pair], copy_share[pair]
        wrong_a, wrong_b = (1 - a) / (n_classes - 1), (1 - b) / (n_classes - 1)
        # The truth is the first label, the second label or neither; for equal labels the first two cases coincide.
        own_first = p_first * a * np.where(same, b, wrong_b)
        own_second = np.where(same, 0.0, p_second * wrong_a * b)
        own_neither = neither * wrong_a * wrong_b
        as_right, as_wrong = same * p_first * a, same * (1 - p_first) * wrong_a
        own = (1 - c) * (own_first + own_second + own_neither)
        likelihood = np.maximum(own + c * (as_right + as_wrong), 1e-300)
        first_accuracy = (by_pair(((1 - c) * own_first + c * as_right) / likelihood) + 1) / (n_common + 1.5)
        n_own = by_pair(own / likelihood)  # labels of the second worker that are not copied
        own_right = (1 - c) * np.where(same, own_first, own_second) / likelihood
        second_accuracy = (by_pair(own_right) + 1) / (n_own + 1.5)
        if copying:
            copy_share = np.clip(1 - n_own / n_common, 1e-6, 1 - 1e-6)
    return _CopyingFit(copy_share, by_pair(np.log(likelihood)))
