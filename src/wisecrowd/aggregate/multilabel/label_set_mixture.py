"""Label sets as a mixture of groups of tasks, so that labels that occur together support each other."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from wisecrowd.aggregate.multilabel._mark_model import MarkModel, MarkPrior, MarkProbs
from wisecrowd.aggregate.multilabel.binary_relevance import (
    PRIOR_BOUNDS,
    SHRINKAGE_HELP,
    BinaryRelevance,
    mark_probabilities,
    mean_rates,
    set_log_probs,
)
from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.base.label_set_aggregator import Array, LabelSetAggregator
from wisecrowd.data.label_sets import LabelSetCrowd
from wisecrowd.em.loop import iterate_to_fixed_point
from wisecrowd.errors import UsageError, ignore_fit_warnings
from wisecrowd.utils import progress

#: Numbers of groups that ``n_groups="auto"`` tries.
CANDIDATE_GROUPS = (1, 2, 4, 8, 16)
#: Fraction of the assignments that are held out to choose the number of groups.
HELDOUT_FRACTION = 0.1
#: Iterations of the independent model from which the groups start.
START_ITERATIONS = 20
#: Pseudo-tasks of a group, which keep its label shares off zero and one.
GROUP_PSEUDO_TASKS = 1.0


class _GroupPosterior(NamedTuple):
    """Result of an E-step."""

    group_probs: Array  # (n_tasks, n_groups)
    label_probs: Array  # (n_tasks, n_labels)
    label_counts: Array  # expected tasks by group and label, (n_groups, n_labels)
    log_likelihood: Array  # (n_tasks,)


@method_class
class LabelSetMixture(LabelSetAggregator):
    """Label sets that depend on each other through groups of similar tasks.

    A task belongs to group g with probability ω_g, and label c applies to it with probability μ_gc, independently within the
    group. Worker r marks label c with probability s_rc if it applies and f_rc if it does not. EM integrates over groups and
    labels. With one group it is `BinaryRelevance`.

    The number of groups is chosen by the likelihood of held-out votes.

    Examples
    --------
    >>> from wisecrowd import LabelSetMixture, simulate_label_sets
    >>> simulation = simulate_label_sets(n_tasks=100, n_workers=8, n_labels=5, random_state=0)
    >>> fitted = LabelSetMixture(n_groups=2).fit(simulation.crowd)
    >>> fitted.proba_.shape, fitted.group_labels_.shape
    ((100, 5), (2, 5))
    """

    references: ClassVar[tuple[str, ...]] = ("zhang2018multilabel",)

    n_groups: int | Literal["auto"] = parameter(
        default="auto", help="Number of groups; 'auto' chooses one of 1, 2, 4, 8 and 16 by held-out votes."
    )
    shrinkage: float = parameter(default=10.0, help=SHRINKAGE_HELP)
    n_starts: int = parameter(default=3, help="Number of starting points; the one with the highest likelihood is used.")
    max_iter: int = parameter(default=500, help="Maximum number of EM iterations.")
    tol: float = parameter(default=1e-3, help="Largest change of a probability at convergence.")
    random_state: int = parameter(default=0, help="Seed of the starting points and of the held-out votes.")

    group_probs_: Array = fitted(
        help="Probability of each group for each task.", shape=("n_tasks", "n_groups"), finite=True
    )
    group_prior_: Array = fitted(help="Share of tasks in each group.", shape=("n_groups",), finite=True)
    group_labels_: Array = fitted(
        help="Probability that a label applies to a task of a group.", shape=("n_groups", "n_labels"), finite=True
    )
    evidence_: Array = fitted(
        help="Log-odds of the votes for every label of every task.", shape=("n_tasks", "n_labels"), finite=True
    )
    hit_rate_: Array = fitted(help="P(mark | label applies).", shape=("n_workers", "n_labels"))
    false_alarm_rate_: Array = fitted(help="P(mark | label does not apply).", shape=("n_workers", "n_labels"))
    votes_per_worker_: NDArray[np.int64] = fitted(help="Number of assignments of each worker.", shape=("n_workers",))
    heldout_log_loss_: dict[str, float] = fitted(
        help="Mean log loss of held-out votes by number of groups, for 'auto'."
    )
    trace_: Array = fitted(help="Log-likelihood plus log-prior before every iteration.", shape=("n_iter",))
    n_iter_: int = fitted(help="Number of EM iterations.")
    converged_: bool = fitted(help="Whether the iteration converged.")

    def _infer_labels(self, crowd: LabelSetCrowd) -> Array:
        if self.n_groups != "auto" and self.n_groups < 1:
            raise UsageError(f"n_groups must be 1 or more, or 'auto'; got {self.n_groups!r}")
        if not (self.shrinkage >= 0 and self.n_starts >= 1):
            raise UsageError(
                f"shrinkage must be 0 or more and n_starts 1 or more; got {self.shrinkage} and {self.n_starts}"
            )
        n_groups = self._choose_n_groups(crowd) if self.n_groups == "auto" else int(self.n_groups)
        with ignore_fit_warnings():  # a start need not have converged
            first = BinaryRelevance(shrinkage=self.shrinkage, max_iter=START_ITERATIONS).fit(crowd).label_probs_
        best: dict[str, Any] | None = None
        for number in range(self.n_starts if n_groups > 1 else 1):
            state = self._run(crowd, first, n_groups, number)
            if best is None or state["trace_"][-1] > best["trace_"][-1]:
                best = state
        assert best is not None
        for name, value in best.items():
            setattr(self, name, value)
        self.votes_per_worker_ = crowd.votes_per_worker
        return np.asarray(self._integrate_groups(self.group_probs_, self.evidence_), dtype=np.float64)

    def _choose_n_groups(self, crowd: LabelSetCrowd) -> int:
        """Return the number of groups with the lowest log loss of held-out votes."""
        visible, heldout = crowd.hide(HELDOUT_FRACTION, random_state=self.random_state)
        self.heldout_log_loss_ = {}
        candidates = [n for n in CANDIDATE_GROUPS if n <= max(crowd.n_tasks // 5, 1)]
        for number, n_groups in enumerate(candidates):
            progress.report("Groups", number + 1, len(candidates))
            trial = LabelSetMixture(**(self.get_params(deep=False) | {"n_groups": n_groups, "n_starts": 1}))
            with ignore_fit_warnings():
                self.heldout_log_loss_[str(n_groups)] = trial.fit(visible).heldout_log_loss(heldout)
        return int(min(self.heldout_log_loss_, key=lambda n: (self.heldout_log_loss_[n], int(n))))

    def _run(self, crowd: LabelSetCrowd, first: Array, n_groups: int, number: int) -> dict[str, Any]:
        """Run EM from one starting point and return the fitted attributes."""
        from sklearn.cluster import KMeans

        model, has_votes = MarkModel(crowd), crowd.votes_per_task > 0
        prior = MarkPrior.estimate(
            model.count(crowd.mark_counts / np.maximum(crowd.votes_per_task, 1)[:, None]), self.shrinkage
        )
        group = np.zeros(crowd.n_tasks, dtype=np.int64)
        if n_groups > 1:
            seed = self.random_state * 1000 + number
            group[has_votes] = KMeans(n_groups, n_init=1, random_state=seed).fit_predict(first[has_votes])
        group_probs = np.where(np.arange(n_groups) == group[:, None], 1.0, 0.0) * has_votes[:, None]
        overall = np.clip(first[has_votes].mean(axis=0), *PRIOR_BOUNDS)
        trace: list[float] = []
        m = GROUP_PSEUDO_TASKS

        def step(state: dict[str, Any]) -> tuple[dict[str, Any], float]:
            size = state["group_probs_"][has_votes].sum(axis=0)
            share = (size + m) / (size.sum() + m * n_groups)
            labels = np.clip((state["counts"] + m * overall) / (size[:, None] + m), *PRIOR_BOUNDS)
            rates = prior.maximize(model.count(state["label_probs"]))
            evidence = model.evidence(rates)
            posterior = _infer_groups(evidence, share, labels, has_votes)
            density = m * np.log(share).sum() + m * (overall * np.log(labels) + (1 - overall) * np.log1p(-labels)).sum()
            trace.append(
                model.base_log_likelihood(rates)
                + float(posterior.log_likelihood[has_votes].sum())
                + prior.log_density(rates)
                + float(density)
            )
            change = float(np.abs(posterior.label_probs - state["label_probs"]).max())
            return {
                "group_probs_": posterior.group_probs, "label_probs": posterior.label_probs, "counts": posterior.label_counts,
                "group_prior_": share, "group_labels_": labels, "evidence_": evidence,
                "hit_rate_": rates.hit, "false_alarm_rate_": rates.false_alarm,
            }, change  # fmt: skip

        begin = {"group_probs_": group_probs, "label_probs": first, "counts": group_probs.T @ first}
        result = iterate_to_fixed_point(step, begin, max_iter=self.max_iter, tol=self.tol, title="Label sets")
        state = {name: value for name, value in result.state.items() if name.endswith("_")}
        return state | {"trace_": np.array(trace), "n_iter_": result.n_iter, "converged_": result.converged}

    def _integrate_groups(self, group_probs: Array, evidence: Array) -> Array:
        """Return the probability of labels, averaged over the groups of each task."""
        total = np.zeros_like(evidence)
        for number, labels in enumerate(self.group_labels_):
            total += group_probs[:, number, None] * _label_posterior(evidence, labels)
        return total

    def _set_confidence(self, chosen: NDArray[np.bool_]) -> Array:
        confidence = np.zeros(len(chosen))
        for number, labels in enumerate(self.group_labels_):
            probs = _label_posterior(self.evidence_, labels)
            confidence += self.group_probs_[:, number] * np.where(chosen, probs, 1 - probs).prod(axis=1)
        return confidence

    def _worker_columns(self) -> dict[str, NDArray[Any]]:
        rates = MarkProbs(self.hit_rate_, self.false_alarm_rate_)
        return mean_rates(self.votes_per_worker_, rates, self.group_prior_ @ self.group_labels_)

    def _set_log_likelihood(self, crowd: LabelSetCrowd) -> Array:
        rates = MarkProbs(self.hit_rate_, self.false_alarm_rate_)
        by_group = []
        for number, labels in enumerate(self.group_labels_):
            probs = _label_posterior(self.evidence_, labels)[crowd.task]
            log_probs = set_log_probs(crowd, mark_probabilities(crowd, probs, rates))
            by_group.append(np.log(np.maximum(self.group_probs_[crowd.task, number], 1e-300)) + log_probs)
        return np.asarray(logsumexp(by_group, axis=0), dtype=np.float64)


def _label_posterior(evidence: Array, labels: Array) -> Array:
    """Return the probability of labels within a group."""
    from scipy.special import expit, logit

    return np.asarray(expit(logit(labels) + evidence), dtype=np.float64)


def _infer_groups(evidence: Array, share: Array, labels: Array, has_votes: NDArray[np.bool_]) -> _GroupPosterior:
    """Compute the posterior of groups and labels: the E-step. The largest array has tasks x labels cells."""
    log_joint = np.stack(
        [
            np.log(share[number]) + np.logaddexp(np.log1p(-row), np.log(row) + evidence).sum(axis=1)
            for number, row in enumerate(labels)
        ],
        axis=1,
    )
    log_likelihood = logsumexp(log_joint, axis=1)
    group_probs = np.exp(log_joint - log_likelihood[:, None])
    label_probs, counts = np.zeros_like(evidence), np.zeros_like(labels)
    for number, row in enumerate(labels):
        weighted = group_probs[:, number, None] * _label_posterior(evidence, row)
        label_probs += weighted
        counts[number] = weighted[has_votes].sum(axis=0)
    return _GroupPosterior(group_probs, label_probs, counts, log_likelihood)
