"""All learners, and aggregators without features, on every stored crowd with features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from wisecrowd.bench.benchmark import Benchmark, Entry
from wisecrowd.bench.papers._learner_entries import (
    FIGURES,
    LARGE_EPOCHS,
    TASK_FIGURES,
    TASKS,
    TASKS_ECE,
    TASKS_NLL,
    TEST,
    TEST_ECE,
    TEST_NLL,
    FeatureDataset,
    FitAggregator,
    FitLearner,
)

#: Learners whose worker model is part of a network.
NETWORKS = (
    "crowd-layer", "ccc", "doctor-net", "max-mig", "conal", "union-net", "crowd-ar", "trace-reg", "ccem", "geo-crowd-net",
    "madl", "annot-mix", "coupled-view", "mmlc",
)  # fmt: skip
#: Aggregators without features; the second one is the default.
AGGREGATORS = ("majority-vote", "model-average", "dawid-skene", "fast-ds")

ENTRIES: dict[str, Entry] = {
    "concord": FitLearner("concord"),
    "raykar": FitLearner("raykar"),
    "dlem": FitLearner("dlem"),
    "cmm": FitLearner("cmm"),
    "crowd-lab": FitLearner("crowd-lab"),
    "adaptive-difficulty": FitLearner("adaptive-difficulty"),
    "fixed-difficulty": FitLearner("fixed-difficulty"),
    "two-stage": FitLearner("two-stage"),
    "two-stage, soft vote": FitLearner("two-stage", {"aggregator": "majority-vote"}),
    "two-stage, network": FitLearner("two-stage", {"classifier": "mlp"}),
    **{name: FitLearner(name) for name in NETWORKS},
    **{f"{name} (no features)": FitAggregator(name) for name in AGGREGATORS},
}


def compute_mean_ranks(rows: Sequence[Mapping[str, Any]], figures: Sequence[str]) -> pd.Series:
    """Return the mean rank of every entry by the mean over seeds, over all data that all these entries have.

    An entry without one of the figures, such as an aggregator without test accuracy, is left out.

    >>> rows = [
    ...     {"entry": name, "data": "Music", "seed": 0, "figures": {TASKS: value}} for name, value in [("a", 0.8), ("b", 0.7)]
    ... ]
    >>> compute_mean_ranks(rows, [TASKS]).to_dict()
    {'a': 1.0, 'b': 2.0}
    """
    columns = pd.DataFrame(
        [
            {"entry": row["entry"], "column": (row["data"], figure), "value": row["figures"].get(figure)}
            for row in rows
            if row.get("figures")
            for figure in figures
            if row["figures"].get(figure) is not None
        ],
        columns=["entry", "column", "value"],
    )
    table = columns.groupby(["entry", "column"])["value"].mean().unstack()
    names = {str(name[1]) for name in table.columns}
    has_all = pd.Series(
        {entry: {name[1] for name in table.columns[table.loc[entry].notna()]} == names for entry in table.index}
    )
    complete = table[has_all.to_numpy(dtype=bool)].dropna(axis=1) if len(table) else table
    ascending = any(figure in (TEST_NLL, TEST_ECE, TASKS_NLL, TASKS_ECE) for figure in figures)
    ranks: pd.Series = complete.round(9).rank(ascending=ascending).mean(axis=1).sort_values()
    ranks.attrs["columns"] = complete.shape[1]
    return ranks


def describe_ranks(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Describe the mean ranks by accuracy, and by the log-loss.

    >>> figures = {TEST: 0.8, TASKS: 0.9, TEST_NLL: 0.5, TASKS_NLL: 0.4}
    >>> describe_ranks([{"entry": "raykar", "data": "Music", "seed": 0, "figures": figures}])[0]
    'Mean rank by accuracy on training tasks, 1 entry on 1 column: raykar 1.0.'
    """
    views = {
        "accuracy on training tasks": (TASKS,),
        "accuracy on test tasks": (TEST,),
        "accuracy on test and training tasks": (TEST, TASKS),
        "NLL on training tasks": (TASKS_NLL,),
        "NLL on test tasks": (TEST_NLL,),
    }
    sentences = []
    for view, figures in views.items():
        ranks = compute_mean_ranks(rows, figures)
        if not len(ranks):
            continue
        n_columns = int(ranks.attrs["columns"])
        counts = (
            f"{len(ranks)} {'entry' if len(ranks) == 1 else 'entries'} on {n_columns} column{'s' * (n_columns != 1)}"
        )
        places = ", ".join(f"{entry} {rank:.1f}" for entry, rank in ranks.items() if np.isfinite(rank))
        sentences.append(f"Mean rank by {view}, {counts}: {places}.")
    return tuple(sentences)


def benchmark() -> Benchmark:
    """Return the benchmark of all learners on all crowds with features.

    >>> "concord" in benchmark().entries
    True
    """
    return Benchmark(
        title="Every learner on crowds with features",
        entries=ENTRIES,
        data={
            "LabelMe": FeatureDataset("labelme", "distinct", figures=FIGURES),
            "LabelMe, max": FeatureDataset("labelme", "distinct", figures=FIGURES, features_file="features_max.npz"),
            "Music": FeatureDataset("music_genre", "distinct", figures=FIGURES),
            "Text": FeatureDataset("crowdtruth_relations_13", "distinct", figures=TASK_FIGURES),
            "Income": FeatureDataset("income", "distinct", figures=TASK_FIGURES),
            "Leaves": FeatureDataset("leaves", "distinct", figures=TASK_FIGURES),
            "RTE": FeatureDataset("rte", "distinct", figures=TASK_FIGURES),
            "CIFAR-10N": FeatureDataset("cifar10n", "distinct", figures=FIGURES, max_seeds=1),
        },
        notes={
            "LabelMe": "Mean of the last layer of VGG-16 over the image; *LabelMe, max* is its maximum.",
            "Music": "The test split has 300 tasks, so one standard error is about .027.",
            "Income": "The table has strings, which the default encoder of tables turns into numbers.",
            "CIFAR-10N": f"One seed; networks are trained for {LARGE_EPOCHS} epochs, dlem for {LARGE_EPOCHS} iterations. The "
            "worker ids of the release are those of batches, not of persons.",
        },
        seeds=3,
        findings=describe_ranks,
        remarks=(
            "Every learner with its default parameters, except where the title says otherwise. Nothing is "
            "chosen by the truth, and the last iteration is scored. *Test* is the classifier "
            "on tasks without votes; *training tasks* is the posterior on tasks with votes. NLL is the mean negative "
            "log-probability of the true class, ECE the expected calibration error; learners are not calibrated unless "
            "they do so by themselves. Seconds are those of the processor. Mean and standard deviation over three seeds "
            "(folds, networks).",
            "Movie reviews are left out: their votes are numbers, and learners need classes.",
        ),
        time_limit=900,
    )
