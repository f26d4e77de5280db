"""Agreement between pairs of workers, from which skills can be estimated without truth.

If a worker is right with probability a_r and errs uniformly, two workers agree on a task with probability
1/K + (1 − 1/K) s_a s_b, where s_r = (K a_r − 1)/(K − 1) is the skill: 1 for a perfect worker, 0 for a guesser. So agreement
corrected for chance is a matrix of rank one off its diagonal. Only pairs of workers who share tasks are stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.em.loop import iterate_to_fixed_point
from wisecrowd.em.poll import Poll

#: Largest entry of the eigenvector that counts as zero; rounding alone could change its sign.
ZERO_TOLERANCE = 1e-6
#: Largest change of the eigenvector at convergence.
SIGN_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class PairwiseAgreement:
    """Pairs of workers who share tasks, in both orders, sorted by first and second worker.

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", "ann", 0), ("t1", "bob", 0), ("t2", "ann", 1), ("t2", "bob", 0)])
    >>> pairs = PairwiseAgreement.from_crowd(crowd)
    >>> pairs.first.tolist(), pairs.second.tolist(), pairs.n_common.tolist(), pairs.agreement.tolist()
    ([0, 1], [1, 0], [2.0, 2.0], [0.0, 0.0])
    """

    first: NDArray[np.int32]
    """First worker of each pair."""
    second: NDArray[np.int32]
    """Second worker of each pair."""
    n_common: NDArray[np.float64]
    """Number of tasks that the two workers share, by weight of their votes."""
    agreement: NDArray[np.float64]
    """Agreement corrected for chance, an estimate of s_a s_b, from −1/(K − 1) to 1."""
    n_workers: int
    """Number of workers, including the oracle if there is gold."""

    @classmethod
    def from_crowd(cls, crowd: Crowd, gold: NDArray[np.int32] | None = None) -> PairwiseAgreement:
        """Count the agreements between the workers of a crowd.

        Parameters
        ----------
        crowd : Crowd
            Votes.
        gold : ndarray of shape (n_tasks,), optional
            Class codes, −1 where the truth is unknown. Gold becomes one more worker, the last one, who is always right.

        Returns
        -------
        PairwiseAgreement
        """
        import scipy.sparse as sp  # slow to import, and needed only for a spectral start

        cells, n_classes = Poll(crowd).cell_matrix, crowd.n_classes
        if gold is not None:
            tasks = np.flatnonzero(gold >= 0)
            gold_cell = tasks * n_classes + gold[tasks]
            coords = (gold_cell, np.zeros_like(gold_cell))
            oracle = sp.coo_array((np.ones(len(tasks)), coords), shape=(cells.shape[0], 1))
            cells = sp.csr_array(sp.hstack([cells, oracle]))
        task_offset = np.arange(0, cells.shape[0] + 1, n_classes)
        sum_cells = sp.csr_array((np.ones(cells.shape[0]), np.arange(cells.shape[0]), task_offset))  # tasks x cells
        pair, n_common = _count_common_rows(sum_cells @ cells)
        agreeing_pair, n_agreeing = _count_common_rows(cells)  # a subset of the pairs
        agreement = np.zeros(len(pair))
        agreement[np.searchsorted(pair, agreeing_pair)] = n_agreeing
        agreement /= n_common
        corrected = (n_classes * agreement - 1) / (n_classes - 1) if n_classes > 1 else agreement
        first, second = np.divmod(pair, cells.shape[1])
        return cls(first.astype(np.int32), second.astype(np.int32), n_common, corrected, cells.shape[1])

    def __len__(self) -> int:
        return len(self.first)

    @cached_property
    def n_partners(self) -> NDArray[np.int64]:
        """Number of other workers who share tasks with each worker."""
        return np.bincount(self.first, minlength=self.n_workers)

    def to_matrix(self, value: NDArray[np.float64]) -> Any:
        """Return one value per pair as a sparse matrix.

        Parameters
        ----------
        value : ndarray of shape (n_pairs,)
            Values of the pairs.

        Returns
        -------
        csr_array of shape (n_workers, n_workers)
        """
        import scipy.sparse as sp

        offset = np.concatenate([[0], np.cumsum(self.n_partners)])
        return sp.csr_array((value, self.second, offset), shape=(self.n_workers, self.n_workers))

    def estimate_signs(self, anchor: int | None = None, max_iter: int = 1000) -> NDArray[np.float64]:
        """Estimate the sign of the skill of every worker.

        Agreement determines skills only up to a common sign in every group of workers linked by shared tasks. The sign is
        positive for ``anchor`` in its group, and for the majority in the other groups. Signs are those of the leading
        eigenvector of the evidence (agreement times common tasks), scaled by the total evidence of each worker, found by
        power iteration in all groups at once.

        Parameters
        ----------
        anchor : int, optional
            Worker whose skill is positive.
        max_iter : int, default 1000
            Maximum number of power iterations.

        Returns
        -------
        ndarray of shape (n_workers,)
            +1 or −1.

        Examples
        --------
        >>> votes = [(task, worker, (task + (worker == "bad")) % 2) for task in range(4) for worker in ("a", "b", "bad")]
        >>> PairwiseAgreement.from_crowd(Crowd.from_triples(votes)).estimate_signs().tolist()
        [1.0, 1.0, -1.0]
        """
        from scipy.sparse.csgraph import connected_components

        evidence = self.to_matrix(self.agreement * self.n_common)
        size = np.sqrt(np.abs(evidence).sum(axis=1))
        scale = np.divide(1, size, out=np.zeros_like(size), where=size > 0)
        n_groups, group = connected_components(evidence, directed=False)

        def step(vector: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
            image = vector + scale * (evidence @ (scale * vector))
            length = np.sqrt(np.bincount(group, image**2, n_groups))[group]
            image = np.divide(image, length, out=np.zeros_like(image), where=length > 0)
            return image, float(np.abs(image - vector).max(initial=0))

        vector = iterate_to_fixed_point(step, size, max_iter=max_iter, tol=SIGN_TOLERANCE).state
        sign = np.where(np.abs(vector) > ZERO_TOLERANCE, np.sign(vector), 0)
        group_sign = np.sign(np.bincount(group, sign, n_groups))
        if anchor is not None:
            group_sign[group[anchor]] = sign[anchor]
        group_sign[group_sign == 0] = 1
        sign *= group_sign[group]
        sign[sign == 0] = 1
        return sign


def clip_skills(skill: NDArray[np.float64], crowd: Crowd) -> NDArray[np.float64]:
    """Clip skills to the precision 1/√(number of tasks), since a perfect skill would overrule all other workers.

    Parameters
    ----------
    skill : ndarray of shape (n_workers,)
        Skills.
    crowd : Crowd
        Votes.

    Returns
    -------
    ndarray of shape (n_workers,)

    Examples
    --------
    >>> crowd = Crowd.from_triples([(task, "ann", task % 2) for task in range(16)])
    >>> clip_skills(np.array([-1.0, 0.2, 1.0]), crowd).tolist()
    [-0.75, 0.2, 0.75]
    """
    margin = min(1 / np.sqrt(np.count_nonzero(crowd.votes_per_task)), 0.5)
    return np.clip(skill, margin - 1 / max(crowd.n_classes - 1, 1), 1 - margin)


def compute_log_odds(skill: NDArray[np.float64], n_classes: int) -> NDArray[np.float64]:
    """Compute the weight of a vote, log((K − 1) a / (1 − a)), from the skill, with accuracy a = (1 + (K − 1) s) / K.

    Parameters
    ----------
    skill : ndarray of shape (n_workers,)
        Skills.
    n_classes : int
        Number of classes.

    Returns
    -------
    ndarray of shape (n_workers,)

    Examples
    --------
    >>> compute_log_odds(np.array([0.0, 0.6]), 2).round(3).tolist()  # accuracy 0.5 and 0.8
    [0.0, 1.386]
    """
    return np.log1p((n_classes - 1) * skill) - np.log1p(-skill)


def _count_common_rows(table: Any) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return pairs of different columns with common rows, coded as first·n_columns + second and sorted, and their product."""
    product = (table.T @ table).tocoo()
    first, second = product.coords
    differ = first != second
    pair = first[differ].astype(np.int64) * table.shape[1] + second[differ]
    order = np.argsort(pair, kind="stable")
    return pair[order], product.data[differ][order].astype(np.float64)
