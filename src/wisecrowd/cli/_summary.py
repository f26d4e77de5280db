"""What a person wants to know of a result at a glance."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from wisecrowd.cli._console import visible

if TYPE_CHECKING:
    import pandas as pd

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
    import numpy as np

    from wisecrowd.metrics import TIE

    posterior = fitted.posterior_
    confidence = posterior.max(axis=1)
    voted = crowd.labels_per_task > 0
    tied = ((posterior >= confidence[:, None] - TIE).sum(axis=1) > 1) & voted
    shares = posterior[voted].mean(axis=0)
    order = np.argsort(-shares, kind="stable")
    summary: dict[str, Any] = {
        "classes": {str(fitted.classes_[code]): round(float(shares[code]), 6) for code in order.tolist()},
        "confidence": {
            "mean": round(float(confidence[voted].mean()), 6),
            "tasks": int(voted.sum()),
            f"under_{UNSURE}": int((confidence[voted] < UNSURE).sum()),
            "tied": int(tied.sum()),
            "without_votes": int((~voted).sum()),
        },
    }
    if crowd.has_workers:
        summary["workers"] = _ranked(fitted.workers_)
    return summary


def _ranked(workers: pd.DataFrame) -> dict[str, list[dict[str, Any]]]:
    """The best and the worst workers, as far as the number of their labels lets one be sure of it."""
    import numpy as np

    known = workers[workers["n_labels"] > 0]
    n, accuracy = known["n_labels"].to_numpy(dtype=float), known["accuracy"].to_numpy(dtype=float)
    # Wilson's interval: one lucky label does not make the best worker, nor one slip the worst.
    z = 1.96
    middle = (accuracy + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(np.maximum(accuracy * (1 - accuracy) / n + z**2 / (4 * n**2), 0))
    best = np.argsort(-(middle - half), kind="stable")[: min(_SHOWN_WORKERS, (len(known) + 1) // 2)]
    worst = [one for one in np.argsort(middle + half, kind="stable").tolist() if one not in best][:_SHOWN_WORKERS]

    def rows(chosen: Iterable[int]) -> list[dict[str, Any]]:
        return [
            {"worker": str(known.index[one]), "accuracy": round(float(accuracy[one]), 6), "n_labels": float(n[one])}
            for one in chosen
        ]

    return {"best": rows(best.tolist()), "worst": rows(worst)}


def lines(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """The figures as lines."""
    confidence = summary["confidence"]
    told = [("Classes", _classes(summary["classes"])), ("Certainty", _certainty(confidence))]
    if confidence["without_votes"]:
        told.append(("Unlabelled", f"{_tasks(confidence['without_votes'])} without a vote, left to the class prior"))
    for title, key in (("Best", "best"), ("Worst", "worst")):
        rows = summary.get("workers", {}).get(key, [])
        if rows:
            told.append((title, ", ".join(_worker(row) for row in rows)))
    if "gold" in summary:
        told.append(
            ("Gold", f"{_tasks(summary['gold']['tasks'])} kept their known truth and taught what workers are worth")
        )
    if "score" in summary:
        told.append(("Score", _score(summary["score"])))
    return told


def _classes(shares: dict[str, float]) -> str:
    shown = [f"{visible(name)} {share:.1%}" for name, share in list(shares.items())[:_SHOWN_CLASSES]]
    hidden = len(shares) - len(shown)
    return ", ".join(shown) + (f", and {hidden:,} more" if hidden else "")


def _certainty(confidence: dict[str, Any]) -> str:
    unsure, tied = confidence[f"under_{UNSURE}"], confidence["tied"]
    return f"mean confidence {confidence['mean']:.3f}; {_tasks(unsure)} under {UNSURE}, {tied:,} tied"


def _worker(row: dict[str, Any]) -> str:
    return f"{visible(row['worker'])} {row['accuracy']:.0%} ({row['n_labels']:,.6g} labels)"


def _score(score: dict[str, Any]) -> str:
    text = (
        f"accuracy {score['accuracy']:.1%} (ties split), log loss {score['log_loss']:.3f}, "
        f"calibration error {score['calibration_error']:.3f}, on {_tasks(score['n_tasks'])}"
    )
    if score["n_without_prediction"]:
        text += f"; {_tasks(score['n_without_prediction'])} of known truth nobody voted on"
    if score.get("gold_left_out"):
        text += f"; {_tasks(score['gold_left_out'])} of --truth left out"
    return text


def _tasks(n: int) -> str:
    return f"{n:,} task" if n == 1 else f"{n:,} tasks"
