"""The groups that the Crowd Mixture Model finds on LabelMe, beside table 4 of Mena and Ñanculef (CIARP 2019)."""

from __future__ import annotations

from typing import Any, cast

from wisecrowd.bench.benchmark import Benchmark
from wisecrowd.bench.papers._mena import LabelMe, Learn
from wisecrowd.bench.papers.mena2020 import ENTRIES
from wisecrowd.io.datasets import Dataset

FIGURES = ("weight", "similarity", "entropy")


class Groups:
    """The table of groups of a mixture, the heaviest first, as figures.

    >>> Groups("CMM").figures[:3]
    ('weight 1', 'similarity 1', 'entropy 1')
    """

    is_random = True
    figures = tuple(f"{figure} {number}" for number in (1, 2, 3) for figure in FIGURES)

    def __init__(self, entry: str) -> None:
        self.entry = entry

    def __call__(self, dataset: Dataset, seed: int) -> dict[str, float]:
        """Fit, and read the table."""
        fitted: Any = cast(Learn, ENTRIES[self.entry]).fitted(dataset, seed)
        columns = fitted.groups_[["weight", "identity_similarity", "entropy"]].to_numpy()
        return dict(zip(self.figures, columns.ravel().tolist(), strict=True))

    def identity(self) -> object:
        """That of the entry whose groups these are."""
        return ["groups", cast(Learn, ENTRIES[self.entry]).identity()]


PUBLISHED = (0.99, 0.91, 0.48, 0.01, 0.02, 2.08, 0.00, 0.03, 2.08)


def benchmark() -> Benchmark:
    """Table 4.

    >>> benchmark().published["CMM", "LabelMe", "weight 1"]
    0.99
    """
    return Benchmark(
        title="Mena and Ñanculef 2019, table 4: groups on LabelMe",
        references=("mena2019revisiting",),
        entries={name: Groups(name) for name in ("CMM", "CMM, logistic", "CMM, tied")},
        data={"LabelMe": LabelMe("labelme", "distinct", Groups.figures)},
        published={("CMM", "LabelMe", name): value for name, value in zip(Groups.figures, PUBLISHED, strict=True)},
        notes={
            "CMM": "Votes that are grouped one by one cannot tell groups apart: all but one are empty, and have the shape "
            "that smoothing gives to nothing, uniform, of entropy log 8 = 2.08. Similarity is one less the Jensen-Shannon "
            "divergence from the identity; that of a uniform matrix is .28. The paper's .02 and .03 stand for −.016 and −.027 "
            "in the results kept beside the authors' program, which no such divergence can give. Our heaviest group is closer to "
            "the identity than theirs, and than the matrix that the truth gives (similarity .850, entropy .725).",
            "CMM, tied": "One group for all votes of a worker, one class for all votes on a task (tied='worker').",
        },
        rows="data",
        seeds=5,
        remarks=(
            "Weight, similarity to the identity, and entropy in nats of each of three groups, the heaviest first.",
        ),
    )
