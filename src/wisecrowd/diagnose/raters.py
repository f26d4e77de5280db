"""Many-facet Rasch analysis of ratings: severity and fit of every rater."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd import kernels
from wisecrowd.data.conversion import as_crowd
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.types import CrowdLike
from wisecrowd.em.gradient import GaussianPrior, maximize_lbfgs
from wisecrowd.em.loop import Statistics, run_em
from wisecrowd.em.score_grid import make_score_grid
from wisecrowd.errors import InputError
from wisecrowd.utils.notebook import render_html
from wisecrowd.utils.slices import slice_rows

Array = NDArray[np.float64]

#: Number of scores over which tasks are integrated.
N_NODES = 31
#: Prior standard deviations of severities, thresholds and the logarithm of the spread of tasks, in logits. They are wide: they keep
#: raters with few or extreme ratings finite.
SEVERITY_SD, THRESHOLD_SD, SPREAD_SD = 3.0, 5.0, 2.0
#: L-BFGS steps per M-step, maximum number of EM iterations and relative tolerance.
M_STEPS, MAX_ITER, TOL = 5, 500, 1e-7
#: Mean squares outside of this range are flagged (Linacre 1989), if they differ from one significantly.
MUTED, ERRATIC = 0.5, 1.5
#: Absolute standard score from which a mean square or a severity counts as significant.
SIGNIFICANT = 2.0
#: Severity in logits from which a rater is called severe or lenient.
NOTABLE_SEVERITY = 1.0


@dataclass(frozen=True, eq=False)
class RaterDiagnosis:
    """Severity and fit of raters by the many-facet Rasch model.

    Attributes
    ----------
    workers : DataFrame
        One row per rater: ``n_votes``, ``mean`` rating in class positions, ``severity`` in logits with ``standard_error``; mean
        squares ``infit`` and ``outfit``, expected to be 1, with standard scores ``infit_z`` and ``outfit_z``; ``flags`` and
        ``why``.
    tasks : DataFrame
        One row per task: ``n_votes``, ``mean`` rating, ``score`` in logits with ``standard_error``.
    thresholds : Series
        Score at which a class and the one below it are equally probable for an average rater, by class.
    reliability : float
        Share of the variance of the severities that is not due to estimation error: near 0 if raters are alike, near 1 if they
        differ reliably.
    converged : bool
        Whether EM converged.

    Examples
    --------
    >>> from wisecrowd import simulate_ratings
    >>> simulation = simulate_ratings(n_tasks=200, n_workers=10, votes_per_task=5, random_state=0)
    >>> diagnose_raters(simulation.crowd).workers.columns.tolist()[2:6]
    ['severity', 'standard_error', 'infit', 'infit_z']
    """

    workers: pd.DataFrame
    tasks: pd.DataFrame
    thresholds: pd.Series
    reliability: float
    converged: bool

    def _repr_html_(self) -> str:
        return render_html(repr(self), self.workers.sort_values("severity", ascending=False))

    def __repr__(self) -> str:
        severity, flags = self.workers["severity"].dropna(), self.workers["flags"]
        flagged = flags[flags != ""]
        return (
            f"RaterDiagnosis of {len(self.workers):,} raters: severity {severity.min():.2f} to {severity.max():.2f} logits, "
            f"reliability {self.reliability:.2f}\n"
            f"  flagged: {', '.join(f'{name!r} ({flag})' for name, flag in flagged.head(8).items()) or 'none'}"
            f"{f' and {len(flagged) - 8:,} more' if len(flagged) > 8 else ''}"
        )


def diagnose_raters(crowd: CrowdLike) -> RaterDiagnosis:
    """Estimate severity and fit of raters by the many-facet Rasch model.

    log P(class k) / P(class k − 1) = θ_i − b_r − τ_k: the score of the task minus the severity of the rater minus the threshold
    of the class (rating scale model). Scores are integrated out (marginal maximum likelihood), which does not overstate the
    differences between raters as joint maximum likelihood does.

    Every rating is compared with its expectation E and variance W given the *other* ratings of the task. Outfit is the mean of
    (y − E)² / W, infit is Σ (y − E)² / Σ W; both are 1 on average if the model is right. More than 1.5 means an erratic rater, less
    than 0.5 a muted one, who avoids the ends of the scale or copies.

    Parameters
    ----------
    crowd : Crowd or DataFrame
        Votes on ordered classes.

    Returns
    -------
    RaterDiagnosis

    Raises
    ------
    InputError
        If the votes have no ordered classes or no worker ids.

    References
    ----------
    Linacre, J. M. (1989). Many-Facet Rasch Measurement. MESA Press.
    Wright, B. D. and Masters, G. N. (1982). Rating Scale Analysis. MESA Press.

    Examples
    --------
    >>> from wisecrowd import diagnose_raters, simulate_ratings
    >>> simulation = simulate_ratings(n_tasks=300, n_workers=10, votes_per_task=5, severity_sd=1.0, random_state=0)
    >>> result = diagnose_raters(simulation.crowd)
    >>> bool(result.workers["severity"].corr(simulation.workers["severity"]) > 0.95)
    True
    """
    votes = as_crowd(crowd, "ordinal").select_observed()
    if not votes.is_ordered:
        kind = "labels are numbers" if votes.is_numeric else "classes have no order"
        raise InputError(
            f"the severity (strictness) of workers is estimated from ordered classes, but these {kind}; read the votes with "
            "ordered=True (--ordered, with --classes low,middle,high unless the classes are numbers). For numbers that are not "
            "classes, see RaterMean().fit(crowd).workers_"
        )
    if votes.n_votes == 0:
        raise InputError("this crowd has no votes, so the severity (strictness) of its workers is unknown; add votes")
    if not votes.has_workers:
        raise InputError(
            "the severity (strictness) of workers cannot be estimated, because these votes have no worker ids; add a column "
            "'worker' to the votes"
        )
    nodes, weights = make_score_grid(N_NODES)
    model = _RatingScale(votes, nodes)
    point = model.prior.mean.copy()

    def infer(at: Array) -> tuple[Statistics, float]:
        expectation = kernels.expect(votes.layout, weights, model.label_probs(at))
        return Statistics(
            expectation.class_counts, expectation.tally
        ), expectation.log_likelihood + model.prior.log_density(at)

    def step(statistics: Statistics) -> tuple[Statistics, float]:
        nonlocal point
        point = maximize_lbfgs(
            lambda at: model.expected_log_joint(at, statistics.tally), point, model.curvature, M_STEPS
        )
        return infer(point)

    result = run_em(
        step, infer(point)[0], max_iter=MAX_ITER, tol=TOL, accelerate=False, title="Many-facet Rasch analysis"
    )
    parameters = model.get_parameters(point)
    residuals = _compute_residuals(votes, model, point, weights)
    return _make_diagnosis(votes, parameters, residuals, converged=result.converged)


class _Parameters(NamedTuple):
    """Parameters of the rating scale model."""

    severity: Array
    thresholds: Array
    spread: float  # standard deviation of the scores, in logits


class _Residuals(NamedTuple):
    """Sums over votes that describe tasks and raters."""

    score: Array
    score_error: Array
    information: Array  # about the severity of each rater
    squares: Array  # Σ (y − E)² by rater
    variance: Array  # Σ W by rater
    standardised: Array  # Σ (y − E)² / W by rater
    infit_spread: Array  # Σ (C − W²) by rater
    outfit_spread: Array  # Σ (C / W² − 1) by rater


class _RatingScale:
    """Rating scale model with scores on a grid, and all parameters in one vector: severities, thresholds, log spread."""

    def __init__(self, votes: Crowd, nodes: Array) -> None:
        self.pairs, self.n_classes, self.nodes = votes.pairs, votes.n_classes, nodes
        n_workers, n_thresholds = votes.n_workers, votes.n_classes - 1
        sd = np.concatenate([np.full(n_workers, SEVERITY_SD), np.full(n_thresholds, THRESHOLD_SD), [SPREAD_SD]])
        self.prior = GaussianPrior(np.zeros(len(sd)), 1 / sd**2)
        counts = np.bincount(votes.worker_codes, votes.weight, n_workers)
        information = np.concatenate([counts, np.full(n_thresholds + 1, counts.sum())])
        self.curvature = self.prior.add_curvature(information)

    def get_parameters(self, point: Array) -> _Parameters:
        n_workers = self.pairs.n_workers
        return _Parameters(point[:n_workers], point[n_workers:-1], float(np.exp(point[-1])))

    def class_probs(self, parameters: _Parameters, workers: slice | NDArray[np.int32]) -> Array:
        """Return P(class | score) of some workers, (n_workers, n_nodes, n_classes)."""
        advantage = parameters.spread * self.nodes - parameters.severity[workers, None]
        steps = np.concatenate([[0.0], np.cumsum(parameters.thresholds)])
        logits = advantage[:, :, None] * np.arange(self.n_classes) - steps
        logits -= logits.max(axis=2, keepdims=True)
        probs = np.exp(logits)
        return np.asarray(probs / probs.sum(axis=2, keepdims=True), dtype=np.float64)

    def label_probs(self, point: Array) -> Array:
        """Return P(label of the pair | score), (n_pairs, n_nodes)."""
        parameters = self.get_parameters(point)
        result = np.empty((len(self.pairs), len(self.nodes)))
        for workers, rows in self._slices():
            probs = self.class_probs(parameters, workers)
            result[rows] = probs[self.pairs.worker[rows] - workers.start, :, self.pairs.label[rows]]
        return result

    def expected_log_joint(self, point: Array, tally: Array) -> tuple[float, Array]:
        """Return the expected log-joint and its gradient."""
        parameters, pairs = self.get_parameters(point), self.pairs
        codes = np.arange(self.n_classes)
        value = self.prior.log_density(point)
        gradient, total = np.zeros_like(point), pairs.sum_by_worker(tally)
        surplus_by_pair = np.empty(len(pairs))
        for workers, rows in self._slices():
            probs, local = self.class_probs(parameters, workers), pairs.worker[rows] - workers.start
            counts = tally[rows]
            label_probs = probs[local, :, pairs.label[rows]]
            value += float((counts * np.log(np.maximum(label_probs, kernels.MIN_PROB))).sum())
            # surplus: label minus its expectation, the derivative by the score
            surplus = counts * (pairs.label[rows, None] - (probs @ codes)[local])
            surplus_by_pair[rows] = surplus.sum(axis=1)
            gradient[-1] += parameters.spread * float((surplus * self.nodes).sum())
            by_label = np.bincount(pairs.label[rows], counts.sum(axis=1), self.n_classes)
            excess = np.einsum("rq,rqk->k", total[workers], probs) - by_label  # expected minus observed votes by class
            gradient[pairs.n_workers : -1] += np.cumsum(excess[::-1])[::-1][1:]
        gradient[: pairs.n_workers] = -pairs.sum_by_worker(surplus_by_pair)
        return value, self.prior.add_gradient(gradient, point)

    def _slices(self) -> list[tuple[slice, slice]]:
        """Return slices of workers, with the rows of their pairs."""
        pairs = self.pairs
        slices = []
        for part in slice_rows(pairs.n_workers, len(self.nodes) * self.n_classes):
            first, last, _ = part.indices(pairs.n_workers)
            rows = slice(*np.searchsorted(pairs.worker, [first, last]).tolist())
            slices.append((slice(first, last), rows))
        return slices


def _compute_residuals(votes: Crowd, model: _RatingScale, point: Array, weights: Array) -> _Residuals:
    """Compare every vote with its prediction from the other votes on the task."""
    parameters, label_probs = model.get_parameters(point), model.label_probs(point)
    codes, nodes = np.arange(model.n_classes), parameters.spread * model.nodes
    score, error = np.empty(votes.n_tasks), np.empty(votes.n_tasks)
    sums = np.zeros((6, votes.n_workers))
    for part in slice_rows(votes.n_tasks, len(nodes)):
        first, last, _ = part.indices(votes.n_tasks)
        posterior = kernels.posterior(votes.layout.slice_tasks(first, last), weights, label_probs)
        score[part] = posterior @ nodes
        error[part] = np.sqrt(np.maximum(posterior @ nodes**2 - score[part] ** 2, 0))
        begin, end = int(votes.offset[first]), int(votes.offset[last])
        for rows in slice_rows(end - begin, len(nodes) * model.n_classes):
            row = np.arange(begin + rows.start, min(begin + rows.stop, end))
            worker, label, weight = votes.worker_codes[row], votes.label[row], votes.weight[row]
            probs, own = model.class_probs(parameters, worker), posterior[votes.task[row] - first]
            surplus = (own * (label[:, None] - probs @ codes)).sum(axis=1)
            # Dividing by the probability of the vote takes its evidence back; the vote stands for one row of its weight.
            others = (
                own / np.maximum(label_probs[votes.pairs.vote_pairs[row]], 1e-12) ** np.minimum(weight, 1.0)[:, None]
            )
            others /= others.sum(axis=1, keepdims=True)
            predicted = np.einsum("vq,vqk->vk", others, probs)
            expected = predicted @ codes
            distance = (codes - expected[:, None]) ** 2
            variance = np.maximum((predicted * distance).sum(axis=1), 1e-12)
            fourth = (predicted * distance**2).sum(axis=1)
            squared = (label - expected) ** 2
            terms = (surplus**2, squared, variance, squared / variance, fourth - variance**2, fourth / variance**2 - 1)
            for total, term in zip(sums, terms, strict=True):
                total += np.bincount(worker, weight * term, votes.n_workers)
    return _Residuals(score, error, *sums)


def _make_diagnosis(votes: Crowd, parameters: _Parameters, residuals: _Residuals, *, converged: bool) -> RaterDiagnosis:
    """Return the tables of a fitted model."""
    n_votes = np.bincount(votes.worker_codes, votes.weight, votes.n_workers)
    active = n_votes > 0
    centre = float(parameters.severity[active].mean())
    severity = np.where(active, parameters.severity - centre, np.nan)
    error = np.where(active, 1 / np.sqrt(residuals.information + 1 / SEVERITY_SD**2), np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        infit, outfit = residuals.squares / residuals.variance, residuals.standardised / n_votes
        infit_q = np.sqrt(residuals.infit_spread) / residuals.variance
        outfit_q = np.sqrt(np.maximum(residuals.outfit_spread, 0)) / n_votes
        z = [
            (np.cbrt(square) - 1) * 3 / q + q / 3 for square, q in ((infit, infit_q), (outfit, outfit_q))
        ]  # Wilson–Hilferty
        mean = np.bincount(votes.worker_codes, votes.weight * votes.label, votes.n_workers) / n_votes
    workers = pd.DataFrame(
        {
            "n_votes": n_votes, "mean": mean, "severity": severity, "standard_error": error,
            "infit": infit, "infit_z": z[0], "outfit": outfit, "outfit_z": z[1],
        },
        index=votes.workers.rename("worker"),  # type: ignore[union-attr]  # checked by the caller
    )  # fmt: skip
    workers["flags"], workers["why"] = _flag_raters(workers)
    task_votes = np.bincount(votes.task, votes.weight, votes.n_tasks)
    with np.errstate(invalid="ignore"):
        task_mean = np.bincount(votes.task, votes.weight * votes.label, votes.n_tasks) / task_votes
    tasks = pd.DataFrame(
        {
            "n_votes": task_votes, "mean": task_mean, "score": residuals.score - centre,
            "standard_error": residuals.score_error,
        },
        index=votes.tasks.rename("task"),
    )  # fmt: skip
    assert votes.classes is not None
    # Scores and severities are measured from the average rater.
    thresholds = pd.Series(parameters.thresholds, index=votes.classes[1:].rename("class"), name="threshold")
    variance = float(np.nanvar(severity, ddof=1)) if active.sum() > 1 else 0.0
    reliability = max(0.0, 1 - float(np.nanmean(error**2)) / variance) if variance > 0 else 0.0
    return RaterDiagnosis(workers, tasks, thresholds, reliability, converged)


def _flag_raters(workers: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Return flags and reasons of all raters, texts that are empty for raters without remark."""
    flags, reasons = [""] * len(workers), [""] * len(workers)
    is_notable = workers["severity"].abs() > np.maximum(NOTABLE_SEVERITY, SIGNIFICANT * workers["standard_error"])
    is_erratic, is_muted = (
        {name: (workers[name].gt(ERRATIC) if sign > 0 else workers[name].lt(MUTED)) & (sign * workers[f"{name}_z"] > SIGNIFICANT)
         for name in ("infit", "outfit")}
        for sign in (1, -1)
    )  # fmt: skip
    remarks = is_notable | is_erratic["infit"] | is_erratic["outfit"] | is_muted["infit"] | is_muted["outfit"]
    for position in np.flatnonzero(remarks):
        row, by_flag = workers.iloc[position], {}
        if is_notable.iloc[position]:
            name = "severe" if row["severity"] > 0 else "lenient"
            by_flag[name] = f"severity {row['severity']:+.2f} ± {row['standard_error']:.2f} logits"
        for name in ("infit", "outfit"):
            if is_erratic[name].iloc[position]:
                reason = f"{name} {row[name]:.2f}: ratings differ from those of others more than expected"
                by_flag.setdefault("erratic", reason)
            elif is_muted[name].iloc[position]:
                by_flag.setdefault("muted", f"{name} {row[name]:.2f}: ratings vary less than expected")
        flags[position], reasons[position] = ", ".join(by_flag), "; ".join(by_flag.values())
    return flags, reasons
