"""Dawid and Skene's model for groups of workers: one confusion matrix per group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import softmax, xlogy

from wisecrowd.base.fields import method_class, parameter
from wisecrowd.data.crowd import Pairs
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.em.loop import Statistics
from wisecrowd.em.priors import blocks
from wisecrowd.engines.base import Engine
from wisecrowd.errors import UsageError
from wisecrowd.kernels.reference import LEAST, Expectation


class _Groups(NamedTuple):
    """Share of each group, (groups,), and its confusion matrix, (groups, true, said)."""

    share: NDArray[np.float64]
    confusion: NDArray[np.float64]

    def logs(self, group: int, pairs: Pairs) -> NDArray[np.float64]:
        """log Λ_m of what each pair said, (pairs, classes)."""
        return np.log(np.maximum(self.confusion[group], LEAST)).T[pairs.label]


@method_class
class DSWorkerClusters(ConfusionEM):
    """Workers fall into a few groups, and all of a group share one confusion matrix.

    Model: worker r belongs to group g_r ~ τ, and y_ir | z_i = k, g_r = m ~ Λ_m[k, ·], z_i ~ ρ. Mean field over q(z) and
    the memberships φ, with Λ, ρ and τ estimated (Imamura, Sato and Sugiyama 2018):

        φ_r(m) ∝ τ_m exp Σ_i Σ_k q_i(k) log Λ_m[k, y_ir]
        q_i(k) ∝ ρ_k exp Σ_r Σ_m φ_r(m) log Λ_m[k, y_ir]
        Λ_m[k, l] ∝ smoothing + diagonal·[k = l] + Σ_r φ_r(m) n_r[k, l]

    which climbs the evidence lower bound (`trace_`). Workers start grouped by how informative their own matrices are (by
    nuclear norm, in groups of equal size).

    Choose it when there are many workers with few labels each, for whom `DawidSkene` has nothing to go by, or when the
    groups are of interest themselves: `groups_` says who belongs together, ``group_confusion_`` what they do. Where workers
    have enough labels, their own matrices say more.

    >>> from wisecrowd import DSWorkerClusters
    >>> from wisecrowd.simulate import simulate_crowd
    >>> made = simulate_crowd(n_tasks=300, n_workers=60, n_classes=3, votes_per_task=5, random_state=1,
    ...                       workers={"expert": 0.5, "spammer": 0.5})
    >>> fitted = DSWorkerClusters(n_clusters=2).fit(made.crowd)
    >>> pd.crosstab(made.kind, fitted.groups_).to_numpy().tolist()
    [[30, 0], [0, 30]]
    """

    references: ClassVar[tuple[str, ...]] = ("imamura2018analysis",)

    n_clusters: int = parameter(default=3, help="groups of workers")

    def _check(self) -> None:
        super()._check()
        if self.n_clusters < 1:
            raise UsageError(f"n_clusters must be 1 or more; got {self.n_clusters}")

    # The table that stands in for the tally has further columns: the memberships of the pair's worker, one per group.

    def _parts(self, table: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """The tally, (pairs, classes), and the memberships, (pairs, groups)."""
        tally, member = np.split(table, [-self.n_clusters], axis=1)
        total = member.sum(axis=1, keepdims=True)
        return tally, np.divide(member, total, out=np.full_like(member, 1 / self.n_clusters), where=total > 0)

    def _groups(self, table: NDArray[Any], pairs: Pairs) -> _Groups:
        """The M-step: what the groups are like, given who belongs to them and what was true."""
        tally, member = self._parts(table)
        n_classes = tally.shape[1]
        shape, place = (n_classes, len(pairs)), (pairs.label, np.arange(len(pairs)))
        votes = np.stack([sp.csr_array((weight, place), shape=shape) @ tally for weight in member.T]).transpose(0, 2, 1)
        votes = votes.astype(np.float64) + self.smoothing + self.diagonal * np.eye(n_classes)
        total = votes.sum(axis=2, keepdims=True)
        confusion = np.divide(votes, total, out=np.full_like(votes, 1 / n_classes), where=total > 0)
        once = np.flatnonzero(np.diff(pairs.worker, prepend=-1))
        return _Groups(member[once].mean(axis=0, dtype=np.float64), confusion)

    def _memberships(self, tally: NDArray[Any], pairs: Pairs, groups: _Groups) -> NDArray[np.float64]:
        """φ, (workers, groups)."""
        fit = [np.einsum("pk,pk->p", tally, groups.logs(group, pairs)) for group in range(len(groups.share))]
        return softmax(pairs.by_worker(np.stack(fit, axis=1)) + np.log(np.maximum(groups.share, LEAST)), axis=1)

    def _geometric(self, tally: NDArray[Any], pairs: Pairs, groups: _Groups) -> NDArray[Any]:
        member = self._memberships(tally, pairs, groups)[pairs.worker]
        return np.exp(sum(weight[:, None] * groups.logs(group, pairs) for group, weight in enumerate(member.T)))

    def _label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        return self._geometric(self._parts(tally)[0], pairs, self._groups(tally, pairs)).astype(tally.dtype)

    def _log_prior(self, tally: NDArray[Any], pairs: Pairs) -> float:
        """The part of the bound that is about groups: membership, its entropy, and the prior of the matrices."""
        groups = self._groups(tally, pairs)
        member = self._memberships(self._parts(tally)[0], pairs, groups)[np.unique(pairs.worker)]
        belonging = xlogy(member, np.maximum(groups.share, LEAST)) - xlogy(member, member)
        pseudo_votes = self.smoothing + self.diagonal * np.eye(groups.confusion.shape[1])
        return float(belonging.sum() + xlogy(pseudo_votes, groups.confusion).sum())

    def _statistics(
        self, found: Expectation, label_probs: NDArray[Any], before: Statistics, pairs: Pairs
    ) -> Statistics:
        groups = self._groups(before.tally, pairs)
        member = self._memberships(self._parts(before.tally)[0], pairs, groups).astype(found.tally.dtype)
        return Statistics(found.classes, np.concatenate([found.tally, member[pairs.worker]], axis=1))

    def _starts(self, engine: Engine, start: Any, dtype: type) -> Iterator[Statistics]:
        pairs = engine.crowd.pairs
        for classes, tally in super()._starts(engine, start, dtype):
            member = self._first_groups(tally, pairs).astype(tally.dtype)
            yield Statistics(classes, np.concatenate([tally, member[pairs.worker]], axis=1))

    def _first_groups(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[np.float64]:
        """Workers in groups of equal size, by the nuclear norm of their own matrices, the most informative first."""
        n_classes = tally.shape[1]
        norm = np.empty(pairs.n_workers)
        for some in blocks(pairs.n_workers, n_classes**2):
            mine = slice(*np.searchsorted(pairs.worker, [some.start, some.stop]))
            votes = np.tile(0.01 + np.eye(n_classes) / n_classes, (len(norm[some]), 1, 1))
            votes[pairs.worker[mine] - some.start, :, pairs.label[mine]] += tally[mine]
            matrices = votes / votes.sum(axis=2, keepdims=True)
            norm[some] = np.linalg.svd(matrices, compute_uv=False).sum(axis=1)
        norm = -norm.round(9)  # equal workers go to one group, whatever they are called
        cuts = np.quantile(norm[np.unique(pairs.worker)], np.arange(1, self.n_clusters) / self.n_clusters)
        return np.eye(self.n_clusters)[np.searchsorted(cuts, norm, side="left")]

    # ------------------------------------------------------------------ what was learnt

    def _set_fitted(self, crowd: Any, posterior: Any, tally: NDArray[Any] | None = None) -> None:
        if tally is not None:
            groups = self._groups(tally, crowd.pairs)
            best_first = np.argsort(-np.trace(groups.confusion, axis1=1, axis2=2), kind="stable")
            self.group_shares_, self.group_confusion_ = (part[best_first] for part in groups)
            tally = self._parts(tally)[0]
        super()._set_fitted(crowd, posterior, tally)

    @property
    def _learnt_groups(self) -> _Groups:
        return _Groups(self._check_fitted("group_shares_"), self._check_fitted("group_confusion_"))

    @property
    def groups_(self) -> pd.Series:
        """The group of each worker, numbered from the most accurate one."""
        member = self._memberships(self.tally_, self._pairs, self._learnt_groups).argmax(axis=1)
        return pd.Series(member, index=self.workers_.index, name="group")

    def _worker_columns(self) -> dict[str, NDArray[Any]]:
        member = self._memberships(self.tally_, self._pairs, self._learnt_groups)
        return super()._worker_columns() | {"group": member.argmax(axis=1), "membership": member.max(axis=1)}

    def _predictive_label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        return self._geometric(tally, pairs, self._learnt_groups)

    def _reported_label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        groups = self._learnt_groups
        member = self._memberships(tally, pairs, groups)[pairs.worker]
        return np.einsum("pm,mkp->pk", member, groups.confusion[:, :, pairs.label])
