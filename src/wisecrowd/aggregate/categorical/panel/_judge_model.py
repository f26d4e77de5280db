"""Calibrated average of models that predict the truth from the answers of all judges.

Every member of the average is linear in the levels of the judges' answers: P(k) ∝ exp(b_k + Σ_judges m[level, k]). Members are
the latent-class model (which needs no truth), each judge alone, and ridge regressions on all judges. Regressions differ in
the strength of the ridge, and in the share of the latent-class evidence towards which they shrink. They condition on all answers at
once, so no assumption about the dependence between judges enters. The weight of a member is its posterior probability, with
the likelihood of gold and people's votes in cross-validation in place of the marginal likelihood.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from wisecrowd.aggregate.categorical.panel._coded_answers import CodedAnswers, Levels
from wisecrowd.aggregate.categorical.panel._latent_classes import LatentClasses, fit_latent_classes

Array = NDArray[np.float64]

#: Precisions of the prior on the weight of an answer. The weights of one level have a standard deviation of 0.1 to 0.4 logits.
PRECISIONS = (60.0, 20.0, 6.0)
#: Shares of the latent-class evidence that regressions shrink to.
SHRINKAGE_TARGETS = (0.0, 0.5, 1.0)
#: Precision for a judge alone, whose few levels need little shrinkage.
ALONE_PRECISION = 2.0
#: Precision of intercepts.
INTERCEPT_PRECISION = 1.0
#: Principal components of the judges' answers that regressions use, at most.
MAX_COMPONENTS = 60
#: Size of a covariance matrix up to which all its eigenvectors are computed.
MAX_DENSE_LEVELS = 800
#: Judges that are tried alone, at most.
MAX_ALONE = 40
#: Folds of the cross-validation, for few and for many anchored tasks.
MANY_FOLDS, FEW_FOLDS, MANY_ANCHORS = 10, 5, 400
#: Anchored tasks below which the latent-class model is used as it is.
MIN_ANCHORS = 4
#: Iterations of the latent-class model in a fold, which starts from the fit to all tasks.
FOLD_ITERATIONS = 25
#: Smallest weight of a member of the average.
MIN_WEIGHT = 1e-3
#: Updates of people's confusion matrices after the weights are known.
MAX_UPDATES = 10

#: Titles of the members.
LATENT, ALONE, EQUAL = "latent classes", "one judge", "ridge regression"
COMMON = "ridge regression by communality, shrunk to {:g} of the latent classes"
#: Prior probabilities of the kinds of members. Half the latent-class evidence is the rule, since judges err together more
#: often than their disagreement shows; one judge that makes all others superfluous is the exception.
PRIOR_PROBS = {
    LATENT: 0.1, ALONE: 0.05, EQUAL: 0.1, COMMON.format(0.0): 0.2, COMMON.format(0.5): 0.35, COMMON.format(1.0): 0.2,
}  # fmt: skip
#: Repeats of the Bayesian bootstrap.
BOOTSTRAP_REPEATS = 400


class Anchors(NamedTuple):
    """Votes that show the truth independently of the judges.

    Parameters
    ----------
    compute_evidence : callable
        Function of the posterior and of the tasks whose votes count; returns the log-likelihood of gold and people's votes, with
        confusion matrices of people estimated from this posterior and these tasks.
    is_anchored : ndarray of shape (n_tasks,)
        Whether a task has gold or votes of people.
    """

    compute_evidence: Callable[[Array, NDArray[np.bool_]], Array]
    is_anchored: NDArray[np.bool_]


class Member(NamedTuple):
    """Linear model of the truth.

    Parameters
    ----------
    intercept : ndarray of shape (n_classes,)
        Log prior.
    level_logits : ndarray of shape (n_levels, n_classes)
        Evidence of every answer.
    """

    intercept: Array
    level_logits: Array

    def compute_log_probs(self, table: sparse.csr_array) -> Array:
        """Return log P(class) of tasks given their answers.

        Parameters
        ----------
        table : csr_array of shape (n, n_levels)
            Answers.

        Returns
        -------
        ndarray of shape (n, n_classes)
        """
        logits = self.intercept + table @ self.level_logits
        return np.asarray(logits - logsumexp(logits, axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class JudgeModel:
    """Weighted average of linear models of the truth.

    Parameters
    ----------
    levels : Levels
        Levels of the answers.
    weights : ndarray of shape (n_members,)
        Weights, which sum to one.
    intercepts : ndarray of shape (n_members, n_classes)
        Intercept of each member.
    level_logits : ndarray of shape (n_members, n_levels, n_classes)
        Evidence of each answer by member.

    Examples
    --------
    >>> levels = Levels(np.array([0, 0]), np.array([-np.inf, 5.0]), True)
    >>> model = JudgeModel(levels, np.ones(1), np.zeros((1, 2)), np.array([[[1.0, 0.0], [0.0, 1.0]]]))
    >>> model.predict(sparse.csr_array(np.array([[0.0, 1.0]]))).round(2).tolist()
    [[0.27, 0.73]]
    """

    levels: Levels
    weights: Array
    intercepts: Array
    level_logits: Array

    def predict(self, table: sparse.csr_array) -> Array:
        """Return P(class) of tasks given the judges' answers.

        Parameters
        ----------
        table : csr_array of shape (n, n_levels)
            Answers.

        Returns
        -------
        ndarray of shape (n, n_classes)
        """
        probs = np.zeros((table.shape[0], self.intercepts.shape[1]))
        for weight, intercept, logits in zip(self.weights, self.intercepts, self.level_logits, strict=True):
            probs += weight * np.exp(Member(intercept, logits).compute_log_probs(table))
        return probs

    def mean_logits(self) -> Array:
        """Return the weighted mean evidence of each answer.

        Returns
        -------
        ndarray of shape (n_levels, n_classes)
        """
        return np.asarray(np.tensordot(self.weights, self.level_logits, axes=1))

    def check_sizes(self, n_judges: int, n_classes: int) -> None:
        """Raise ValueError if the model is one of more judges or other classes.

        Parameters
        ----------
        n_judges, n_classes : int
            Sizes of the panel.
        """
        if self.levels.n_judges > n_judges or self.intercepts.shape[1] != n_classes:
            raise ValueError(f"judge_model_ must be a model of {n_judges:,} judges and {n_classes:,} classes")

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the model as arrays, from which `from_arrays` restores it.

        Returns
        -------
        dict of str to ndarray
        """
        return {
            "judge": self.levels.judge,
            "low": self.levels.low,
            "is_ordered": np.array([self.levels.is_ordered]),
            "weights": self.weights,
            "intercepts": self.intercepts,
            "level_logits": self.level_logits,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> JudgeModel:
        """Restore a model.

        Parameters
        ----------
        arrays : mapping of str to ndarray
            Result of `arrays`.

        Returns
        -------
        JudgeModel

        Raises
        ------
        ValueError
            If the arrays are damaged.
        """
        judge, low = np.asarray(arrays["judge"]), np.asarray(arrays["low"])
        weights, intercepts, logits = (np.asarray(arrays[name]) for name in ("weights", "intercepts", "level_logits"))
        n_members, n_classes = intercepts.shape if intercepts.ndim == 2 else (-1, -1)
        if judge.shape != low.shape or judge.ndim != 1 or not len(judge) or not np.issubdtype(judge.dtype, np.integer):
            raise ValueError("the levels of the judges must be two columns of equal length")
        if judge.min() < 0 or (np.diff(judge) < 0).any() or np.isnan(low).any():
            raise ValueError("the levels of the judges must be sorted by judge")
        if weights.shape != (n_members,) or logits.shape != (n_members, len(judge), n_classes) or n_members < 1:
            raise ValueError("weights, intercepts and level_logits must describe the same members, levels and classes")
        if not all(np.isfinite(part).all() for part in (weights, intercepts, logits)):
            raise ValueError("weights, intercepts and level_logits must be finite")
        if (weights < 0).any() or not np.isclose(weights.sum(), 1.0):
            raise ValueError("weights must be shares of one")
        is_ordered = bool(np.asarray(arrays["is_ordered"]).ravel()[0])
        levels = Levels(judge.astype(np.int64), low.astype(np.float64), is_ordered)
        return cls(levels, weights.astype(np.float64), intercepts.astype(np.float64), logits.astype(np.float64))


class JudgeFit(NamedTuple):
    """Result of `fit_judges`.

    Parameters
    ----------
    model : JudgeModel
        Fitted model.
    posterior : ndarray of shape (n_tasks, n_classes)
        Posterior of all tasks, given the answers of judges, votes of people and gold.
    titles : list of str
        Title of every candidate.
    judges : ndarray of shape (n_candidates,)
        Judge of candidates that use one judge, −1 otherwise.
    weights : ndarray of shape (n_candidates,)
        Weight of every candidate.
    heldout_log_probs : ndarray of shape (n_candidates, n_anchored) or None
        Log-likelihood of gold and people's votes on each anchored task in cross-validation, without that of the other candidates.
    heldout_hits : ndarray of shape (n_candidates, n_anchored) or None
        Probability that each candidate chooses the right class on a held-out anchored task.
    panel_hits : ndarray of shape (n_anchored,) or None
        The same for the weighted average of the candidates.
    latent : LatentClasses
        Latent-class model.
    """

    model: JudgeModel
    posterior: Array
    titles: list[str]
    judges: NDArray[np.int64]
    weights: Array
    heldout_log_probs: Array | None
    heldout_hits: Array | None
    panel_hits: Array | None
    latent: LatentClasses


# ---------------------------------------------------------------------- features


def build_codes(levels: Levels, counts: Array) -> sparse.csc_array:
    """Return a matrix that maps levels to centred codes, a block for each judge.

    Scores have cumulative codes, 1[score ≥ t] for the lower end t of every bin but the first. A ridge penalty on their weights
    makes the evidence a smooth function of the score. Labels have one code each.

    Parameters
    ----------
    levels : Levels
        Levels.
    counts : ndarray of shape (n_levels,)
        Number of answers of each level.

    Returns
    -------
    csc_array of shape (n_levels, n_codes)

    Examples
    --------
    >>> levels = Levels(np.array([0, 0]), np.array([-np.inf, 5.0]), True)
    >>> build_codes(levels, np.array([3.0, 1.0])).toarray().tolist()
    [[-0.25], [0.75]]
    """
    first = np.searchsorted(levels.judge, np.arange(levels.n_judges + 1))
    blocks = []
    for start, end in itertools.pairwise(first):
        n = end - start
        code = np.tri(n)[:, 1:] if levels.is_ordered else np.eye(n)
        weight = counts[start:end]
        total = weight.sum()
        blocks.append(code - (weight @ code / total if total > 0 else 0.0))
    return sparse.csc_array(sparse.block_diag(blocks, format="csc"))


class Components(NamedTuple):
    """Principal components of the codes.

    Parameters
    ----------
    loadings : ndarray of shape (n_levels, n_components)
        Value of each component for each level; the components of a task are the sum over its answers.
    scores : ndarray of shape (n_tasks, n_components)
        Components of the tasks.
    """

    loadings: Array
    scores: Array


def compute_components(answers: CodedAnswers, codes: sparse.csc_array) -> tuple[Components, Array]:
    """Return the leading principal components of codes, and the share of each code's variance by component.

    Parameters
    ----------
    answers : CodedAnswers
        Answers.
    codes : csc_array of shape (n_levels, n_codes)
        Codes of levels.

    Returns
    -------
    components : Components
    explained : ndarray of shape (n_codes, n_components)
        Variance of each code that each component explains.
    """
    gram = codes.T @ (answers.table.T @ answers.table) @ codes / max(answers.n_tasks, 1)
    n_codes = gram.shape[0]
    rank = min(MAX_COMPONENTS, n_codes)
    if n_codes <= MAX_DENSE_LEVELS or rank >= n_codes - 1:
        values, vectors = np.linalg.eigh(gram.toarray())
        values, vectors = values[::-1][:rank], vectors[:, ::-1][:, :rank]
    else:
        values, vectors = sparse.linalg.eigsh(gram, k=rank, v0=np.ones(n_codes))
        values, vectors = values[::-1], vectors[:, ::-1]
    loadings = np.asarray(codes @ vectors)
    return Components(loadings, np.asarray(answers.table @ loadings)), vectors**2 * np.maximum(values, 0.0)


def compute_communality(
    answers: CodedAnswers, codes: sparse.csc_array, explained: Array, code_judge: NDArray[np.int64], n_classes: int
) -> Array:
    """Return the share of each judge's variance that the first components of the panel explain, as many as classes less one.

    Parameters
    ----------
    answers : CodedAnswers
        Answers.
    codes : csc_array of shape (n_levels, n_codes)
        Codes of levels.
    explained : ndarray of shape (n_codes, n_components)
        Result of `compute_components`.
    code_judge : ndarray of shape (n_codes,)
        Judge of each code.
    n_classes : int
        Number of classes.

    Returns
    -------
    ndarray of shape (n_judges,)
        Communality, divided by its mean over judges.
    """
    n_judges = answers.levels.n_judges
    variance = np.asarray((answers.table @ codes).power(2).sum(axis=0)).ravel() / max(answers.n_tasks, 1)
    total = np.bincount(code_judge, variance, n_judges)
    common = np.bincount(code_judge, explained[:, : max(n_classes - 1, 1)].sum(axis=1), n_judges)
    communality = np.divide(common, total, out=np.zeros(n_judges), where=total > 0)
    mean = communality[total > 0].mean() if (total > 0).any() else 1.0
    return np.asarray(communality / max(float(mean), 1e-12))


# ---------------------------------------------------------------------- regression


def fit_regression(
    features: Array,
    evidence: Array,
    precision: Array,
    *,
    offset: Array | None = None,
    start: Array | None = None,
    max_iter: int = 200,
) -> Array:
    """Return the weights of a softmax regression on tasks whose class is known up to a likelihood.

    The objective is Σ_i log Σ_k P(k | features_i) L_ik − ½ Σ precision · weight², with P(k | x) ∝ exp(offset_k + x · weights_k).

    Parameters
    ----------
    features : ndarray of shape (n, n_features)
        Features, with a column of ones first.
    evidence : ndarray of shape (n, n_classes)
        Log-likelihoods log L.
    precision : ndarray of shape (n_features,)
        Precision of the prior of each feature's weights.
    offset : ndarray of shape (n, n_classes), optional
        Logits to which the weights add.
    start : ndarray of shape (n_features, n_classes), optional
        Initial weights.
    max_iter : int, default=200
        Maximum number of iterations.

    Returns
    -------
    ndarray of shape (n_features, n_classes)

    Examples
    --------
    >>> x, evidence = np.array([[1.0, -1.0], [1.0, 1.0]]), np.array([[0.0, -50.0], [-50.0, 0.0]])
    >>> weights = fit_regression(x, evidence, np.array([1.0, 1.0]))
    >>> bool(weights[1, 1] > 0 > weights[1, 0])
    True
    """
    shape = (features.shape[1], evidence.shape[1])
    # A row per class: sums over the classes, which are few, then run along the tasks.
    columns, evidence_rows = np.ascontiguousarray(features.T), np.ascontiguousarray(evidence.T)
    base = 0.0 if offset is None else np.ascontiguousarray(offset.T)

    def loss(flat: Array) -> tuple[float, Array]:
        weights = flat.reshape(shape)
        logits = base + weights.T @ columns
        probs, log_norm = _normalize_columns(logits)
        joint_probs, log_joint = _normalize_columns(logits + evidence_rows)
        penalized = precision[:, None] * weights
        value = (log_norm - log_joint).sum() + 0.5 * (penalized * weights).sum()
        return float(value), (penalized - columns @ (joint_probs - probs).T).ravel()

    initial = np.zeros(shape) if start is None else start
    result = minimize(
        loss, initial.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": max_iter, "ftol": 1e-9, "gtol": 1e-4}
    )
    return np.asarray(result.x).reshape(shape)


def _normalize_columns(logits: Array) -> tuple[Array, Array]:
    """Return the softmax of each column and the logarithm of its normaliser.

    The functions of scipy do the same, but their checks take longer than the arithmetic on a few hundred tasks.
    """
    peak = logits.max(axis=0)
    probs = np.exp(logits - peak)
    total = probs.sum(axis=0)
    probs /= total
    return probs, peak + np.log(total)


class _Candidate(NamedTuple):
    """Regression of the truth on answers of judges."""

    title: str
    judge: int
    loadings: Array
    scores: Array
    precision: float
    target: float


def _make_candidates(answers: CodedAnswers, n_classes: int) -> list[_Candidate]:
    """Return the regressions to average."""
    levels = answers.levels
    codes = build_codes(levels, answers.counts)
    code_judge = np.zeros(codes.shape[1], dtype=np.int64)
    rows, columns = codes.tocoo().coords
    code_judge[columns] = levels.judge[rows]
    equal, explained = compute_components(answers, codes)
    communality = compute_communality(answers, codes, explained, code_judge, n_classes)
    scaled_codes = sparse.csc_array(codes @ sparse.diags_array(np.sqrt(communality[code_judge])))
    common, _ = compute_components(answers, scaled_codes)
    candidates = [_Candidate(EQUAL, -1, *equal, precision, 0.0) for precision in PRECISIONS]
    candidates += [
        _Candidate(COMMON.format(target), -1, *common, precision, target)
        for target in SHRINKAGE_TARGETS
        for precision in PRECISIONS
    ]
    if levels.n_judges > 1:
        for judge in np.sort(np.argsort(-communality, kind="stable")[:MAX_ALONE]):
            own = codes[:, np.flatnonzero(code_judge == judge)].toarray()
            if own.shape[1]:
                candidates.append(
                    _Candidate(ALONE, int(judge), own, np.asarray(answers.table @ own), ALONE_PRECISION, 0.0)
                )
    return candidates


def _fit_members(
    candidates: Sequence[_Candidate],
    latent: LatentClasses,
    table: sparse.csr_array,
    rows: NDArray[np.intp],
    evidence: Array,
    starts: Sequence[Array] | None,
) -> tuple[list[Member], list[Array]]:
    """Fit the candidates to some anchored tasks; also return their weights, to start from in the next fit."""
    members, weights = [], []
    latent_logits = np.asarray(table[rows] @ latent.level_logits)
    previous: Array | None = None
    for number, (_, _, loadings, scores, precision, target) in enumerate(candidates):
        features = np.column_stack([np.ones(len(rows)), scores[rows]])
        penalty = np.append(INTERCEPT_PRECISION, np.full(loadings.shape[1], precision))
        offset = target * (latent.log_prior + latent_logits)
        start = starts[number] if starts is not None else previous
        if start is not None and len(start) != len(penalty):
            start = None
        previous = fit_regression(features, evidence[rows], penalty, offset=offset, start=start)
        intercept = target * latent.log_prior + previous[0]
        members.append(Member(intercept, np.asarray(target * latent.level_logits + loadings @ previous[1:])))
        weights.append(previous)
    return members, weights


def _assign_folds(evidence: Array, rows: NDArray[np.intp], seed: int) -> NDArray[np.int64]:
    """Return the fold of each anchored task, stratified by the class that the anchors favour."""
    n_folds = min(MANY_FOLDS if len(rows) < MANY_ANCHORS else FEW_FOLDS, len(rows))
    order = np.random.default_rng(seed).permutation(len(rows))
    by_class = order[np.argsort(evidence[rows[order]].argmax(axis=1), kind="stable")]
    fold = np.empty(len(rows), dtype=np.int64)
    fold[by_class] = np.arange(len(rows)) % n_folds
    return fold


def fit_judges(
    answers: CodedAnswers, start: Array, anchors: Anchors, make_prior: Callable[[Array], Array], *, seed: int = 0
) -> JudgeFit:
    """Fit the model of the judges to gold and people's votes, or without both by latent classes.

    Parameters
    ----------
    answers : CodedAnswers
        Answers of judges.
    start : ndarray of shape (n_tasks, n_classes)
        Initial posterior.
    anchors : Anchors
        Gold and votes of people.
    make_prior : callable
        Function of class counts that returns the class prior of the latent-class model.
    seed : int, default=0
        Seed of the folds.

    Returns
    -------
    JudgeFit
    """
    everything = np.ones(answers.n_tasks, dtype=bool)
    latent = fit_latent_classes(answers, start, lambda q: anchors.compute_evidence(q, everything), make_prior)
    rows = np.flatnonzero(anchors.is_anchored)
    only_latent = JudgeModel(answers.levels, np.ones(1), latent.log_prior[None], latent.level_logits[None])
    none = np.array([-1], dtype=np.int64)
    if len(rows) < MIN_ANCHORS:
        return JudgeFit(only_latent, latent.posterior, [LATENT], none, np.ones(1), None, None, None, latent)
    candidates = _make_candidates(answers, start.shape[1])
    titles = [LATENT, *(candidate.title for candidate in candidates)]
    judges = np.array([-1, *(candidate.judge for candidate in candidates)], dtype=np.int64)
    table, evidence = answers.table, latent.evidence
    heldout = _predict_heldout(answers, candidates, latent, anchors, make_prior, seed)
    log_probs = logsumexp(heldout + evidence[rows], axis=2)
    weights = compute_weights(log_probs, _compute_log_prior(titles), seed)
    weights[weights < MIN_WEIGHT] = 0.0
    weights /= weights.sum()
    heldout_probs = np.tensordot(weights, np.exp(heldout), axes=1)
    truth_probs = softmax(np.log(np.maximum(heldout_probs, 1e-12)) + evidence[rows], axis=1)
    everyone = np.arange(len(rows))
    hits, panel_hits = (truth_probs[everyone, probs.argmax(axis=-1)] for probs in (heldout, heldout_probs))
    chosen = np.flatnonzero(weights[1:] > 0)
    posterior, starts = latent.posterior, None
    for _ in range(MAX_UPDATES):
        members, starts = _fit_members([candidates[n] for n in chosen], latent, table, rows, evidence, starts)
        model = _average(
            answers.levels, [Member(latent.log_prior, latent.level_logits), *members], weights[np.append(0, chosen + 1)]
        )
        updated = softmax(np.log(np.maximum(model.predict(table), 1e-12)) + evidence, axis=1)
        renewed = anchors.compute_evidence(updated, everything)
        is_stable = np.abs(updated - posterior).max(initial=0.0) < 1e-3 or np.allclose(renewed, evidence)
        posterior, evidence = updated, renewed
        if is_stable:
            break
    return JudgeFit(model, posterior, titles, judges, weights, log_probs, hits, panel_hits, latent)


def _predict_heldout(
    answers: CodedAnswers,
    candidates: Sequence[_Candidate],
    latent: LatentClasses,
    anchors: Anchors,
    make_prior: Callable[[Array], Array],
    seed: int,
) -> Array:
    """Return log P(class) of anchored tasks by the latent-class model and all candidates, fitted without the task's anchors."""
    table, rows = answers.table, np.flatnonzero(anchors.is_anchored)
    fold = _assign_folds(latent.evidence, rows, seed)
    heldout = np.empty((len(candidates) + 1, len(rows), len(latent.log_prior)))
    starts: list[Array] | None = None
    for number in range(int(fold.max()) + 1):
        is_counted = np.ones((answers.n_tasks, 1), dtype=bool)
        is_counted[rows[fold == number]] = False

        def compute_evidence(posterior: Array, is_counted: NDArray[np.bool_] = is_counted) -> Array:
            return np.where(is_counted, anchors.compute_evidence(posterior, is_counted[:, 0]), 0.0)

        evidence = np.where(is_counted, latent.evidence, 0.0)
        start = softmax(latent.log_prior + table @ latent.level_logits + evidence, axis=1)
        refit = fit_latent_classes(
            answers, start, compute_evidence, make_prior, max_iter=FOLD_ITERATIONS, discount=latent.discount
        )
        members, starts = _fit_members(candidates, refit, table, rows[fold != number], refit.evidence, starts)
        test = table[rows[fold == number]]
        for position, member in enumerate([Member(refit.log_prior, refit.level_logits), *members]):
            heldout[position, fold == number] = member.compute_log_probs(test)
    return heldout


def compute_weights(log_probs: Array, log_prior: Array, seed: int = 0) -> Array:
    """Return the posterior probabilities of members, averaged over a Bayesian bootstrap of the held-out tasks.

    Parameters
    ----------
    log_probs : ndarray of shape (n_members, n)
        Log-probability of every held-out task by every member.
    log_prior : ndarray of shape (n_members,)
        Log prior probabilities.
    seed : int, default=0
        Seed of the bootstrap.

    Returns
    -------
    ndarray of shape (n_members,)

    References
    ----------
    Yao, Vehtari, Simpson and Gelman (2018), Using stacking to average Bayesian predictive distributions (pseudo-BMA+).

    Examples
    --------
    >>> compute_weights(np.log([[0.9] * 40, [0.5] * 40]), np.zeros(2)).round(2).tolist()
    [1.0, 0.0]
    """
    n = log_probs.shape[1]
    shares = np.random.default_rng(seed).dirichlet(np.ones(n), size=BOOTSTRAP_REPEATS)
    return np.asarray(softmax(n * shares @ log_probs.T + log_prior, axis=1).mean(axis=0))


def _compute_log_prior(titles: Sequence[str]) -> Array:
    """Return the log prior of the members; those of one kind share its probability."""
    _, kind, size = np.unique(titles, return_inverse=True, return_counts=True)
    return np.log([PRIOR_PROBS[title] for title in titles]) - np.log(size[kind])


def _average(levels: Levels, members: Sequence[Member], weights: Array) -> JudgeModel:
    chosen = np.flatnonzero(weights > 0).tolist()
    return JudgeModel(
        levels,
        weights[chosen] / weights[chosen].sum(),
        np.stack([members[n].intercept for n in chosen]),
        np.stack([members[n].level_logits for n in chosen]),
    )
