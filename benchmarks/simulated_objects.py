"""Objects and texts with known truth: calibrated confidence, recovered workers, and choice of methods by held-out workers.

WISECROWD_ANSWER_TYPES=... python benchmarks/simulated_objects.py [--public]
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from measuring import machine
from numpy.typing import NDArray
from tables import Ledger

import wisecrowd as wc
from wisecrowd.data.edit_counts import count_edits
from wisecrowd.data.texts import tokenize
from wisecrowd.errors import ignore_fit_warnings

HERE = Path(__file__).parent
SEEDS = 5
#: Distance up to which simulated points match, in pixels; their standard deviation is 4.
RADIUS = 15.0
KINDS = {
    "boxes": (wc.simulate_boxes, wc.BoxConsensus),
    "points": (wc.simulate_points, wc.PointConsensus),
    "spans": (wc.simulate_spans, wc.SpanConsensus),
}
CONDITIONS: dict[str, dict[str, Any]] = {
    "250 tasks": {"n_tasks": 250},
    "250 tasks, 3 votes": {"n_tasks": 250, "votes_per_task": 3},
    "250 tasks, 40 % difficult": {"n_tasks": 250, "difficult_share": 0.4},
    "250 tasks, 3 classes": {"n_tasks": 250, "n_classes": 3},
    "250 tasks, many false alarms": {"n_tasks": 250, "false_alarms": 1.0, "detection_rate": 0.6},
    "40 tasks, 8 workers": {"n_tasks": 40, "n_workers": 8, "votes_per_task": 4},
}
PROTOCOL = f"""\
Crowds are drawn by `simulate_boxes`, `simulate_points`, `simulate_spans` and `simulate_texts`: 20 workers (15 for texts), 5 votes
per task, detection rate 0.8, 0.3 false alarms per task, unless the row says otherwise. Methods have their default parameters. All
figures are means over {SEEDS} seeds, *±* standard deviations over seeds.

- *ECE*: expected calibration error of the confidence of all candidates in ten bins (an object is right if it matches the truth:
  boxes from an intersection over union of 0.5, spans if they are equal, points within {RADIUS:g} pixels); *worst* of all seeds.
- *detection*, *false alarms*, *edges*: mean absolute error of workers’ rates. *expected F1 − F1* is that of the chosen objects.
- *Texts*: *ECE* of the probability of single texts that they are right, mean error of the expected share of right words, mean
  absolute error of the accuracy of workers.
- *Choice of methods*: `compare_methods` without truth on 60 tasks. *loss* is how much lower the F1 score (for texts, one minus
  WER) of the chosen method is than that of the best one.
- *Public data*: the same on boxes_praznat, ner_mturk_spans (with documents) and CrowdSpeech dev.
""".splitlines()


def fit(method: Any, crowd: Any) -> Any:
    with ignore_fit_warnings():
        return method.fit(crowd)


def compute_ece(confidence: NDArray[np.float64], is_right: NDArray[np.bool_]) -> float:
    """Return the expected calibration error in ten bins."""
    bins = np.minimum((confidence * 10).astype(int), 9)
    return float(np.abs(np.bincount(bins, confidence - is_right, 10)).sum() / len(bins))


def measure_marks(ledger: Ledger) -> None:
    """Measure calibration and recovery of workers for marks."""
    worst: dict[str, float] = {}
    for kind, (simulate, method) in KINDS.items():
        for condition, options in CONDITIONS.items():
            rows = []
            for seed in range(SEEDS):
                made = simulate(random_state=seed, **options)
                fitted = fit(method(), made.crowd)
                candidates = fitted.candidates_
                limit = RADIUS if kind == "points" else None
                score = wc.score_objects(candidates, made.truth, kind=kind, radius=limit)  # type: ignore[arg-type]
                confidence = candidates["confidence"].to_numpy()
                chosen = candidates["chosen"].to_numpy()
                f1 = wc.score_objects(fitted.objects_, made.truth, kind=kind, radius=limit).f1  # type: ignore[arg-type]
                expected = 2 * confidence[chosen].sum() / (chosen.sum() + confidence.sum())
                errors = np.abs(fitted.workers_ - made.workers).mean()
                edges = errors["boundary_error"] if kind != "points" else np.nan
                rows.append(
                    (
                        f1,
                        compute_ece(confidence, score.is_match),
                        expected - f1,
                        errors["detection_rate"],
                        errors["false_alarms"],
                        edges,
                    )
                )
            table = np.array(rows)
            mean, spread = table.mean(axis=0), table.std(axis=0, ddof=1)
            ledger.note(
                "Objects", kind=kind, crowd=condition, F1=f"{mean[0]:.3f} ± {spread[0]:.3f}",
                ECE=f"{mean[1]:.3f} ± {spread[1]:.3f}", worst=f"{table[:, 1].max():.3f}",
                **{"expected F1 − F1": f"{mean[2]:+.3f} ± {spread[2]:.3f}", "detection": f"{mean[3]:.3f}",
                   "false alarms": f"{mean[4]:.3f}", "edges": "–" if np.isnan(mean[5]) else f"{mean[5]:.3f}"},
            )  # fmt: skip
            if condition.startswith("250"):
                worst[kind] = max(worst.get(kind, 0.0), float(mean[1]))
    for kind, value in worst.items():
        ledger.want(f"{kind}, ECE of the confidence on 250 tasks, worst condition", value, at_most=0.05)


def measure_texts(ledger: Ledger) -> None:
    """Measure calibration and recovery of workers for texts."""
    for condition, options in {
        "accuracy 0.85": {},
        "accuracy 0.7": {"accuracy": 0.7},
        "accuracy 0.7, 3 votes": {"accuracy": 0.7, "votes_per_task": 3},
        "accuracy 0.7, words left out": {"accuracy": 0.7, "error_shares": (0.2, 0.8, 0.0)},
    }.items():
        for method in (wc.Rover(), wc.TextMedoid()):
            rows = []
            for seed in range(SEEDS):
                made = wc.simulate_texts(n_tasks=300, random_state=seed, **options)  # type: ignore[arg-type]
                fitted = fit(method.clone_unfitted(), made.crowd)
                tokens = tokenize([*fitted.texts_, *made.truth])
                n = len(made.truth)
                edits = count_edits(tokens, np.arange(n), tokens, n + np.arange(n))
                right_words = 1 - edits.total / np.maximum(tokens.length[n:], 1)
                rows.append(
                    (
                        wc.compute_error_rates(fitted.texts_, made.truth).mean(),
                        compute_ece(fitted.confidence_, edits.total == 0),
                        (fitted.token_confidence_ - right_words).mean(),
                        np.abs(fitted.workers_["accuracy"] - made.workers["accuracy"]).mean(),
                    )
                )
            mean, spread = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1)
            ledger.note(
                "Texts", crowd=condition, method=method.name, WER=f"{mean[0]:.3f} ± {spread[0]:.3f}",
                ECE=f"{mean[1]:.3f} ± {spread[1]:.3f}", **{"right words": f"{mean[2]:+.3f}", "accuracy error": f"{mean[3]:.3f}"},
            )  # fmt: skip


def note_choice(ledger: Ledger, title: str, name: str, comparison: Any, quality: pd.Series, seconds: float) -> float:
    """Add the methods of a comparison to a table, and return the loss of the choice."""
    loss = float(quality.max() - quality[comparison.best])
    for method, row in comparison.table.iterrows():
        ledger.note(
            title, crowd=name, method=method, **{"log P": f"{row['log_likelihood']:.3f}", "behind": f"{row['behind']:.3f}"},
            tied=method in comparison.tied_methods, quality=f"{quality[method]:.3f}",
            chosen=method == comparison.best, seconds=f"{seconds:.0f}",
        )  # fmt: skip
    return loss


def measure_choice(ledger: Ledger) -> None:
    """Compare the choice by held-out workers with the truth, on simulated crowds."""
    losses = []
    for kind, (simulate, _) in KINDS.items():
        for seed in range(SEEDS):
            made = simulate(n_tasks=60, n_workers=10, difficult_share=0.3, worker_spread=1.0, random_state=seed)
            comparison = wc.compare_methods(made.crowd, truth=made.truth)
            quality = comparison.table["f1"]
            losses.append((kind, comparison.best, float(quality.max() - quality[comparison.best])))
    for seed in range(SEEDS):
        texts = wc.simulate_texts(n_tasks=60, n_workers=10, accuracy=0.7, random_state=seed)
        comparison = wc.compare_methods(texts.crowd, truth=texts.truth)
        quality = 1 - comparison.table["wer"]
        losses.append(("texts", comparison.best, float(quality.max() - quality[comparison.best])))
    table = pd.DataFrame(losses, columns=["kind", "best", "loss"])
    for kind, part in table.groupby("kind", sort=False):
        ledger.note(
            "Choice of methods", kind=kind, seeds=len(part), chosen=", ".join(sorted(set(part["best"]))),
            **{"mean loss": f"{part['loss'].mean():.3f}", "largest loss": f"{part['loss'].max():.3f}"},
        )  # fmt: skip


def measure_public(ledger: Ledger) -> None:
    """Compare the choice by held-out workers with the truth, on public data."""
    folder = Path(os.environ["WISECROWD_ANSWER_TYPES"])
    for name, kind, crowd_class in (
        ("boxes_praznat", "boxes", wc.BoxCrowd),
        ("ner_mturk_spans", "spans", wc.SpanCrowd),
    ):
        marks, assignments, truth = (
            pd.read_parquet(folder / name / f"{part}.parquet") for part in (kind, "assignments", f"truth_{kind}")
        )
        documents = pd.read_parquet(folder / name / "documents.parquet") if kind == "spans" else None
        begin = time.process_time()
        crowd = crowd_class.from_frame(marks, assignments=assignments)
        comparison = wc.compare_methods(crowd, None, documents, truth=truth)
        note_choice(ledger, "Public data", name, comparison, comparison.table["f1"], time.process_time() - begin)
    answers = wc.TextCrowd.from_frame(pd.read_parquet(folder / "crowdspeech_dev" / "answers.parquet"))
    texts = pd.read_parquet(folder / "crowdspeech_dev" / "truth.parquet").set_index("task")["text"]
    begin = time.process_time()
    comparison = wc.compare_methods(answers, truth=texts)
    note_choice(
        ledger, "Public data", "crowdspeech_dev", comparison, 1 - comparison.table["wer"], time.process_time() - begin
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=HERE / "results", help="folder of the results")
    parser.add_argument("--public", action="store_true", help="also compare methods on public data (minutes)")
    arguments = parser.parse_args()
    ledger = Ledger()
    measure_marks(ledger)
    measure_texts(ledger)
    measure_choice(ledger)
    if arguments.public:
        measure_public(ledger)
    machine_facts = machine(names=("numpy", "scipy", "pandas"))
    ledger.report("simulated_objects", "Simulated objects and texts", machine_facts, PROTOCOL, arguments.output)


if __name__ == "__main__":
    main()
