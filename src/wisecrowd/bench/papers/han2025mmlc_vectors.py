"""Settings of MMLC compared by hidden votes: does it predict votes better with several experts than with one?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.bench.benchmark import Benchmark, Entry
from wisecrowd.bench.papers._han import ACCURACY, NOTES, SURPRISE, VECTOR_SPREAD, Oracle, PaperSizes, crowds
from wisecrowd.io.datasets import Dataset

#: Setting in which all workers have the same vector.
ONE_EXPERT = "one expert"
#: Difference of two means, in standard errors, from which on it counts.
SIGNIFICANT = 2.0


@dataclass(frozen=True)
class HiddenVoteScores(Oracle):
    """Entry that scores MMLC by the votes that its epoch search hides, a fifth of all.

    Parameters
    ----------
    has_paper_sizes : bool, default=False
        Take experts and layers of the paper for the dataset.

    Examples
    --------
    >>> HiddenVoteScores("mmlc", has_paper_sizes=True).has_paper_sizes
    True
    """

    has_paper_sizes: bool = False

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Return the smallest mean −log P of the hidden votes over the epochs, and the scores of the oracle."""
        entry: HiddenVoteScores = self
        if self.has_paper_sizes:
            sizes = {"classifier": PaperSizes.sizes[dataset.name]}
            entry = replace(self, settings={**self.settings, **sizes}, has_paper_sizes=False)
        figures = Oracle(entry.method, entry.settings)(dataset, seed)
        search = entry.fitted(dataset, seed).search_
        return figures | {SURPRISE: -float(search["hidden"].max())}

    def identity(self) -> Any:
        """Return the identity of the oracle and of the sizes."""
        return [super().identity(), self.has_paper_sizes]


ENTRIES: dict[str, Entry] = {
    ONE_EXPERT: HiddenVoteScores("mmlc", {"n_experts": 1}),
    "ten experts": HiddenVoteScores("mmlc"),
    "ten experts, 10 × worker rate": HiddenVoteScores("mmlc", {"worker_learning_rate": 0.01}),
    "ten experts, 100 × worker rate": HiddenVoteScores("mmlc", {"worker_learning_rate": 0.1}),
    "sizes of the paper": HiddenVoteScores("mmlc", has_paper_sizes=True),
}


def compare_with_one_expert(rows: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    r"""Say for every dataset which setting predicts hidden votes best, and by how much better than one expert.

    Parameters
    ----------
    rows : sequence of mapping
        Stored rows.

    Returns
    -------
    tuple of str
        One paragraph per dataset.

    Examples
    --------
    >>> rows = [
    ...     {"entry": entry, "data": "Text", "seed": seed, "status": "ok", "figures": {"hidden-vote loss": loss + seed / 10}}
    ...     for entry, loss in [("one expert", 2.0), ("ten experts", 1.5)] for seed in range(3)
    ... ]
    >>> print(compare_with_one_expert(rows)[0].replace(", .5", ",\n.5").replace(" (mean", "\n(mean"))
    Text: "ten experts" predicts hidden votes best,
    .500 ± .000 better than one expert
    (mean and standard error over 3 seeds): the vectors of workers matter.
    """
    losses: dict[str, dict[str, dict[int, float]]] = {}
    for row in rows:
        if row["status"] == "ok":
            by_entry = losses.setdefault(row["data"], {})
            by_entry.setdefault(row["entry"], {})[int(row["seed"])] = row["figures"][SURPRISE]
    paragraphs = []
    for data, by_entry in losses.items():
        one = by_entry.pop(ONE_EXPERT, {})
        differences = {
            entry: np.array([one[seed] - by_seed[seed] for seed in sorted(one.keys() & by_seed.keys())])
            for entry, by_seed in by_entry.items()
        }
        differences = {entry: gains for entry, gains in differences.items() if len(gains) > 1}
        if differences:
            best = max(differences, key=lambda entry: differences[entry].mean())
            paragraphs.append(_describe_gain(data, best, differences[best]))
    return tuple(paragraphs)


def _describe_gain(data: str, entry: str, gains: NDArray[np.float64]) -> str:
    """Describe the gains of a setting over one expert, one per seed."""
    mean, error = gains.mean(), gains.std(ddof=1) / np.sqrt(len(gains))
    numbers = f"{abs(mean):.3f} ± {error:.3f}".replace("0.", ".")
    direction = "better" if mean > 0 else "worse"
    verdict = (
        "the vectors of workers matter"
        if mean > SIGNIFICANT * error
        else "no setting shows that the vectors of workers matter"
    )
    return (
        f'{data}: "{entry}" predicts hidden votes best, {numbers} {direction} than one expert (mean and standard error over '
        f"{len(gains)} seeds): {verdict}."
    )


def benchmark() -> Benchmark:
    """Return the benchmark of five settings on three crowds.

    >>> len(benchmark().cells)
    45
    """
    return Benchmark(
        title="MMLC by hidden votes: one expert or several",
        references=("han2025mmlc",),
        entries=ENTRIES,
        data=crowds(SURPRISE, VECTOR_SPREAD, ACCURACY),
        notes={
            **NOTES,
            ONE_EXPERT: "All workers have the same vector, so that the model knows nothing of workers.",
            "ten experts": "The default.",
        },
        findings=compare_with_one_expert,
        seeds=3,
        remarks=(
            "Mean −log P of a fifth of the votes, hidden from training, at the best epoch: a model that knows how workers "
            "differ predicts their votes better. *Spread of v* is the largest standard deviation of an expert's share over the "
            "workers. The accuracy of the oracle worker on the labelled tasks is for information and chooses nothing. The same "
            "votes are hidden from all settings of a seed. As the best of four settings is compared with one expert, a gain "
            "counts from two standard errors on.",
        ),
        time_limit=1800,
    )
