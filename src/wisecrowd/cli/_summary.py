"""What a person wants to know of a result at a glance."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from wisecrowd.cli._console import shortened
from wisecrowd.utils.text import count_noun

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from wisecrowd.base.method import Method
    from wisecrowd.data.crowd import Crowd
    from wisecrowd.data.sharded import ShardedCrowd

#: A task whose most probable class is less probable than this deserves another look.
UNSURE = 0.6
_SHOWN_CLASSES = 6
_SHOWN_WORKERS = 3
#: Fewer workers than this are all shown, without a best and a worst.
_FEW_WORKERS = 4
#: Workers with fewer labels than this are neither the best nor the worst: it may be luck.
_FEWEST_LABELS = 5


def size(crowd: Crowd | ShardedCrowd) -> str:
    """How large a crowd is: its repr without the name of the class."""
    return repr(crowd).partition("(")[2].removesuffix(")")


def summarise(fitted: Method, crowd: Crowd) -> dict[str, Any]:
    """The figures behind the lines, ready for JSON."""
    summary = _of_numbers(fitted, crowd) if crowd.is_numeric else _of_classes(fitted, crowd)
    summary["without_votes"] = int((crowd.votes_per_task == 0).sum())
    if crowd.has_workers:
        summary["workers"] = ranked(fitted.workers_)
    return summary


class Glance:
    """What posteriors look like at a glance, gathered from as many parts as they come in."""

    def __init__(self) -> None:
        self.tasks, self.under, self.tied, self.certainty = 0, 0, 0, 0.0
        self.classes: NDArray[Any] | float = 0.0

    def add(self, posterior: NDArray[Any]) -> None:
        """Some more tasks."""
        from wisecrowd.evaluate.metrics import TIE

        confidence = posterior.max(axis=1)
        self.classes = self.classes + posterior.sum(axis=0, dtype=float)
        self.certainty += float(confidence.sum(dtype=float))
        self.tasks += len(confidence)
        self.under += int((confidence < UNSURE).sum())
        self.tied += int(((posterior >= confidence[:, None] - TIE).sum(axis=1) > 1).sum())

    def figures(self, classes: pd.Index) -> dict[str, Any]:
        """Shares of classes, the most frequent first, and how certain the labels are; ready for JSON."""
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
        }


def _of_classes(fitted: Method, crowd: Crowd) -> dict[str, Any]:
    glance = Glance()
    glance.add(fitted.posterior_[crowd.votes_per_task > 0])
    return glance.figures(fitted.classes_)


def _of_numbers(fitted: Method, crowd: Crowd) -> dict[str, Any]:
    voted = crowd.votes_per_task > 0
    label = fitted.labels_.to_numpy(dtype=float)[voted]
    error = numeric_tasks(fitted)["standard_error"].to_numpy()[voted]
    known = error[error == error]  # a single label does not tell how far off it may be
    return {
        "numbers": {"mean": float(label.mean()), "lowest": float(label.min()), "highest": float(label.max())},
        "standard_error": {"mean": float(known.mean()) if len(known) else None, "unknown": len(error) - len(known)},
    }


def numeric_tasks(fitted: Method) -> pd.DataFrame:
    """What a numeric method learnt of each task."""
    tasks: pd.DataFrame = fitted.tasks_  # type: ignore[attr-defined]  # numeric methods have it
    return tasks


def ranked(workers: pd.DataFrame) -> dict[str, Any]:
    """The best and the worst workers by what is shown of them, or all of a few; few labels make no reputation."""
    import numpy as np

    known = workers[workers["n_votes"] > 0]
    measure, sign = ("accuracy", -1) if "accuracy" in known else ("rmse", 1)
    listed = known if len(known) < _FEW_WORKERS else known[known["n_votes"] >= _FEWEST_LABELS]
    n, value = (listed[column].to_numpy(dtype=float) for column in ("n_votes", measure))
    # Of workers equally good or bad, who did more comes first.
    best = np.lexsort((-n, sign * value)).tolist()

    def rows(chosen: Iterable[int]) -> list[dict[str, Any]]:
        return [
            {"worker": str(listed.index[one]), measure: round(float(value[one]), 6), "n_votes": float(n[one])}
            for one in chosen
        ]

    found: dict[str, Any] = {"with_too_few_labels": len(known) - len(listed)}
    if len(listed) < _FEW_WORKERS:
        return found | {"all": rows(best)}
    shown = min(_SHOWN_WORKERS, len(listed) // 2)
    worst = [one for one in np.lexsort((-n, -sign * value)).tolist() if one not in best[:shown]]
    return found | {"best": rows(best[:shown]), "worst": rows(worst[:shown])}


def lines(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """The figures as lines."""
    told = _numbers(summary) if "numbers" in summary else _classes(summary)
    if summary["without_votes"]:
        known = "answered for by features" if "features" in summary else "of which nothing is known"
        told.append(("Unlabelled", f"{count_noun(summary['without_votes'], 'task')} without a vote, {known}"))
    told += _workers(summary.get("workers", {}))
    if "gold" in summary:
        n = summary["gold"]["tasks"]
        told.append(
            (
                "Gold",
                f"{count_noun(n, 'task')} kept {'its' if n == 1 else 'their'} known truth and taught what workers are worth",
            )
        )
    if "score" in summary:
        told.append(("Score", scored(summary["score"])))
    return told


def _classes(summary: dict[str, Any]) -> list[tuple[str, str]]:
    shares, confidence = summary["classes"], summary["confidence"]
    shown = [f"{shortened(name)} {share:.1%}" for name, share in list(shares.items())[:_SHOWN_CLASSES]]
    hidden = len(shares) - len(shown)
    unsure = f"{count_noun(confidence[f'under_{UNSURE}'], 'task')} under {UNSURE}, {confidence['tied']:,} tied"
    return [
        ("Classes", ", ".join(shown) + (f", and {hidden:,} more" if hidden else "")),
        ("Certainty", f"mean confidence {confidence['mean']:.3f}; {unsure}"),
    ]


def _numbers(summary: dict[str, Any]) -> list[tuple[str, str]]:
    numbers, error = summary["numbers"], summary["standard_error"]
    certainty = [] if error["mean"] is None else [f"mean standard error {error['mean']:.3g}"]
    if error["unknown"]:
        certainty.append(f"{count_noun(error['unknown'], 'task')} with too few labels to tell")
    return [
        ("Numbers", f"mean {numbers['mean']:.4g}, from {numbers['lowest']:.4g} to {numbers['highest']:.4g}"),
        ("Certainty", "; ".join(certainty)),
    ]


def _workers(ranked: dict[str, Any]) -> list[tuple[str, str]]:
    told = [
        (title, ", ".join(map(_worker, ranked[key])))
        for title, key in (("Workers", "all"), ("Best", "best"), ("Worst", "worst"))
        if ranked.get(key)
    ]
    if left_out := ranked.get("with_too_few_labels"):
        have = "has" if left_out == 1 else "have"
        told.append(
            (
                "Left out",
                f"{count_noun(left_out, 'worker')} who {have} fewer than {_FEWEST_LABELS} labels, too few to rank",
            )
        )
    return told


def _worker(row: dict[str, Any]) -> str:
    worth = f"{row['accuracy']:.0%}" if "accuracy" in row else f"off by {row['rmse']:.3g}"
    n = row["n_votes"]
    return f"{shortened(row['worker'])} {worth} ({n:,.6g} {'label' if n == 1 else 'labels'})"


def scored(score: dict[str, Any]) -> str:
    """How good labels are, in a line."""
    if "accuracy" in score:
        figures = f"accuracy {score['accuracy']:.1%} (ties split), log loss {score['log_loss']:.3f}, "
        figures += f"calibration error {score['calibration_error']:.3f}"
    else:
        figures = f"mean absolute error {score['mae']:.4g}, root mean square error {score['rmse']:.4g}"
    text = f"{figures}, on {count_noun(score['n_tasks'], 'task')}"
    if score["n_without_prediction"]:
        text += f"; {count_noun(score['n_without_prediction'], 'task')} of known truth nobody voted on"
    if score.get("gold_left_out"):
        text += f"; {count_noun(score['gold_left_out'], 'task')} of --truth left out"
    return text
