"""Summary of a result in a few lines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from wisecrowd.cli._console import shorten_id
from wisecrowd.utils.text import count_noun

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from wisecrowd.base.method import Method
    from wisecrowd.data.crowd import Crowd
    from wisecrowd.diagnose.assessment import CrowdAssessment
    from wisecrowd.evaluate.accuracy import AccuracyEstimate
    from wisecrowd.evaluate.confidence import LabelConfidence

#: Confidence below which a task counts as uncertain.
UNSURE = 0.6
_SHOWN_CLASSES = 6
_SHOWN_WORKERS = 3
#: Up to this many workers, all are shown instead of the best and the worst.
_FEW_WORKERS = 4
#: Votes a worker needs to be ranked; with fewer, the rank would be mostly chance.
_MIN_RANKED_VOTES = 5


def describe_crowd(crowd: object) -> str:
    """Return a description of a crowd, such as "300 votes: 100 tasks x 5 workers, 2 classes"."""
    return repr(crowd).partition("(")[2].removesuffix(")")


def summarise(
    fitted: Method, crowd: Crowd, estimate: LabelConfidence | None, workers: pd.DataFrame | None = None
) -> dict[str, Any]:
    """Return the figures behind the summary lines, for JSON.

    Parameters
    ----------
    fitted : Method
        Fitted method.
    crowd : Crowd
        Votes.
    estimate : LabelConfidence or None
        Confidence of the labels; None for numbers.
    workers : DataFrame, optional
        Table of workers to rank; that of the method by default.

    Returns
    -------
    dict
    """
    summary = _of_numbers(fitted, crowd) if estimate is None else _of_classes(fitted, crowd, estimate)
    summary["without_votes"] = int((crowd.votes_per_task == 0).sum())
    if crowd.has_workers:
        workers = fitted.workers_ if workers is None else workers
        summary["workers"] = rank_workers(workers)
        if "severity" in workers or "offset" in workers:
            summary["raters"] = rank_raters(workers)
    return summary


def assessment_lines(assessment: CrowdAssessment) -> list[tuple[str, str]]:
    """Return the lines that every command shows: expected accuracy, confidence and flagged workers.

    Parameters
    ----------
    assessment : CrowdAssessment
        Assessment of the crowd.

    Returns
    -------
    list of (str, str)
    """
    return [
        ("Accuracy", describe_accuracy(assessment.accuracy.to_dict())),
        ("Certainty", f"mean confidence {assessment.mean_confidence:.3f}"),
        ("Flagged", assessment.describe_flags()),
    ]


def describe_order(crowd: Crowd) -> list[tuple[str, str]]:
    """Return a line about the order of the classes, or none.

    Parameters
    ----------
    crowd : Crowd
        Votes.

    Returns
    -------
    list of (str, str)
        The order of ordered classes; a hint if classes are the grades 1, 2, 3, … without order.
    """
    if crowd.classes is None:
        return []
    names = [shorten_id(name) for name in crowd.classes]
    if crowd.is_ordered:
        middle = names if len(names) <= _SHOWN_CLASSES + 1 else [*names[:3], "…", names[-1]]
        return [("Type", f"ratings, {' < '.join(middle)}")]
    if len(names) > 2 and names == [str(number) for number in range(1, len(names) + 1)]:
        return [("Hint", f"labels are 1 to {len(names)}; if they are grades, add --ordered -m graded-response")]
    return []


def rank_raters(workers: pd.DataFrame) -> dict[str, Any]:
    """Return the strictest and the most lenient raters with enough votes.

    Parameters
    ----------
    workers : DataFrame
        Table of workers with a column severity or offset.

    Returns
    -------
    dict
        Severity, or minus the offset, by worker: under "strictest" and "most_lenient".
    """
    listed = workers[workers["n_votes"] >= _MIN_RANKED_VOTES]
    severity = (listed["severity"] if "severity" in listed else -listed["offset"]).sort_values(kind="stable")
    n_shown = min(_SHOWN_WORKERS, len(severity) // 2)
    chosen = {"strictest": severity.iloc[::-1][:n_shown], "most_lenient": severity.iloc[:n_shown]}
    return {
        key: {str(worker): round(float(value), 6) for worker, value in part.items()} for key, part in chosen.items()
    }


class PosteriorSummary:
    """Class shares and confidence of a posterior that comes in parts."""

    def __init__(self) -> None:
        self.tasks, self.under, self.tied, self.certainty = 0, 0, 0, 0.0
        self.classes: NDArray[Any] | float = 0.0

    def add(self, posterior: NDArray[Any], confidence: NDArray[Any]) -> None:
        """Add the posterior and the confidence of further tasks.

        Parameters
        ----------
        posterior : ndarray of shape (n_tasks, n_classes)
            Posterior of tasks that have votes.
        confidence : ndarray of shape (n_tasks,)
            Confidence of their labels.
        """
        from wisecrowd.evaluate.truth_alignment import TIE_TOLERANCE

        self.classes = self.classes + posterior.sum(axis=0, dtype=float)
        self.certainty += float(confidence.sum(dtype=float))
        self.tasks += len(confidence)
        self.under += int((confidence < UNSURE).sum())
        self.tied += int(((posterior >= posterior.max(axis=1)[:, None] - TIE_TOLERANCE).sum(axis=1) > 1).sum())

    def figures(self, classes: pd.Index, accuracy: AccuracyEstimate) -> dict[str, Any]:
        """Return class shares, most frequent first, the distribution of confidence and the expected accuracy, for JSON.

        Parameters
        ----------
        classes : Index
            Class names.
        accuracy : AccuracyEstimate
            Expected accuracy of all labels.

        Returns
        -------
        dict
            Values that JSON can hold.
        """
        import numpy as np

        shares = np.asarray(self.classes) / self.tasks
        order = np.argsort(-shares, kind="stable").tolist()
        return {
            "classes": {str(classes[code]): round(float(shares[code]), 6) for code in order},
            "confidence": {
                "mean": round(self.certainty / self.tasks, 6),
                "tasks": self.tasks,
                f"under_{UNSURE}": self.under,
                "tied": self.tied,
            },
            "expected_accuracy": accuracy.to_dict(),
        }


def _of_classes(fitted: Method, crowd: Crowd, estimate: LabelConfidence) -> dict[str, Any]:
    glance = PosteriorSummary()
    has_votes = crowd.votes_per_task > 0
    glance.add(fitted.posterior_[has_votes], estimate.confidence[has_votes])
    return glance.figures(fitted.classes_, estimate.accuracy)


def _of_numbers(fitted: Method, crowd: Crowd) -> dict[str, Any]:
    voted = crowd.votes_per_task > 0
    label = fitted.labels_.to_numpy(dtype=float)[voted]
    error = numeric_tasks(fitted)["standard_error"].to_numpy()[voted]
    labelled = error[error == error]  # a task with one vote has no standard error
    return {
        "numbers": {"mean": float(label.mean()), "lowest": float(label.min()), "highest": float(label.max())},
        "standard_error": {
            "mean": float(labelled.mean()) if len(labelled) else None,
            "unknown": len(error) - len(labelled),
        },
    }


def numeric_tasks(fitted: Method) -> pd.DataFrame:
    """Return the task table of a numeric method."""
    tasks: pd.DataFrame = fitted.tasks_  # type: ignore[attr-defined]  # numeric methods have it
    return tasks


def rank_workers(workers: pd.DataFrame) -> dict[str, Any]:
    """Return the best and the worst workers with enough votes, or all workers if there are few."""
    import numpy as np

    labelled = workers[workers["n_votes"] > 0]
    measure, sign = ("accuracy", -1) if "accuracy" in labelled else ("rmse", 1)
    listed = labelled if len(labelled) < _FEW_WORKERS else labelled[labelled["n_votes"] >= _MIN_RANKED_VOTES]
    n, value = (listed[column].to_numpy(dtype=float) for column in ("n_votes", measure))
    # Ties are broken by the number of votes.
    best = np.lexsort((-n, sign * value)).tolist()

    def rows(chosen: Iterable[int]) -> list[dict[str, Any]]:
        return [
            {"worker": str(listed.index[one]), measure: round(float(value[one]), 6), "n_votes": float(n[one])}
            for one in chosen
        ]

    ranking: dict[str, Any] = {"with_too_few_votes": len(labelled) - len(listed)}
    if len(listed) < _FEW_WORKERS:
        return ranking | {"all": rows(best)}
    n_shown = min(_SHOWN_WORKERS, len(listed) // 2)
    worst = [one for one in np.lexsort((-n, -sign * value)).tolist() if one not in best[:n_shown]]
    return ranking | {"best": rows(best[:n_shown]), "worst": rows(worst[:n_shown])}


def summary_lines(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the figures as lines of the summary."""
    facts = _numbers(summary) if "numbers" in summary else _classes(summary)
    if summary["without_votes"]:
        labelled = "labelled from features" if "features" in summary else "without a label"
        facts.append(("Unlabelled", f"{count_noun(summary['without_votes'], 'task')} without a vote, {labelled}"))
    facts += _flag_lines(summary)
    facts += _worker_lines(summary.get("workers", {}))
    if summary.get("raters", {}).get("strictest"):
        parts = (
            f"{title} "
            + ", ".join(f"{shorten_id(name)} {value:+.2f}" for name, value in summary["raters"][key].items())
            for title, key in (("strictest", "strictest"), ("most lenient", "most_lenient"))
        )
        facts.append(("Raters", "; ".join(parts)))
    if "gold" in summary:
        n = summary["gold"]["tasks"]
        facts.append(("Gold", f"{count_noun(n, 'task')} with known truth used in the fit"))
    if "score" in summary:
        facts.append(("Score", describe_score(summary["score"])))
    return facts


def _classes(summary: dict[str, Any]) -> list[tuple[str, str]]:
    shares, confidence = summary["classes"], summary["confidence"]
    n_shown = [f"{shorten_id(name)} {share:.1%}" for name, share in list(shares.items())[:_SHOWN_CLASSES]]
    hidden = len(shares) - len(n_shown)
    unsure = f"{count_noun(confidence[f'under_{UNSURE}'], 'task')} under {UNSURE}, {confidence['tied']:,} tied"
    return [
        ("Classes", ", ".join(n_shown) + (f", and {hidden:,} more" if hidden else "")),
        ("Accuracy", describe_accuracy(summary["expected_accuracy"])),
        ("Certainty", f"mean confidence {confidence['mean']:.3f}; {unsure}"),
    ]


def describe_accuracy(estimate: dict[str, Any]) -> str:
    """Return an expected accuracy as one line.

    Parameters
    ----------
    estimate : dict
        Result of `AccuracyEstimate.to_dict`.

    Returns
    -------
    str
    """
    from wisecrowd.evaluate.accuracy import AccuracyEstimate

    if estimate["gold_tasks"] >= estimate["tasks"] > 0:
        return "not estimated, because every task is gold"
    text = f"expected {AccuracyEstimate.from_dict(estimate)}"
    n_gold = estimate["gold_tasks"]
    return f"{text}, by votes and {count_noun(n_gold, 'gold task')}" if n_gold else f"{text}, by votes alone"


def _numbers(summary: dict[str, Any]) -> list[tuple[str, str]]:
    numbers, error = summary["numbers"], summary["standard_error"]
    certainty = [] if error["mean"] is None else [f"mean standard error {error['mean']:.3g}"]
    if error["unknown"]:
        certainty.append(f"{count_noun(error['unknown'], 'task')} with too few votes for a standard error")
    return [
        ("Numbers", f"mean {numbers['mean']:.4g}, from {numbers['lowest']:.4g} to {numbers['highest']:.4g}"),
        ("Certainty", "; ".join(certainty)),
    ]


def _flag_lines(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Return a line about flagged workers, if they were assessed."""
    return [("Flagged", summary["flagged"])] if "flagged" in summary else []


def _worker_lines(ranking: dict[str, Any]) -> list[tuple[str, str]]:
    facts = [
        (title, ", ".join(map(_worker, ranking[key])))
        for title, key in (("Workers", "all"), ("Best", "best"), ("Worst", "worst"))
        if ranking.get(key)
    ]
    if left_out := ranking.get("with_too_few_votes"):
        workers = count_noun(left_out, "worker")
        facts.append(("Left out", f"{workers} with fewer than {_MIN_RANKED_VOTES} votes, too few to rank"))
    return facts


def _worker(row: dict[str, Any]) -> str:
    worth = f"{row['accuracy']:.0%}" if "accuracy" in row else f"off by {row['rmse']:.3g}"
    n = row["n_votes"]
    return f"{shorten_id(row['worker'])} {worth} ({n:,.6g} {'vote' if n == 1 else 'votes'})"


def _score_interval(score: dict[str, Any]) -> str:
    """Return the interval of an accuracy on tasks with known truth."""
    from wisecrowd.utils.levels import format_level

    if "accuracy_low" not in score:
        return ""
    return f", {format_level()} {score['accuracy_low']:.1%} to {score['accuracy_high']:.1%}"


def describe_score(score: dict[str, Any]) -> str:
    """Return the score of labels as one line."""
    if "accuracy" in score:
        figures = (
            f"accuracy {score['accuracy']:.1%}{_score_interval(score)} (ties split), log loss {score['log_loss']:.3f}, "
        )
        figures += f"calibration error {score['calibration_error']:.3f}"
    else:
        figures = f"mean absolute error {score['mae']:.4g}, root mean square error {score['rmse']:.4g}"
    text = f"{figures}, on {count_noun(score['n_tasks'], 'task')}"
    if score["n_without_prediction"]:
        verb = "has" if score["n_without_prediction"] == 1 else "have"
        text += f"; {count_noun(score['n_without_prediction'], 'task')} with known truth {verb} no votes"
    if score.get("gold_left_out"):
        text += f"; {count_noun(score['gold_left_out'], 'gold task')} excluded"
    return text
