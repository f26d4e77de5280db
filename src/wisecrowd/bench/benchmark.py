"""Definition of a benchmark: entries, data sources, figures and published values.

An *entry* is what is compared: a method with its settings. A *figure* is a number that is measured for an entry on a dataset,
such as the accuracy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from wisecrowd.errors import UsageError
from wisecrowd.io.datasets import Dataset

#: Callable that takes a dataset and a seed. It returns a prediction that `wisecrowd.evaluate.metrics` can score (a fitted
#: method, a posterior, labels), or a mapping of figures if it scores itself. It raises `WisecrowdError` with a reason if it
#: cannot handle the dataset.
Entry: TypeAlias = Callable[[Dataset, int], Any]

#: Published value by (entry, data, figure).
Published: TypeAlias = Mapping[tuple[str, str, str], float]


class DataSource(Protocol):
    """Source of the data in one column; `wisecrowd.bench.data` has the implementations.

    Examples
    --------
    >>> from wisecrowd.bench.data import StoredDataset
    >>> StoredDataset("labelme", "distinct").figures
    ('accuracy',)
    """

    @property
    def figures(self) -> tuple[str, ...]:
        """Names of the figures to show; the first one ranks the entries."""

    @property
    def is_random(self) -> bool:
        """True if the data depend on the seed."""

    def load(self, seed: int) -> Dataset:
        """Load the votes and the truth.

        Parameters
        ----------
        seed : int
            Seed of the data, if they are random.

        Returns
        -------
        Dataset
        """

    def score(self, dataset: Dataset, prediction: Any) -> dict[str, float]:
        """Score a prediction.

        Parameters
        ----------
        dataset : Dataset
            Dataset that `load` returned.
        prediction : object
            Prediction of an entry.

        Returns
        -------
        dict of str to float
            Figures by name.
        """

    def absence(self) -> str | None:
        """Return the reason why the data are not available on this machine, or None if they are."""

    def identity(self) -> Any:
        """Return a JSON-compatible value that identifies the data: different data have different values."""

    def size(self) -> int:
        """Return the approximate number of votes; cells with more votes run first."""


class Figure(NamedTuple):
    """Display format of a figure, a number that is measured for an entry on a dataset.

    Attributes
    ----------
    title : str
        Column title.
    digits : int
        Number of decimals.
    more_is_better : bool
        True if larger values are better.
    is_cost : bool
        True for time and memory, which differ from run to run.

    Examples
    --------
    >>> Figure("acc.").digits
    3
    """

    title: str
    digits: int = 3
    more_is_better: bool = True
    is_cost: bool = False


#: Display formats by the names that `wisecrowd.evaluate.metrics.summary` and `DataSource.score` use.
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
    **{name: Figure(name, more_is_better=False) for name in ("NLL", "NLL, calibrated", "ECE", "ECE, calibrated")},
    **{
        f"{tasks} {figure}": Figure(f"{tasks} {figure}", more_is_better=False)
        for tasks in ("test", "training")
        for figure in ("NLL", "ECE")
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
    "ms per pass": Figure("ms per pass", digits=1, more_is_better=False, is_cost=True),
    "MB": Figure("MB", digits=1, more_is_better=False, is_cost=True),
    "seconds": Figure("seconds", digits=0, more_is_better=False, is_cost=True),
    "coverage": Figure("coverage"),
    "width": Figure("width", more_is_better=False),
}


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """Table of results: entries by data, next to the published values.

    Attributes
    ----------
    title : str
        Title of the table.
    entries : mapping of str to Entry
        Callables by title.
    data : mapping of str to DataSource
        Data sources by title.
    name : str
        Name on the command line; `wisecrowd.bench.find_benchmark` sets it.
    references : tuple of str
        Citation keys of the papers with the published values.
    published : mapping of (str, str, str) to float
        Published value by (entry, data, figure).
    notes : mapping
        Footnotes. The key is the title of an entry, the title of data, or the pair (entry, data).
    incomparable : frozenset of str
        Titles of data on which the published values measure something else; no difference is shown.
    remarks : tuple of str
        Paragraphs above the table.
    findings : callable or None
        Function that takes the stored rows and returns paragraphs below the table, such as statistical tests.
    seeds : int
        Number of seeds of every cell whose entry or data are random; other cells run once.
    published_only : bool
        Run only cells with a published value.
    unpublished : frozenset of (str, str)
        Pairs (entry, data) that run although nothing is published.
    rows : {"entries", "data"}
        Side of the table that makes the rows.
    ranked : bool
        Add a leaderboard with the mean rank of every entry.
    data_at_hand : bool
        The data are those on this machine. Stored results on other data stay in the table.
    time_limit : float or None
        Seconds after which a cell is stopped.

    Examples
    --------
    >>> from wisecrowd.bench.data import SimulatedDataset
    >>> from wisecrowd.bench.entries import Aggregate
    >>> small = Benchmark(
    ...     title="Two methods on a simulated crowd",
    ...     entries={"MV": Aggregate("majority-vote"), "DS": Aggregate("dawid-skene", {"max_iter": 50})},
    ...     data={"easy": SimulatedDataset({"n_tasks": 100})},
    ... )
    >>> small.cells
    [('MV', 'easy', 0), ('DS', 'easy', 0)]
    """

    title: str
    entries: Mapping[str, Entry]
    data: Mapping[str, DataSource]
    name: str = ""
    references: tuple[str, ...] = ()
    published: Published = field(default_factory=lambda: MappingProxyType({}))
    notes: Mapping[str | tuple[str, str], str] = field(default_factory=lambda: MappingProxyType({}))
    incomparable: frozenset[str] = frozenset()
    remarks: tuple[str, ...] = ()
    findings: Callable[[Sequence[Mapping[str, Any]]], tuple[str, ...]] | None = None
    seeds: int = 1
    published_only: bool = False
    unpublished: frozenset[tuple[str, str]] = frozenset()
    rows: Literal["entries", "data"] = "entries"
    ranked: bool = False
    data_at_hand: bool = False
    time_limit: float | None = None

    @property
    def cells(self) -> list[tuple[str, str, int]]:
        """Cells to run, as (entry, data, seed). Data with an attribute ``max_seeds`` have at most so many seeds."""
        return [
            (entry, data, seed)
            for data, source in self.data.items()
            for entry, answer in self.entries.items()
            if not self.published_only
            or (entry, data) in self.unpublished
            or any((entry, data, figure) in self.published for figure in source.figures)
            for seed in range(self._count_seeds(source, answer))
        ]

    def _count_seeds(self, source: DataSource, entry: Entry) -> int:
        """Return the number of seeds of an entry on some data."""
        if not (source.is_random or getattr(entry, "is_random", True)):
            return 1
        return min(self.seeds, getattr(source, "max_seeds", self.seeds))


def parse_published_table(text: str, figure: str = "accuracy") -> dict[tuple[str, str, str], float]:
    """Parse published values from a table in plain text.

    The first line has the titles of the columns, and every other line starts with the title of an entry. A dot stands for a
    missing value. Titles contain no spaces.

    Parameters
    ----------
    text : str
        Table. A column title is the title of data, or ``data:figure`` if its figure differs from ``figure``.
    figure : str, default="accuracy"
        Figure of the columns that name none.

    Returns
    -------
    dict of (str, str, str) to float
        Value by (entry, data, figure).

    Raises
    ------
    UsageError
        If a row has more or fewer values than the table has columns.

    Examples
    --------
    >>> parse_published_table('''
    ...          birds  rents:mae
    ...    MV     0.76          .
    ...    mean      .       12.0
    ... ''')
    {('MV', 'birds', 'accuracy'): 0.76, ('mean', 'rents', 'mae'): 12.0}
    """
    header, *lines = (line.split() for line in text.strip("\n").splitlines() if line.strip())
    columns = [(name.partition(":")[0], name.partition(":")[2] or figure) for name in header]
    figures: dict[tuple[str, str, str], float] = {}
    for entry, *values in lines:
        if len(values) != len(columns):
            raise UsageError(
                f"the row {entry!r} has {len(values)} values for {len(columns)} columns; write a dot for a missing value"
            )
        figures |= {
            (entry, *column): float(value) for column, value in zip(columns, values, strict=True) if value != "."
        }  # fmt: skip
    return figures
