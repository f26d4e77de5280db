"""Calibration of the class probabilities of all learners on LabelMe and Music, before and after one exponent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.sharpness import sharpen
from wisecrowd.bench.benchmark import Benchmark
from wisecrowd.bench.code_digest import code_digest
from wisecrowd.bench.data import StoredDataset, get_classification_data
from wisecrowd.bench.entries import LearnerEntry
from wisecrowd.bench.papers.all_learners import NETWORKS
from wisecrowd.evaluate.confidence import confidence_error
from wisecrowd.io.datasets import Dataset

#: Share of tasks whose votes are held out.
SHARE = 0.2
#: Figures of the probabilities as the learner has them, and calibrated.
NLL, NLL_CALIBRATED, ECE, ECE_CALIBRATED = "NLL", "NLL, calibrated", "ECE", "ECE, calibrated"
FIGURES = (NLL, NLL_CALIBRATED, ECE, ECE_CALIBRATED)


@dataclass(frozen=True)
class CalibrateLearner(LearnerEntry):
    """Entry that fits a learner with calibration and scores its probabilities with and without it on the test tasks.

    >>> CalibrateLearner("raykar").method
    'raykar'
    """

    is_random: ClassVar[bool] = True

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Fit the learner and score its probabilities."""
        features, truth, test = get_classification_data(dataset)
        model = self.kind(**{"random_state": seed, "calibration": SHARE, **self.settings}).fit(features, dataset.crowd)
        true_class = model.classes_.get_indexer(pd.Index(truth.loc[test]))
        calibrated = model.predict_proba(features.loc[test])
        original = sharpen(calibrated, 1 / model.prediction_sharpness_)
        return {
            NLL: log_loss(original, true_class),
            NLL_CALIBRATED: log_loss(calibrated, true_class),
            ECE: confidence_error(original.max(axis=1), original.argmax(axis=1) == true_class),
            ECE_CALIBRATED: confidence_error(calibrated.max(axis=1), calibrated.argmax(axis=1) == true_class),
        }

    def identity(self) -> Any:
        """Return the method, its parameters and the digest of its code."""
        parameters = self.kind(**self.settings).get_params(deep=False)
        shown = {name: repr(value) for name, value in sorted(parameters.items())}
        return [self.method, shown, SHARE, code_digest(type(self)), self.code()]


def log_loss(class_probs: NDArray[np.float64], true_class: NDArray[Any]) -> float:
    """Return the mean negative log-probability of the true classes; probabilities below 1e-12 count as that.

    Parameters
    ----------
    class_probs : ndarray of shape (n_tasks, n_classes)
        Class probabilities.
    true_class : ndarray of int of shape (n_tasks,)
        True classes.

    Returns
    -------
    float

    Examples
    --------
    >>> round(log_loss(np.array([[0.5, 0.5]]), np.array([0])), 3)
    0.693
    """
    probs = class_probs[np.arange(len(true_class)), true_class]
    return float(-np.log(np.maximum(probs, 1e-12)).mean())


def findings(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Describe the means over learners and the number of learners that calibration improves.

    >>> figures = {NLL: 0.5, NLL_CALIBRATED: 0.4, ECE: 0.1, ECE_CALIBRATED: 0.05}
    >>> findings([{"entry": "raykar", "data": "Music", "figures": figures}])[0]
    'Music: mean NLL .500, calibrated .400; mean ECE .100, calibrated .050. Calibration lowers the NLL of 1 of 1 learners ...'
    """
    sentences = []
    for data in sorted({row["data"] for row in rows if row.get("figures")}):
        by_learner: dict[str, list[list[float]]] = {}
        for row in rows:
            if row["data"] == data and row.get("figures"):
                by_learner.setdefault(row["entry"], []).append([row["figures"][name] for name in FIGURES])
        means = np.array([np.mean(seeds, axis=0) for seeds in by_learner.values()])
        nll, nll_calibrated, ece, ece_calibrated = (f"{mean:.3f}".removeprefix("0") for mean in means.mean(axis=0))
        n_lower = (means[:, [1, 3]] < means[:, [0, 2]]).sum(axis=0)
        sentences.append(
            f"{data}: mean NLL {nll}, calibrated {nll_calibrated}; mean ECE {ece}, calibrated {ece_calibrated}. Calibration lowers "
            f"the NLL of {n_lower[0]} of {len(means)} learners and the ECE of {n_lower[1]}."
        )
    return tuple(sentences)


def benchmark() -> Benchmark:
    """Return the benchmark of all learners on LabelMe and Music.

    >>> "concord" in benchmark().entries
    True
    """
    return _make_benchmark(
        (
            "concord",
            "raykar",
            "dlem",
            "cmm",
            "crowd-lab",
            "adaptive-difficulty",
            "fixed-difficulty",
            "two-stage",
            *NETWORKS,
        )
    )


def quick() -> Benchmark:
    """Return the benchmark of four learners that take seconds.

    >>> len(quick().entries)
    4
    """
    return _make_benchmark(("concord", "raykar", "crowd-lab", "crowd-layer"))


def _make_benchmark(names: Sequence[str]) -> Benchmark:
    return Benchmark(
        title="Are the probabilities of learners true?",
        entries={name: CalibrateLearner(name) for name in names},
        data={
            "LabelMe": StoredDataset("labelme", "distinct", figures=FIGURES),
            "Music": StoredDataset("music_genre", "distinct", figures=FIGURES),
        },
        notes={
            "concord": "The only learner that is calibrated by default.",
            "Music": "The test split has 300 tasks.",
        },
        seeds=3,
        findings=findings,
        remarks=(
            "`predict_proba` of every learner with its default parameters on the test tasks, which have no votes. *NLL* is the "
            "mean negative log-probability of the true class, *ECE* the expected calibration error of the most probable class with "
            f"15 bins of equal width. *Calibrated* is with `calibration={SHARE}`: the learner is fitted a second time without the "
            "votes on a fifth of the tasks, and one exponent of its probabilities is chosen by these votes. The truth is used for "
            "scoring only. Mean and standard deviation over three seeds (held-out tasks, folds, networks).",
        ),
        time_limit=900,
    )
