"""What a benchmark is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from wisecrowd.errors import UsageError
from wisecrowd.io.datasets import Dataset

#: Answers for a dataset with a seed: a prediction to be scored (a fitted method, a posterior, labels; whatever
#: `wisecrowd.evaluate.metrics` takes), or a mapping of figures when it scores itself. `WisecrowdError` declines, with the reason.
Entry: TypeAlias = Callable[[Dataset, int], Any]

#: (entry, data, figure) -> what the paper reports.
Published: TypeAlias = Mapping[tuple[str, str, str], float]


class Data(Protocol):
    """Where a column's data come from; see `wisecrowd.bench.data` for those there are.

    >>> from wisecrowd.bench.data import Stored
    >>> Stored("labelme", "distinct").figures
    ('accuracy',)
    """

    @property
    def figures(self) -> tuple[str, ...]:
        """The figures to show, the one that counts first."""

    @property
    def is_random(self) -> bool:
        """Whether every seed gives other data."""

    def load(self, seed: int) -> Dataset:
        """The votes and the truth."""

    def score(self, dataset: Dataset, prediction: Any) -> dict[str, float]:
        """Figures of a prediction, by name."""

    def absence(self) -> str | None:
        """Why the data cannot be had on this machine, or None when they can."""

    def identity(self) -> Any:
        """What tells these data from others, ready for JSON."""

    def size(self) -> int:
        """About how many labels there are: how long an entry will take, as far as anybody knows beforehand."""


class Figure(NamedTuple):
    """How a figure is shown.

    >>> Figure("acc.").digits
    3
    """

    title: str
    digits: int = 3
    more_is_better: bool = True


#: Figures that a table may show, by the name that `wisecrowd.evaluate.metrics.summary` and `Data.score` give them.
FIGURES = {
    "accuracy": Figure("accuracy"),
    "balanced_accuracy": Figure("balanced accuracy"),
    "f1": Figure("macro F1"),
    "positive_f1": Figure("F1"),
    "log_loss": Figure("log-loss", more_is_better=False),
    "brier": Figure("Brier", more_is_better=False),
    "calibration_error": Figure("ECE", more_is_better=False),
    "hidden log-loss": Figure("hidden log-loss", more_is_better=False),
    **{
        f"{name} {figure}": Figure(f"{name} {figure}", more_is_better=False)
        for name in ("MV", "DS")
        for figure in ("ECE", "ECE, weight 1")
    },
    "mae": Figure("MAE", digits=2, more_is_better=False),
    "rmse": Figure("RMSE", digits=2, more_is_better=False),
    "I-JS": Figure("I-JS", more_is_better=False),
    "G-JS": Figure("G-JS", more_is_better=False),
    "change": Figure("change, points", digits=2),
    "density": Figure("density"),
    "epochs": Figure("epochs", digits=0, more_is_better=False),
    "hidden-vote loss": Figure("hidden-vote loss", more_is_better=False),
    "tasks": Figure("tasks", digits=0),
    "ms per pass": Figure("ms per pass", digits=1, more_is_better=False),
    "MB": Figure("MB", digits=1, more_is_better=False),
    "seconds": Figure("seconds", digits=0, more_is_better=False),
}


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """A table: entries answer for data, and what comes out stands beside what a paper reports.

    ``notes`` explain, as footnotes, an entry, data, or one answer: their key is a title or (entry, data).

    >>> from wisecrowd.bench.data import Simulated
    >>> from wisecrowd.bench.entries import Aggregate
    >>> small = Benchmark(
    ...     title="Two methods on a simulated crowd",
    ...     entries={"MV": Aggregate("majority-vote"), "DS": Aggregate("dawid-skene", {"max_iter": 50})},
    ...     data={"easy": Simulated({"n_tasks": 100})},
    ... )
    >>> small.cells
    [('MV', 'easy', 0), ('DS', 'easy', 0)]
    """

    title: str
    entries: Mapping[str, Entry]
    data: Mapping[str, Data]
    name: str = ""
    references: tuple[str, ...] = ()
    published: Published = field(default_factory=lambda: MappingProxyType({}))
    notes: Mapping[str | tuple[str, str], str] = field(default_factory=lambda: MappingProxyType({}))
    #: Data on which the paper's figures are about something else than ours, as a note says: no difference is shown.
    incomparable: frozenset[str] = frozenset()
    #: What to know before reading the table, one paragraph each.
    remarks: tuple[str, ...] = ()
    #: What follows from everything that has been run, a paragraph each: tests, for one. Shown below the table.
    findings: Callable[[Sequence[Mapping[str, Any]]], tuple[str, ...]] | None = None
    #: How often an entry that uses a seed answers for data; others answer once.
    seeds: int = 1
    #: Whether entries without a published figure for data stay out of its column.
    published_only: bool = False
    #: What the rows of the table are; the other side makes the columns.
    rows: Literal["entries", "data"] = "entries"
    #: Whether entries are ranked against each other.
    ranked: bool = False
    #: Whether the data are those that happen to be on this machine, so that results on others count as well.
    data_at_hand: bool = False
    #: Seconds after which an entry is stopped.
    time_limit: float | None = None

    @property
    def cells(self) -> list[tuple[str, str, int]]:
        """Everything to be run: (entry, data, seed)."""
        return [
            (entry, data, seed)
            for data, source in self.data.items()
            for entry, answer in self.entries.items()
            if not self.published_only or any((entry, data, figure) in self.published for figure in source.figures)
            for seed in range(self.seeds if source.is_random or getattr(answer, "is_random", True) else 1)
        ]


def published_table(text: str, figure: str = "accuracy") -> dict[tuple[str, str, str], float]:
    """Published figures from a table as it could be printed: titles left and above, a dot where there is no figure.

    A column is called after its data, or ``data:figure`` for another figure than the given one. Titles have no blanks.

    >>> published_table('''
    ...          birds  rents:mae
    ...    MV     0.76          .
    ...    mean      .       12.0
    ... ''')
    {('MV', 'birds', 'accuracy'): 0.76, ('mean', 'rents', 'mae'): 12.0}
    """
    header, *lines = (line.split() for line in text.strip("\n").splitlines() if line.strip())
    columns = [(name.partition(":")[0], name.partition(":")[2] or figure) for name in header]
    figures: dict[tuple[str, str, str], float] = {}
    for entry, *cells in lines:
        if len(cells) != len(columns):
            raise UsageError(
                f"the row {entry!r} has {len(cells)} figures for {len(columns)} columns; put dots in the gaps"
            )
        figures |= {
            (entry, *column): float(cell) for column, cell in zip(columns, cells, strict=True) if cell != "."
        }  # fmt: skip
    return figures
