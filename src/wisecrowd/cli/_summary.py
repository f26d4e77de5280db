"""What a person wants to know of a result at a glance."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from wisecrowd.cli._console import visible

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from wisecrowd.base import Aggregator
    from wisecrowd.crowd import Crowd

#: A task whose most probable class is less probable than this deserves another look.
UNSURE = 0.6
_SHOWN_CLASSES = 6
_SHOWN_WORKERS = 3


def size(crowd: Crowd) -> str:
    """How large a crowd is: its repr without the name of the class."""
    return repr(crowd).removeprefix("Crowd(").removesuffix(")")


def summarise(fitted: Aggregator, crowd: Crowd) -> dict[str, Any]:
    """The figures behind the lines, ready for JSON."""
    summary = _of_numbers(fitted, crowd) if crowd.is_numeric else _of_classes(fitted, crowd)
    summary["without_votes"] = int((crowd.labels_per_task == 0).sum())
    if crowd.has_workers:
        summary["workers"] = _ranked(fitted.workers_)
    return summary


def _of_classes(fitted: Aggregator, crowd: Crowd) -> dict[str, Any]:
    import numpy as np

    from wisecrowd.metrics import TIE

    posterior = fitted.posterior_[crowd.labels_per_task > 0]
    confidence = posterior.max(axis=1)
    shares = posterior.mean(axis=0)
    order = np.argsort(-shares, kind="stable").tolist()
    return {
        "classes": {str(fitted.classes_[code]): round(float(shares[code]), 6) for code in order},
        "confidence": {
            "mean": round(float(confidence.mean()), 6),
            "tasks": len(confidence),
            f"under_{UNSURE}": int((confidence < UNSURE).sum()),
            "tied": int(((posterior >= confidence[:, None] - TIE).sum(axis=1) > 1).sum()),
        },
    }


def _of_numbers(fitted: Aggregator, crowd: Crowd) -> dict[str, Any]:
    voted = crowd.labels_per_task > 0
    label = fitted.labels_.to_numpy(dtype=float)[voted]
    error = numeric_tasks(fitted)["standard_error"].to_numpy()[voted]
    known = error[error == error]  # a single label does not tell how far off it may be
    return {
        "numbers": {"mean": float(label.mean()), "lowest": float(label.min()), "highest": float(label.max())},
        "standard_error": {"mean": float(known.mean()) if len(known) else None, "unknown": len(error) - len(known)},
    }


def numeric_tasks(fitted: Aggregator) -> pd.DataFrame:
    """What a numeric method learnt of each task."""
    tasks: pd.DataFrame = fitted.tasks_  # type: ignore[attr-defined]  # numeric methods have it
    return tasks


def _ranked(workers: pd.DataFrame) -> dict[str, list[dict[str, Any]]]:
    """The best and the worst workers, as far as the number of their labels lets one be sure of it."""
    import numpy as np

    known = workers[workers["n_labels"] > 0]
    n = known["n_labels"].to_numpy(dtype=float)
    measure = "accuracy" if "accuracy" in known else "rmse"
    value = known[measure].to_numpy(dtype=float)
    surely_good, surely_bad = _accuracy_bounds(value, n) if measure == "accuracy" else _error_bounds(value, n)
    best = np.argsort(-surely_good, kind="stable")[: min(_SHOWN_WORKERS, (len(known) + 1) // 2)]
    worst = [one for one in np.argsort(-surely_bad, kind="stable").tolist() if one not in best][:_SHOWN_WORKERS]

    def rows(chosen: Iterable[int]) -> list[dict[str, Any]]:
        return [
            {"worker": str(known.index[one]), measure: round(float(value[one]), 6), "n_labels": float(n[one])}
            for one in chosen
        ]

    return {"best": rows(best.tolist()), "worst": rows(worst)}


def _accuracy_bounds(accuracy: NDArray[Any], n: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """How good and how bad one can be sure that workers are, by Wilson's interval: one slip does not make the worst."""
    import numpy as np

    z = 1.96
    middle = (accuracy + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(np.maximum(accuracy * (1 - accuracy) / n + z**2 / (4 * n**2), 0))
    return middle - half, -(middle + half)


def _error_bounds(rmse: NDArray[Any], n: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The same for errors: with few labels, a worker is taken to be as far off as all others are."""
    import numpy as np

    usual = float(np.sqrt((n * rmse**2).sum() / n.sum()))
    shrunk = np.sqrt((n * rmse**2 + 2 * usual**2) / (n + 2))
    return -shrunk, shrunk


def lines(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """The figures as lines."""
    told = _numbers(summary) if "numbers" in summary else _classes(summary)
    if summary["without_votes"]:
        told.append(("Unlabelled", f"{_tasks(summary['without_votes'])} without a vote, of which nothing is known"))
    for title, key in (("Best", "best"), ("Worst", "worst")):
        rows = summary.get("workers", {}).get(key, [])
        if rows:
            told.append((title, ", ".join(_worker(row) for row in rows)))
    if "gold" in summary:
        n = summary["gold"]["tasks"]
        told.append(
            ("Gold", f"{_tasks(n)} kept {'its' if n == 1 else 'their'} known truth and taught what workers are worth")
        )
    if "score" in summary:
        told.append(("Score", _score(summary["score"])))
    return told


def _classes(summary: dict[str, Any]) -> list[tuple[str, str]]:
    shares, confidence = summary["classes"], summary["confidence"]
    shown = [f"{visible(name)} {share:.1%}" for name, share in list(shares.items())[:_SHOWN_CLASSES]]
    hidden = len(shares) - len(shown)
    unsure = f"{_tasks(confidence[f'under_{UNSURE}'])} under {UNSURE}, {confidence['tied']:,} tied"
    return [
        ("Classes", ", ".join(shown) + (f", and {hidden:,} more" if hidden else "")),
        ("Certainty", f"mean confidence {confidence['mean']:.3f}; {unsure}"),
    ]


def _numbers(summary: dict[str, Any]) -> list[tuple[str, str]]:
    numbers, error = summary["numbers"], summary["standard_error"]
    certainty = [] if error["mean"] is None else [f"mean standard error {error['mean']:.3g}"]
    if error["unknown"]:
        certainty.append(f"{_tasks(error['unknown'])} with too few labels to tell")
    return [
        ("Numbers", f"mean {numbers['mean']:.4g}, from {numbers['lowest']:.4g} to {numbers['highest']:.4g}"),
        ("Certainty", "; ".join(certainty)),
    ]


def _worker(row: dict[str, Any]) -> str:
    worth = f"{row['accuracy']:.0%}" if "accuracy" in row else f"off by {row['rmse']:.3g}"
    return f"{visible(row['worker'])} {worth} ({row['n_labels']:,.6g} labels)"


def _score(score: dict[str, Any]) -> str:
    if "accuracy" in score:
        figures = f"accuracy {score['accuracy']:.1%} (ties split), log loss {score['log_loss']:.3f}, "
        figures += f"calibration error {score['calibration_error']:.3f}"
    else:
        figures = f"mean absolute error {score['mae']:.4g}, root mean square error {score['rmse']:.4g}"
    text = f"{figures}, on {_tasks(score['n_tasks'])}"
    if score["n_without_prediction"]:
        text += f"; {_tasks(score['n_without_prediction'])} of known truth nobody voted on"
    if score.get("gold_left_out"):
        text += f"; {_tasks(score['gold_left_out'])} of --truth left out"
    return text


def _tasks(n: int) -> str:
    return f"{n:,} task" if n == 1 else f"{n:,} tasks"
