"""Diagnosis of judges that score tasks: calibration, severity, agreement with people, repeats, length and versions."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import norm, rankdata

from wisecrowd.aggregate.categorical.panel.panel import Panel
from wisecrowd.data.alignment import as_truth_series
from wisecrowd.data.arrow_tables import DataFrameLike
from wisecrowd.data.scores import ScoreCrowd
from wisecrowd.data.types import TruthLike
from wisecrowd.data.vocabulary import match_id_type
from wisecrowd.errors import InputError, UsageError, preview
from wisecrowd.utils.notebook import render_html

Array = NDArray[np.float64]

#: Scores of a judge below which it is not flagged.
MIN_SCORES = 30
#: Chance-corrected agreement with the truth below which a judge is called uninformative.
MIN_KAPPA = 0.1
#: Difference of a judge's share of positive labels to that of the truth from which the judge is called strict or lenient.
MIN_SEVERITY = 0.15
#: Agreement of repeated scores (intraclass correlation) below which a judge is called inconsistent.
MIN_CONSISTENCY = 0.6
#: Partial correlation of a score with the length of a task from which the judge is called biased by length.
MIN_LENGTH_BIAS = 0.15
#: Folds of tasks from which the class of a score is estimated for the others, so that noise does not agree with itself.
LABEL_FOLDS = 5
#: Standard errors by which a finding must exceed its threshold or zero.
MIN_ERRORS = 2.0


@dataclass(frozen=True, eq=False)
class JudgeDiagnosis:
    """Diagnosis of judges by a fitted panel and, if known, the truth.

    All results are computed when they are first accessed.

    Parameters
    ----------
    scores : ScoreCrowd
        Scores, and votes of people.
    model : Panel
        Panel fitted to them.
    truth : Series or None
        Known truth by task. Without it, judges are compared with the posterior of the panel, to which they contribute.
    lengths : Series or None
        Length of tasks.
    versions : mapping or None
        Name of the judge by its versions, in order.

    Examples
    --------
    >>> from wisecrowd import simulate_scores
    >>> made = simulate_scores(n_tasks=200, n_judges=3)
    >>> result = diagnose_judges(made.scores, truth=made.truth)
    >>> result.judges.columns[:4].tolist()
    ['n_scores', 'accuracy', 'kappa', 'severity']
    """

    scores: ScoreCrowd
    model: Panel
    truth: pd.Series | None
    lengths: pd.Series | None
    versions: Mapping[str, tuple[Any, ...]] | None

    def __repr__(self) -> str:
        n_flagged = int((self.judges["flags"] != "").sum())
        return (
            f"Diagnosis of {self.scores!r}\n  effective judges: {self.model.n_effective_:.1f}; flagged: {n_flagged}\n"
            "  see: .judges, .curves, .drift, .verdict, .overview"
        )

    def _repr_html_(self) -> str:
        return render_html(repr(self), self.judges)

    # ------------------------------------------------------------------ reference

    @cached_property
    def posterior(self) -> Array:
        """Probabilities of the classes by task: known truth where there is some, or else the posterior of the panel."""
        posterior = np.array(self.model.posterior_, dtype=np.float64)
        if self.truth is not None:
            position = self.scores.tasks.get_indexer(match_id_type(self.truth.index, self.scores.tasks))
            code = self.model.classes_.get_indexer(match_id_type(pd.Index(self.truth.to_numpy()), self.model.classes_))
            rows = np.flatnonzero((position >= 0) & (code >= 0))
            posterior[position[rows]] = np.eye(len(self.model.classes_))[code[rows]]
        return posterior

    @cached_property
    def reference(self) -> NDArray[np.intp]:
        """Tasks on which judges are compared: those with known truth, or all."""
        if self.truth is None:
            return np.arange(self.scores.n_tasks)
        position = self.scores.tasks.get_indexer(match_id_type(self.truth.index, self.scores.tasks))
        return np.unique(position[position >= 0])

    @cached_property
    def _label(self) -> NDArray[np.int64]:
        """Class that each score stands for: the most frequent one where the judge gives it on other tasks (five folds)."""
        levels = self.model.judge_model_.levels
        level = levels.find(self.scores.worker, self.scores.score)
        fold = self.scores.task % LABEL_FOLDS
        counts = np.zeros((LABEL_FOLDS, len(levels.judge), self.posterior.shape[1]))
        np.add.at(counts, (fold, level), self.scores.weight[:, None] * self.posterior[self.scores.task])
        return np.asarray((counts.sum(axis=0) - counts)[fold, level].argmax(axis=1))

    # ------------------------------------------------------------------ tables

    @cached_property
    def judges(self) -> pd.DataFrame:
        """Table of judges.

        Columns are n_scores; accuracy and kappa (agreement beyond chance with the reference, after each score was turned into the
        class that it stands for); severity (mean distance of the scores below the reference, as a share of the judge's own scale;
        positive for strict judges); kappa_people (kappa with votes of people); kappa_ceiling (kappa of one person with the others);
        consistency (intraclass correlation of repeated scores); length_bias (rank correlation with length given the true class)
        and length_error; shared (share of errors that other judges explain); flags and why.
        """
        scores, n = self.scores, self.scores.n_workers
        is_reference = np.zeros(scores.n_tasks, dtype=bool)
        is_reference[self.reference] = True
        rows = np.flatnonzero(is_reference[scores.task])
        accuracy, kappa, kappa_error = self._compare(rows, self.posterior)
        severity, severity_error = self._measure_severity(rows)
        columns: dict[str, Any] = {
            "n_scores": scores.votes_per_worker,
            "accuracy": accuracy,
            "kappa": kappa,
            "severity": severity,
            "kappa_people": np.full(n, np.nan),
            "kappa_ceiling": np.full(n, np.nan),
        }
        if scores.votes is not None:
            people, has_votes = self._people_shares()
            columns["kappa_people"] = self._compare(np.flatnonzero(has_votes[scores.task]), people)[1]
            columns["kappa_ceiling"] = np.full(n, self._measure_people())
        columns["consistency"] = self._measure_consistency()
        length_bias, length_error = self._measure_length_bias()
        columns |= {"length_bias": length_bias, "length_error": length_error}
        columns["shared"] = self.model.judges_["shared"].reindex(scores.workers).to_numpy()
        table = pd.DataFrame(columns, index=scores.workers.rename("worker"))
        flags, reasons = _flag_judges(table, kappa_error, severity_error)
        return table.assign(flags=flags, why=reasons)

    def _compare(self, rows: NDArray[np.intp], reference: Array) -> tuple[Array, Array, Array]:
        """Return accuracy, kappa and its standard error of each judge's labels against probabilities of classes."""
        scores, n, n_classes = self.scores, self.scores.n_workers, reference.shape[1]
        worker, weight = scores.worker[rows], scores.weight[rows]
        right = weight * reference[scores.task[rows], self._label[rows]]
        total = np.bincount(worker, weight, n)
        label_share = np.zeros((n, n_classes))
        np.add.at(label_share, (worker, self._label[rows]), weight)
        true = np.zeros((n, n_classes))
        np.add.at(true, worker, weight[:, None] * reference[scores.task[rows]])
        with np.errstate(invalid="ignore", divide="ignore"):
            accuracy = np.bincount(worker, right, n) / total
            chance = (label_share * true).sum(axis=1) / total**2
            kappa = (accuracy - chance) / (1 - chance)
            error = np.sqrt(np.maximum(accuracy * (1 - accuracy), 1e-3) / total) / (1 - chance)
        return accuracy, kappa, error

    def _measure_severity(self, rows: NDArray[np.intp]) -> tuple[Array, Array]:
        """Return how much rarer the upper half of each judge's own scale is than the upper classes are true."""
        scores, n = self.scores, self.scores.n_workers
        low, high = np.full(n, np.inf), np.full(n, -np.inf)
        np.minimum.at(low, scores.worker, scores.score)
        np.maximum.at(high, scores.worker, scores.score)
        n_classes = self.posterior.shape[1]
        place = np.divide(
            scores.score - low[scores.worker],
            (high - low)[scores.worker],
            out=np.full(scores.n_votes, 0.5),
            where=(high > low)[scores.worker],
        )
        level = self.posterior @ np.linspace(0, 1, n_classes)
        worker, weight = scores.worker[rows], scores.weight[rows]
        gap = level[scores.task[rows]] - place[rows]
        total = np.bincount(worker, weight, n)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.bincount(worker, weight * gap, n) / total
            spread = np.bincount(worker, weight * gap**2, n) / total - mean**2
            return mean, np.sqrt(np.maximum(spread, 0.0) / total)

    def _people_shares(self) -> tuple[Array, NDArray[np.bool_]]:
        """Return the shares of classes among people's votes by task, and whether there are votes."""
        votes = self.scores.votes
        assert votes is not None
        assert votes.classes is not None
        code = self.model.classes_.get_indexer(votes.classes)
        shares = np.zeros((self.scores.n_tasks, len(self.model.classes_)))
        np.add.at(shares, (votes.task, code[votes.label]), votes.weight)
        total = shares.sum(axis=1, keepdims=True)
        return np.divide(shares, total, out=np.zeros_like(shares), where=total > 0), total[:, 0] > 0

    def _measure_people(self) -> float:
        """Return the kappa of one person with the others, over all pairs of votes on a task."""
        votes = self.scores.votes
        assert votes is not None
        counts = np.asarray(votes.vote_counts, dtype=np.float64)
        total = counts.sum(axis=1)
        several = total > 1
        if not several.any():
            return float("nan")
        pairs = total[several] * (total[several] - 1)
        observed = float(((counts[several] * (counts[several] - 1)).sum(axis=1)).sum() / pairs.sum())
        share = counts.sum(axis=0) / counts.sum()
        chance = float((share**2).sum())
        return float("nan") if chance >= 1 else (observed - chance) / (1 - chance)

    def _measure_consistency(self) -> Array:
        """Return the intraclass correlation of repeated scores of each judge; NaN without repeats."""
        scores, n = self.scores, self.scores.n_workers
        key = scores.task.astype(np.int64) * n + scores.worker
        _, group, size = np.unique(key, return_inverse=True, return_counts=True)
        repeated = np.flatnonzero(size[group] > 1)
        consistency = np.full(n, np.nan)
        if not len(repeated):
            return consistency
        worker, cell, value = scores.worker[repeated], group[repeated], scores.score[repeated]
        cells, position = np.unique(cell, return_inverse=True)
        mean = np.bincount(position, value) / np.bincount(position)
        cell_worker = np.zeros(len(cells), dtype=np.int64)
        cell_worker[position] = worker
        within = np.bincount(worker, (value - mean[position]) ** 2, n)
        n_cells, n_scores = np.bincount(cell_worker, minlength=n), np.bincount(worker, minlength=n)
        squares = np.bincount(cell_worker, np.bincount(position).astype(np.float64) ** 2, n)
        with np.errstate(invalid="ignore", divide="ignore"):
            center = np.bincount(worker, value, n) / n_scores
            between = np.bincount(worker, (mean[position] - center[worker]) ** 2, n) / (n_cells - 1)
            within = within / (n_scores - n_cells)
            size_0 = (n_scores - squares / n_scores) / (n_cells - 1)
            icc = (between - within) / (between + (size_0 - 1) * within)
        icc[n_cells < 2] = np.nan
        return np.asarray(icc)

    def _measure_length_bias(self) -> tuple[Array, Array]:
        """Return the correlation of ranks of score and length given the true class, and its standard error."""
        n = self.scores.n_workers
        bias, error = np.full(n, np.nan), np.full(n, np.nan)
        if self.lengths is None:
            return bias, error
        scores = self.scores
        index = scores.tasks.get_indexer(match_id_type(self.lengths.index, scores.tasks))
        length = np.full(scores.n_tasks, np.nan)
        length[index[index >= 0]] = self.lengths.to_numpy(dtype=np.float64)[index >= 0]
        usable = np.flatnonzero(~np.isnan(length[scores.task]))
        for judge in range(n):  # few judges
            rows = usable[scores.worker[usable] == judge]
            if len(rows) < MIN_SCORES:
                continue
            probs = self.posterior[scores.task[rows]]
            ranks = [
                norm.ppf((rankdata(column) - 0.5) / len(rows))
                for column in (scores.score[rows], length[scores.task[rows]])
            ]
            residual = [rank - probs @ np.linalg.lstsq(probs, rank, rcond=None)[0] for rank in ranks]
            spread = residual[0].std() * residual[1].std()
            if spread > 0:
                bias[judge] = float((residual[0] * residual[1]).mean() / spread)
                error[judge] = float((1 - bias[judge] ** 2) / np.sqrt(max(len(rows) - 2, 1)))
        return bias, error

    @cached_property
    def curves(self) -> pd.DataFrame:
        """Calibration curves: by judge and bin of the score, the number of scores, their mean, and the share of the highest class.

        With gold or votes of people the share is the calibrated meaning of a score. ``error`` is its standard error.
        """
        scores = self.scores
        is_reference = np.zeros(scores.n_tasks, dtype=bool)
        is_reference[self.reference] = True
        rows = np.flatnonzero(is_reference[scores.task])
        levels = self.model.judge_model_.levels
        level = levels.find(scores.worker[rows], scores.score[rows])
        weight = scores.weight[rows]
        count = np.bincount(level, weight, len(levels.judge))
        shown = np.flatnonzero(count > 0)
        mean = np.bincount(level, weight * scores.score[rows], len(levels.judge))[shown] / count[shown]
        share = (
            np.bincount(level, weight * self.posterior[scores.task[rows], -1], len(levels.judge))[shown] / count[shown]
        )
        return pd.DataFrame(
            {
                "worker": scores.workers.take(levels.judge[shown]),
                "score": mean,
                "n_scores": count[shown],
                "share": share,
                "error": np.sqrt(np.maximum(share * (1 - share), 0.25 / (count[shown] + 1)) / count[shown]),
            }
        )

    @cached_property
    def drift(self) -> pd.DataFrame:
        """Differences between successive versions of a judge on the tasks that both scored.

        Columns are judge, before, after, n_tasks, shift (of the mean score), shift_error, rank_correlation, changed (share of tasks
        whose label changes), kappa_before, kappa_after, kappa_change, kappa_error and significant.
        """
        names = ["judge", "before", "after", "n_tasks", "shift", "shift_error", "rank_correlation", "changed",
                 "kappa_before", "kappa_after", "kappa_change", "kappa_error", "significant"]  # fmt: skip
        rows = [
            self._compare_versions(judge, before, after)
            for judge, chain in (self.versions or {}).items()
            for before, after in itertools.pairwise(chain)
        ]
        return pd.DataFrame([row for row in rows if row is not None], columns=names)

    def _compare_versions(self, judge: str, before: Any, after: Any) -> dict[str, Any] | None:
        scores = self.scores
        position = scores.workers.get_indexer(match_id_type(pd.Index([before, after]), scores.workers))
        parts = []
        for code in position:
            rows = np.flatnonzero(scores.worker == code)
            frame = pd.DataFrame({"task": scores.task[rows], "score": scores.score[rows], "label": self._label[rows]})
            parts.append(frame.groupby("task").agg({"score": "mean", "label": "first"}))
        joined = parts[0].add_suffix("_before").join(parts[1].add_suffix("_after"), how="inner")
        if len(joined) < 2:
            return None
        gap = joined["score_after"] - joined["score_before"]
        is_reference = np.isin(joined.index, self.reference)
        probs = self.posterior[joined.index[is_reference]]
        labels = {side: joined.loc[is_reference, f"label_{side}"].to_numpy() for side in ("before", "after")}
        kappa, hits = {}, {}
        for side, label in labels.items():
            hits[side] = probs[np.arange(len(label)), label] if len(label) else np.empty(0)
            label_share = np.bincount(label, minlength=probs.shape[1]) / max(len(label), 1)
            chance = float(label_share @ probs.mean(axis=0)) if len(label) else float("nan")
            kappa[side] = (
                (float(hits[side].mean()) - chance) / (1 - chance) if len(label) and chance < 1 else float("nan")
            )
        change = hits["after"] - hits["before"]
        chance_scale = 1 - float((probs.mean(axis=0) ** 2).sum()) if len(probs) else float("nan")
        kappa_error = (
            float(change.std(ddof=1) / np.sqrt(len(change)) / chance_scale) if len(change) > 1 else float("nan")
        )
        shift, shift_error = float(gap.mean()), float(gap.std(ddof=1) / np.sqrt(len(gap)))
        kappa_change = kappa["after"] - kappa["before"]
        rank = joined["score_before"].rank().corr(joined["score_after"].rank())
        return {
            "judge": judge,
            "before": before,
            "after": after,
            "n_tasks": len(joined),
            "shift": shift,
            "shift_error": shift_error,
            "rank_correlation": float(rank),
            "changed": float((joined["label_before"] != joined["label_after"]).mean()),
            "kappa_before": kappa["before"],
            "kappa_after": kappa["after"],
            "kappa_change": kappa_change,
            "kappa_error": kappa_error,
            "significant": bool(
                abs(shift) > MIN_ERRORS * shift_error > 0 or abs(kappa_change) > MIN_ERRORS * kappa_error > 0
            ),
        }

    @property
    def verdict(self) -> list[str]:
        """Conclusions about the panel in words."""
        return list(self.model.verdict_)

    @cached_property
    def overview(self) -> dict[str, Any]:
        """Figures of the diagnosis, for JSON."""
        return {
            "tasks": self.scores.n_tasks,
            "judges": self.scores.n_workers,
            "scores": self.scores.n_votes,
            "people": 0 if self.scores.votes is None else int((self.scores.votes.votes_per_worker > 0).sum()),
            "reference": "truth" if self.truth is not None else "panel",
            "reference_tasks": len(self.reference),
            "n_effective": round(float(self.model.n_effective_), 4),
            "flagged_judges": int((self.judges["flags"] != "").sum()),
            "drifting_versions": int(self.drift["significant"].sum()) if len(self.drift) else 0,
            "verdict": self.verdict,
        }


def _flag_judges(table: pd.DataFrame, kappa_error: Array, severity_error: Array) -> tuple[list[str], list[str]]:
    """Return the flags of the judges, and the reasons."""
    flags, reasons = [], []
    rows: Any = table.itertuples()
    for position, row in enumerate(rows):
        mine: dict[str, str] = {}
        if row.n_scores >= MIN_SCORES:
            if row.kappa + MIN_ERRORS * kappa_error[position] < MIN_KAPPA:
                mine["uninformative"] = f"agrees with the reference by {row.kappa:.2f} beyond chance"
            if abs(row.severity) - MIN_ERRORS * severity_error[position] > MIN_SEVERITY:
                name = "strict" if row.severity > 0 else "lenient"
                mine[name] = (
                    f"its scores are {abs(row.severity):.0%} of its scale {'below' if row.severity > 0 else 'above'} the truth"
                )
            if row.consistency == row.consistency and row.consistency < MIN_CONSISTENCY:
                mine["inconsistent"] = f"repeated scores correlate by {row.consistency:.2f}"
            if (
                row.length_bias == row.length_bias
                and abs(row.length_bias) - MIN_ERRORS * row.length_error > MIN_LENGTH_BIAS
            ):
                kind = "longer" if row.length_bias > 0 else "shorter"
                mine["length"] = f"scores {kind} tasks higher, correlation {row.length_bias:+.2f} given the class"
        flags.append(", ".join(mine))
        reasons.append("; ".join(mine.values()))
    return flags, reasons


def diagnose_judges(
    scores: ScoreCrowd | DataFrameLike,
    *,
    gold: TruthLike | None = None,
    truth: TruthLike | None = None,
    lengths: pd.Series | Mapping[Any, float] | None = None,
    versions: Mapping[str, Any] | None = None,
    model: Panel | None = None,
) -> JudgeDiagnosis:
    """Diagnose judges that score tasks.

    Parameters
    ----------
    scores : ScoreCrowd or table
        Scores, and votes of people. Read repeated scores with ``duplicates="keep"``, which shows how consistent judges are.
    gold : truth-like, optional
        Truth of some tasks that the panel is fitted with, and that judges are compared with.
    truth : truth-like, optional
        Known truth that judges are compared with; the panel does not use it.
    lengths : mapping or Series, optional
        Length of each task, for example in words, to find judges that prefer long or short tasks.
    versions : mapping, optional
        Judges that are versions of one another, in order: ``{"gpt": ["gpt-4-0613", "gpt-4o"]}``.
    model : Panel, optional
        Panel that was fitted to these scores.

    Returns
    -------
    JudgeDiagnosis

    Raises
    ------
    InputError
        If versions name unknown judges.
    UsageError
        If the model was fitted to other scores.

    Examples
    --------
    >>> from wisecrowd import simulate_scores
    >>> made = simulate_scores(n_tasks=200, n_judges=3)
    >>> diagnose_judges(made.scores, gold=made.truth.iloc[:50]).overview["reference_tasks"]
    50
    """
    crowd = scores if isinstance(scores, ScoreCrowd) else ScoreCrowd.from_frame(scores, duplicates="keep")
    panel = _fit_panel(crowd, gold, truth) if model is None else model
    if (
        not hasattr(panel, "judge_model_")
        or not panel.judge_index_.equals(crowd.workers)
        or len(panel.task_index_) != crowd.n_tasks
    ):
        raise UsageError("model must be a Panel fitted to these scores; leave it out to fit one")
    chains: dict[str, tuple[Any, ...]] = {}
    for name, chain in (versions or {}).items():
        if isinstance(chain, str) or len(chain) < 2:
            raise UsageError(f"versions[{name!r}] must list two judges or more, in order; got {chain!r}")
        index = pd.Index(list(chain))
        unknown = index[~match_id_type(index, crowd.workers).isin(crowd.workers)]
        if len(unknown):
            raise InputError(
                f"versions name unknown judges: {preview(unknown)}; the judges are {preview(crowd.workers, 8)}"
            )
        chains[str(name)] = tuple(chain)
    reference = truth if truth is not None else gold
    return JudgeDiagnosis(
        crowd,
        panel,
        None if reference is None else as_truth_series(reference),
        None if lengths is None else pd.Series(lengths, dtype=np.float64),
        chains or None,
    )


def _fit_panel(scores: ScoreCrowd, gold: TruthLike | None, truth: TruthLike | None) -> Panel:
    """Fit a panel; without gold and votes of people, its two classes get their names from the truth."""
    if gold is not None or scores.votes is not None or truth is None:
        return Panel().fit(scores, truth=gold)
    series = as_truth_series(truth)
    classes = sorted(series.unique().tolist())
    if len(classes) != 2:
        raise UsageError(
            f"the truth has {len(classes):,} classes, and scores alone can be divided into two only; pass the truth as gold"
        )
    panel = Panel(classes=tuple(classes)).fit(scores)
    labels = panel.labels_.reindex(match_id_type(series.index, scores.tasks))
    agreement = float((labels.to_numpy() == series.to_numpy()).mean())
    return panel if agreement >= 0.5 else Panel(classes=tuple(classes[::-1])).fit(scores)
