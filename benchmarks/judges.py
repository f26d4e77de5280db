"""Panels of judges that give scores: accuracy without gold, with 100 and with 500 gold labels, and simulated panels.

WISECROWD_ANSWER_TYPES=... python benchmarks/judges.py
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from measuring import machine
from sklearn.linear_model import LogisticRegressionCV
from tables import Ledger

import wisecrowd as wc
from wisecrowd.errors import ignore_fit_warnings

HERE = Path(__file__).parent
PROTOCOL = """\
- *civilcomments_judges*: 2,500 comments, scores 0 to 9 by 24 language models, 477 scores absent, half of the comments toxic. Gold
  tasks are drawn at random, 20 draws (seeds 0 to 19); accuracy is that on all other tasks, *sd* its standard deviation over
  draws, *±* the standard error. Draws overlap in their test tasks, so *±* describes the choice of gold only.
- *best judge*: the judge and threshold with the highest accuracy on gold. *logistic regression*: on standardised scores (mean
  imputation), strength of the ridge by 5-fold cross-validation on gold.
- *Panel*: `wc.Panel().fit(scores, truth=gold)` with its defaults, no groups named. *calibration error*: mean distance between
  confidence and accuracy in ten bins of equal width, on test tasks.
- What was chosen with this dataset in view: the coding of scores by steps, in a comparison of three codings with five fixed
  strengths each on seeds 0 to 19; the prior by communality, the shares of the latent-class evidence, the grid of strengths and the
  prior weights of members, on seeds 1000 to 1019, other draws of gold from the same comments. The figures are therefore not those
  of an untouched dataset. Strengths and weights are chosen in each fit by cross-validation on its gold.
- *Simulated panels*: 1,000 tasks, 10 judges, 100 gold, ten seeds. *one good judge*: a judge with distance 3 between classes
  among nine with distance 0.3. *behind* is the accuracy of the best judge by the same gold less that of the panel; *error* its
  standard error.
""".splitlines()
DRAWS = 20
GOLD_SIZES = (25, 50, 100, 200, 500)


def load_scores() -> tuple[wc.ScoreCrowd, pd.Series]:
    """Return scores and truth."""
    folder = Path(os.environ["WISECROWD_ANSWER_TYPES"]) / "civilcomments_judges"
    table = pd.read_parquet(folder / "scores.parquet", columns=["task", "worker", "score"])
    scores = wc.ScoreCrowd.from_frame(table)
    truth = pd.read_parquet(folder / "truth.parquet").set_index("task")["label"]
    return scores, truth.loc[scores.tasks]


def widen(scores: wc.ScoreCrowd) -> pd.DataFrame:
    """Return a table of tasks by judges."""
    return scores.to_frame().pivot(index="task", columns="worker", values="score").loc[scores.tasks]


def predict_by_best_judge(wide: pd.DataFrame, gold: pd.Series) -> pd.Series:
    """Return the labels of the judge and threshold that are best on gold."""
    filled = wide.fillna(wide.mean())
    best, labels = -1.0, pd.Series(dtype=int)
    for judge in filled:
        values = filled[judge]
        distinct = np.unique(values)
        for threshold in (distinct[1:] + distinct[:-1]) / 2:
            right = float(((values[gold.index] > threshold) == gold).mean())
            if right > best:
                best, labels = right, (values > threshold).astype(int)
    return labels


def predict_by_regression(wide: pd.DataFrame, gold: pd.Series) -> pd.Series:
    """Return the labels of a logistic regression on standardised scores."""
    features = ((wide - wide.mean()) / wide.std()).fillna(0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LogisticRegressionCV(Cs=np.logspace(-3, 1, 9), cv=5, scoring="neg_log_loss", max_iter=1000)
        model.fit(features.loc[gold.index], gold)
    return pd.Series(model.predict(features), index=wide.index)


def compute_calibration_error(confidence: np.ndarray, right: np.ndarray) -> float:
    """Return the mean distance between confidence and accuracy in ten bins."""
    group = np.minimum((confidence * 10).astype(int), 9)
    gap = np.bincount(group, confidence - right, 10)
    return float(np.abs(gap).sum() / len(right))


def measure_without_gold(ledger: Ledger, scores: wc.ScoreCrowd, truth: pd.Series) -> None:
    """Measure labels without gold."""
    frame = scores.to_frame()
    votes = wc.Crowd.from_frame(frame.assign(label=(frame["score"] > 4.5).astype(int)).drop(columns="score"))
    title = "civilcomments_judges, no gold"
    for name in ("majority-vote", "dawid-skene", "ibcc", "model-average"):
        from wisecrowd.base.registry import find

        with ignore_fit_warnings():
            labels = find(name)().fit(votes).labels_
        ledger.note(title, method=f"{name} on votes above 4.5", accuracy=round(float((labels == truth).mean()), 4))
    panel = wc.Panel().fit(scores)
    accuracy = float((panel.labels_ == truth).mean())
    ledger.note(title, method="Panel", accuracy=round(accuracy, 4))
    ledger.note("Effective number of judges", gold=0, n_effective=round(panel.n_effective_, 2))
    ledger.want("Panel without gold", round(accuracy, 4), at_least=0.73)


def measure_with_gold(ledger: Ledger, scores: wc.ScoreCrowd, truth: pd.Series) -> None:
    """Measure labels with gold tasks drawn at random."""
    wide = widen(scores)
    for size in GOLD_SIZES:
        accuracies_by_method: dict[str, list[float]] = {}
        errors, counts = [], []
        for seed in range(DRAWS):
            chosen = np.random.default_rng(seed).choice(len(truth), size, replace=False)
            gold = truth.iloc[np.sort(chosen)]
            rest = truth.index.difference(gold.index)
            panel = wc.Panel().fit(scores, truth=gold)
            for name, labels in (
                ("best judge", predict_by_best_judge(wide, gold)),
                ("logistic regression", predict_by_regression(wide, gold)),
                ("Panel", panel.labels_),
            ):
                accuracies_by_method.setdefault(name, []).append(float((labels[rest] == truth[rest]).mean()))
            right = (panel.labels_[rest] == truth[rest]).to_numpy()
            errors.append(compute_calibration_error(panel.proba_.loc[rest].max(axis=1).to_numpy(), right))
            counts.append(panel.n_effective_)
        for name, values in accuracies_by_method.items():
            row = {"accuracy": round(np.mean(values), 4), "sd": round(np.std(values, ddof=1), 4)}
            row["±"] = round(np.std(values, ddof=1) / np.sqrt(DRAWS), 4)
            if name == "Panel":
                row["calibration error"] = round(float(np.mean(errors)), 3)
            ledger.note(f"civilcomments_judges, {size} gold", method=name, **row)
        ledger.note("Effective number of judges", gold=size, n_effective=round(float(np.mean(counts)), 2))
        if size in (100, 500):
            target = {100: 0.762, 500: 0.777}[size]
            ledger.want(
                f"Panel with {size} gold", round(float(np.mean(accuracies_by_method["Panel"])), 4), at_least=target
            )


def measure_simulated(ledger: Ledger) -> None:
    """Compare the panel with its best judge on simulated panels."""
    panels: dict[str, Callable[[int], wc.simulate.ScoreSimulation]] = {
        "correlated errors": lambda seed: wc.simulate_scores(1000, 10, random_state=seed),
        "independent errors": lambda seed: wc.simulate_scores(
            1000, 10, correlation=0.0, family_correlation=0.0, random_state=seed
        ),
        "mixed scales": lambda seed: wc.simulate_scores(1000, 10, scale="mixed", random_state=seed),
        "copies of one judge": lambda seed: wc.simulate_scores(
            1000, 10, correlation=0.95, family_correlation=0.0, separation=1.0, random_state=seed
        ),
        "one good judge": lambda seed: make_one_good(seed),
    }
    worst = 0.0
    for title, simulate in panels.items():
        gaps, accuracies, counts = [], [], []
        for seed in range(10):
            simulation = simulate(seed)
            gold = simulation.truth.iloc[:100]
            rest = simulation.truth.index[100:]
            panel = wc.Panel().fit(simulation.scores, truth=gold)
            best = predict_by_best_judge(widen(simulation.scores), gold)
            accuracies.append(float((panel.labels_[rest] == simulation.truth[rest]).mean()))
            gaps.append(float((best[rest] == simulation.truth[rest]).mean()) - accuracies[-1])
            counts.append(panel.n_effective_)
        worst = max(worst, float(np.mean(gaps)))
        ledger.note(
            "Simulated panels, 100 gold",
            panel=title,
            accuracy=round(np.mean(accuracies), 3),
            behind=round(float(np.mean(gaps)), 4),
            error=round(float(np.std(gaps, ddof=1) / np.sqrt(10)), 4),
            n_effective=round(float(np.mean(counts)), 2),
        )
    ledger.want(
        "Panel behind its best judge by the same gold, worst of five kinds of panels", round(worst, 4), at_most=0.01
    )


def make_one_good(seed: int) -> wc.simulate.ScoreSimulation:
    """Return a panel of one good and nine bad judges."""
    good = wc.simulate_scores(1000, 1, separation=3.0, random_state=seed)
    bad = wc.simulate_scores(1000, 10, separation=0.3, random_state=seed)
    wide = widen(bad.scores)
    wide["judge0"] = widen(good.scores).iloc[:, 0]
    return wc.simulate.ScoreSimulation(wc.ScoreCrowd.from_wide(wide), good.truth, bad.separation, bad.error_correlation)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=HERE / "results", help="folder of the results")
    arguments = parser.parse_args()
    ledger = Ledger()
    scores, truth = load_scores()
    measure_without_gold(ledger, scores, truth)
    measure_with_gold(ledger, scores, truth)
    measure_simulated(ledger)
    ledger.report("judges", "Panels of judges", machine(names=("numpy", "scipy", "pandas")), PROTOCOL, arguments.output)


if __name__ == "__main__":
    main()
