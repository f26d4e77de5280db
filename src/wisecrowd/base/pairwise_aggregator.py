"""The family of aggregators of comparisons.

An item has a score instead of a posterior. Scores are centred: their mean is zero.
"""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.data.answer_type import AnswerType
from wisecrowd.data.arrow_tables import DataFrameLike
from wisecrowd.data.comparisons import OUTCOMES, Comparisons
from wisecrowd.data.types import FeaturesLike
from wisecrowd.data.vocabulary import match_id_type
from wisecrowd.errors import DataWarning, InputError, NoPosterior, UsageError, preview
from wisecrowd.utils.text import count_noun

Array = NDArray[np.float64]

#: Items from which the covariance of the scores is not computed: it has items x items cells.
MAX_COVARIANCE_ITEMS = 5_000

LEVEL_HELP = "Level of the intervals of scores and ranks."


def as_comparisons(votes: Comparisons | DataFrameLike | Sequence[tuple[Any, ...]], *, workers: bool) -> Comparisons:
    """Convert votes to comparisons.

    Parameters
    ----------
    votes : Comparisons, table, or sequence of (worker, left, right, label)
        Comparisons. A table has the columns left, right and label, and optionally worker, task and weight.
    workers : bool
        Whether worker ids are needed.

    Returns
    -------
    Comparisons

    Raises
    ------
    InputError
        If the votes are no comparisons, or have no worker ids.

    Examples
    --------
    >>> as_comparisons([("ann", "tea", "milk", "tea")], workers=True).n_items
    2
    """
    if isinstance(votes, Comparisons):
        comparisons = votes
    elif isinstance(votes, list | tuple):
        comparisons = Comparisons.from_tuples(votes)
    elif hasattr(votes, "answer_type") or isinstance(votes, str):
        raise InputError(
            f"this method takes comparisons of two items; got {type(votes).__name__}. Build them with "
            "Comparisons.from_frame(df), or read them with wisecrowd.read_comparisons(path)"
        )
    else:
        names = list(votes.keys()) if isinstance(votes, dict) else list(votes.columns)  # type: ignore[union-attr]  # a table
        worker, task, weight = (name if name in names else None for name in ("worker", "task", "weight"))
        comparisons = Comparisons.from_frame(votes, worker=worker, task=task, weight=weight)  # type: ignore[arg-type]  # a table
    if comparisons.n_votes == 0:
        raise InputError("there are no comparisons; expected at least one row with left, right and label")
    if workers and not comparisons.has_workers:
        raise InputError(
            "this method rates workers, but these comparisons have no worker ids; add a column 'worker', or use bradley-terry, "
            "which does not need it"
        )
    return comparisons


@method_class
class PairwiseAggregator(Aggregator):
    """Base class of aggregators that score items by comparisons.

    A subclass implements `_score_items`.
    """

    answer_types: ClassVar[tuple[AnswerType, ...]] = ("pairwise",)
    needs_workers: ClassVar[bool] = False

    item_index_: pd.Index = fitted(help="Item ids, in the order of the scores.")
    score_: Array = fitted(help="Score of each item; the mean is zero.", shape=("n_items",), finite=True)
    covariance_: Array | None = fitted(
        help="Covariance of the scores; None if it is unknown.", shape=("n_items", "n_items")
    )
    item_counts_: pd.DataFrame = fitted(
        help="Wins, losses, ties and component of each item.", shape=("n_items", "n_columns")
    )
    n_votes_: int = fitted(help="Number of comparisons.")

    level: float = parameter(default=0.9, help=LEVEL_HELP)

    def fit(  # type: ignore[override]  # comparisons instead of votes on tasks
        self,
        crowd: Comparisons | DataFrameLike | Sequence[tuple[Any, ...]],
        X: FeaturesLike | None = None,
        *,
        truth: Any = None,
        start: Any = None,
    ) -> Self:
        """Score the items.

        Parameters
        ----------
        crowd : Comparisons, table, or list of (worker, left, right, label)
            Comparisons.
        X : DataFrame, optional
            Covariates of the items, for methods that use them: indexed by item, or by task and item.
        truth : None
            Not used: comparisons have no gold.
        start : None
            Not used.

        Returns
        -------
        self
        """
        start_time = time.perf_counter()
        self._check_parameter_types()
        if not 0 < self.level < 1:
            raise UsageError(f"level must lie between 0 and 1; got {self.level}")
        if truth is not None or start is not None:
            raise UsageError(f"{type(self).__name__} takes neither truth nor start; leave them out")
        if X is not None and not self.uses_features:
            raise UsageError(f"{type(self).__name__} does not use features; leave X out")
        comparisons = as_comparisons(crowd, workers=self.needs_workers)
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        component = comparisons.find_components()
        if component.max(initial=0) > 0:
            _warn_disconnected(comparisons, component)
        self.worker_index_, self.n_votes_ = comparisons.workers, comparisons.n_votes
        self.item_index_ = comparisons.items
        self.item_counts_ = comparisons.item_counts.assign(component=component)
        score, self.covariance_ = self._score_items(comparisons, X)
        self.score_ = score - score.mean()
        self._finish_fit(start_time)
        return self

    def _fit(self, crowd: Any, gold: Any, *, X: Any, start: Any) -> None:
        raise UsageError(f"{type(self).__name__} is fitted with fit(comparisons)")

    @abstractmethod
    def _score_items(self, comparisons: Comparisons, X: Any) -> tuple[Array, Array | None]:
        """Return the scores of the items and their covariance (None if it is unknown)."""

    @abstractmethod
    def _outcome_probs(self, comparisons: Comparisons, item: NDArray[np.int64]) -> Array:
        """Return the probabilities of left, right and tie of every comparison.

        ``item`` maps the item codes of ``comparisons`` to positions in ``item_index_``.
        """

    # ------------------------------------------------------------------ results

    @property
    def scores_(self) -> pd.DataFrame:
        """Table of items, the best first: score, standard error, interval, rank, rank interval, wins, losses, ties, component.

        The interval of a rank counts the items that are surely better and surely worse: differences of scores are tested at
        the level of the intervals, with Bonferroni's correction for the number of items.
        """
        score = self._check_fitted("score_")
        order = np.lexsort((np.arange(len(score)), -score))
        table = pd.DataFrame({"score": score}, index=self.item_index_.rename("item"))
        if self.covariance_ is not None:
            from scipy.special import ndtri

            error = np.sqrt(np.maximum(np.diagonal(self.covariance_), 0))
            reach = ndtri((1 + self.level) / 2)
            table["standard_error"] = error
            table["lower"], table["upper"] = score - reach * error, score + reach * error
        rank = np.empty(len(score), dtype=np.int64)
        rank[order] = np.arange(1, len(score) + 1)
        table["rank"] = rank
        if self.covariance_ is not None:
            table["rank_low"], table["rank_high"] = self._rank_intervals()
        return pd.concat([table, self.item_counts_], axis=1).iloc[order]

    def _rank_intervals(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the lowest and the highest rank of every item, in blocks of items to bound the memory."""
        from scipy.special import ndtri

        assert self.covariance_ is not None
        score, covariance = self.score_, self.covariance_
        n = len(score)
        reach = ndtri(1 - (1 - self.level) / (2 * max(n - 1, 1)))
        variance = np.diagonal(covariance)
        low, high = np.ones(n, dtype=np.int64), np.full(n, n, dtype=np.int64)
        for begin in range(0, n, 512):
            part = slice(begin, begin + 512)
            spread = np.sqrt(np.maximum(variance[part, None] + variance[None] - 2 * covariance[part], 0))
            gap = score[None] - score[part, None]
            low[part] += (gap > reach * spread + 1e-12).sum(axis=1)
            high[part] -= (-gap > reach * spread + 1e-12).sum(axis=1)
        return low, high

    def win_probability(self, item: Any, other: Any) -> float:
        """Return the probability that an item wins against another, ties split, judged by an average worker.

        Parameters
        ----------
        item, other : object
            Item ids.

        Returns
        -------
        float

        Raises
        ------
        InputError
            If an item is unknown.

        Examples
        --------
        >>> from wisecrowd import BradleyTerry
        >>> votes = [(worker, "tea", "milk", "tea") for worker in "abc"] + [("d", "tea", "milk", "milk")]
        >>> round(BradleyTerry(ridge=0).fit(votes).win_probability("tea", "milk"), 3)
        0.75
        """
        self._check_fitted("score_")
        code = self._locate_items(pd.Index([item, other]))
        pair = Comparisons([0, 1], [1, 0], [0, 0], items=pd.Index([0, 1]))
        probs = self._outcome_probs(pair, code)  # both orders, so that no side has an advantage
        left, right, tie = probs.T
        return float((left[0] + right[1] + tie[0] / 2 + tie[1] / 2) / 2)

    def predict_proba(self, comparisons: Comparisons | DataFrameLike | Sequence[tuple[Any, ...]]) -> pd.DataFrame:
        """Predict the outcomes of comparisons; their labels are not used.

        Parameters
        ----------
        comparisons : Comparisons, table, or list of (worker, left, right, label)
            Comparisons of known items. Workers that were not in the fit count as average workers.

        Returns
        -------
        DataFrame of shape (n_votes, 3)
            Probabilities of left, right and tie, in the order of ``comparisons``.

        Raises
        ------
        InputError
            If an item was not in the fit.
        """
        self._check_fitted("score_")
        votes = as_comparisons(comparisons, workers=False)
        return pd.DataFrame(self._outcome_probs(votes, self._locate_items(votes.items)), columns=list(OUTCOMES))

    def heldout_log_loss(self, comparisons: Comparisons | DataFrameLike | Sequence[tuple[Any, ...]]) -> float:
        """Return the mean negative log-probability of the outcomes of held-out comparisons.

        Parameters
        ----------
        comparisons : Comparisons, table, or list of (worker, left, right, label)
            Comparisons that were not in the fit.

        Returns
        -------
        float
            In nats per comparison; lower is better.
        """
        votes = as_comparisons(comparisons, workers=False)
        return float(-(votes.vote_weight @ self.heldout_log_probs(votes)) / votes.vote_weight.sum())

    def heldout_log_probs(self, comparisons: Comparisons) -> Array:
        """Return the log-probability of the outcome of every held-out comparison.

        Parameters
        ----------
        comparisons : Comparisons
            Comparisons that were not in the fit.

        Returns
        -------
        ndarray of shape (n_votes,)
        """
        probs = self.predict_proba(comparisons).to_numpy()[np.arange(comparisons.n_votes), comparisons.outcome]
        return np.log(np.maximum(probs, 1e-15))

    def _locate_items(self, items: pd.Index) -> NDArray[np.int64]:
        position = self.item_index_.get_indexer(match_id_type(items, self.item_index_))
        if (position < 0).any():
            raise InputError(
                f"the method was not fitted to {preview(items[position < 0])}; it knows {preview(self.item_index_)}"
            )
        return position.astype(np.int64)

    @property
    def labels_(self) -> pd.Series:
        """Rank of every item, the best first."""
        return self.scores_["rank"]

    @property
    def workers_(self) -> pd.DataFrame:
        """Table of workers: number of comparisons, and the parameters of the method."""
        self._check_fitted("score_")
        if self.worker_index_ is None:
            raise UsageError("these comparisons have no worker ids, so there are no results by worker")
        return pd.DataFrame(self._worker_columns(), index=self.worker_index_.rename("worker"))

    def _worker_columns(self) -> dict[str, NDArray[Any]]:
        raise UsageError(
            f"{type(self).__name__} does not rate workers; use crowd-bradley-terry or judge-aware-bradley-terry"
        )

    def _repr_html_(self) -> str:
        from wisecrowd.utils.notebook import render_html

        return render_html(repr(self), self.scores_ if "score_" in vars(self) else None)

    def _check_fitted(self, attribute: str) -> NDArray[Any]:
        if attribute in ("posterior_", "tally_") and "score_" in vars(self):
            raise self._make_posterior_error()
        return super()._check_fitted(attribute)

    def _make_posterior_error(self) -> NoPosterior:
        return NoPosterior(
            f"{type(self).__name__} scored items, so there is no posterior and no confusion matrix; use scores_ and workers_"
        )

    if not TYPE_CHECKING:  # a type checker would accept any attribute

        def __getattr__(self, name: str) -> Any:
            if name in ("posterior_", "proba_", "confusion_", "tally_") and "score_" in vars(self):
                raise self._make_posterior_error()
            return super().__getattr__(name)


def centre_covariance(covariance: Array) -> Array:
    """Return the covariance of scores minus their mean.

    Parameters
    ----------
    covariance : ndarray of shape (n_items, n_items)
        Covariance of the scores.

    Returns
    -------
    ndarray of shape (n_items, n_items)
    """
    centred = covariance - covariance.mean(axis=0) - covariance.mean(axis=1)[:, None] + covariance.mean()
    return (centred + centred.T) / 2


def _warn_disconnected(comparisons: Comparisons, component: NDArray[np.int32]) -> None:
    """Warn that scores of different components cannot be compared."""
    n_components = int(component.max()) + 1
    one, other = (comparisons.items[component == number][0] for number in (1, 0))
    warnings.warn(
        f"the items form {count_noun(n_components, 'group')} without comparisons between them, so that their scores cannot be "
        f"compared; for example {preview([one])} is not connected with {preview([other])}. Collect comparisons between the "
        "groups, or rank each by itself (column component)",
        DataWarning,
        stacklevel=4,
    )
