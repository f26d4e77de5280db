"""The family of aggregators of texts. A task has one text instead of a posterior over classes."""

from __future__ import annotations

import time
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.base.answer_crowds import as_answer_crowd
from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.data.answer_type import AnswerType
from wisecrowd.data.arrow_tables import DataFrameLike
from wisecrowd.data.text_vectors import TextVectors, TextVectorsLike, look_up_vectors
from wisecrowd.data.texts import Normalisation, TextCrowd, TextUnit, TokenCodes, tokenize
from wisecrowd.errors import NoPosterior, UsageError

Array = NDArray[np.float64]


class InferredTexts(NamedTuple):
    """Texts that a method inferred.

    Parameters
    ----------
    texts : list of str
        Text of every task.
    confidence : ndarray of shape (n_tasks,)
        Probability that the whole text is right.
    token_confidence : ndarray of shape (n_tasks,)
        Expected share of right words or characters.
    accuracy : ndarray of shape (n_workers,)
        Expected share of right words or characters of each worker.
    n_iter : int
        Number of iterations.
    converged : bool
        Whether the iteration converged.
    """

    texts: list[str]
    confidence: Array
    token_confidence: Array
    accuracy: Array
    n_iter: int
    converged: bool


def as_texts(votes: TextCrowd | DataFrameLike) -> TextCrowd:
    """Convert votes to a crowd of texts.

    Parameters
    ----------
    votes : TextCrowd or table
        Votes. A table has the columns task, worker and text.

    Returns
    -------
    TextCrowd

    Raises
    ------
    InputError
        If the votes are no texts, or empty.

    Examples
    --------
    >>> as_texts({"task": ["t"], "worker": ["ann"], "text": ["a cat"]}).n_votes
    1
    """
    return as_answer_crowd(votes, TextCrowd, "texts", columns="task, worker and text", constructors="from_frame(df)")


@method_class
class TextAggregator(Aggregator):
    """Base class of aggregators that infer the text of a task.

    A subclass implements `_infer_texts`.
    """

    answer_types: ClassVar[tuple[AnswerType, ...]] = ("texts",)
    uses_vectors: ClassVar[bool] = False

    answer_texts_: pd.Index = fitted(help="Inferred texts, in the order of tasks.")
    confidence_: Array = fitted(
        help="Probability that the whole text of a task is right, after normalisation.", shape=("n_tasks",), finite=True
    )
    token_confidence_: Array = fitted(
        help="Expected share of right words or characters of a task.", shape=("n_tasks",), finite=True
    )
    accuracy_: Array = fitted(help="Expected share of right words or characters of each worker.", shape=("n_workers",))
    n_votes_: int = fitted(help="Number of texts.")
    votes_per_task_: NDArray[np.int64] = fitted(help="Number of texts of each task.", shape=("n_tasks",))
    votes_per_worker_: NDArray[np.int64] = fitted(help="Number of texts of each worker.", shape=("n_workers",))
    n_iter_: int = fitted(help="Number of iterations.")
    converged_: bool = fitted(help="Whether the iteration converged.")

    normalisation: Normalisation = parameter(
        default="words",
        help="Compare texts without punctuation and case ('words'), without case ('case'), or as they are ('none').",
    )
    unit: TextUnit = parameter(
        default="words", help="Compare words, or characters for languages that do not separate words."
    )

    def fit(  # type: ignore[override]  # texts instead of votes on classes
        self,
        crowd: TextCrowd | DataFrameLike,
        X: TextVectorsLike | None = None,
        *,
        truth: Any = None,
        start: Any = None,
    ) -> Self:
        """Infer the text of every task.

        Parameters
        ----------
        crowd : TextCrowd or table
            Votes.
        X : DataFrame or callable, default=None
            Vectors (embeddings) of the texts, for methods that use them: a table with one row of numbers per distinct text and
            the texts as its index, or a function that takes a list of distinct texts and returns one vector each.
        truth : None
            Not used.
        start : None
            Not used.

        Returns
        -------
        self
        """
        start_time = time.perf_counter()
        self._check_parameter_types()
        if truth is not None or start is not None or (X is not None and not self.uses_vectors):
            inputs, refused = ("votes and vectors", "") if self.uses_vectors else ("votes", "X, ")
            raise UsageError(f"{type(self).__name__} takes {inputs} only; leave {refused}truth and start out")
        votes = as_texts(crowd)
        tokens = tokenize(votes.text, normalisation=self.normalisation, unit=self.unit)
        vectors = None if X is None else look_up_vectors(votes.text, X)
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        self.task_index_, self.worker_index_ = votes.tasks, votes.workers
        self.n_votes_, self.votes_per_task_, self.votes_per_worker_ = (
            votes.n_votes, votes.votes_per_task, votes.votes_per_worker,
        )  # fmt: skip
        inference = self._infer_texts(votes, tokens, vectors)
        self.answer_texts_ = pd.Index(inference.texts, dtype=object)
        self.confidence_, self.token_confidence_ = inference.confidence, inference.token_confidence
        self.accuracy_, self.n_iter_, self.converged_ = inference.accuracy, inference.n_iter, inference.converged
        self._finish_fit(start_time)
        return self

    def _fit(self, crowd: Any, gold: Any, *, X: Any, start: Any) -> None:
        raise UsageError(f"{type(self).__name__} is fitted with fit(texts)")

    @abstractmethod
    def _infer_texts(self, crowd: TextCrowd, tokens: TokenCodes, vectors: TextVectors | None) -> InferredTexts:
        """Return the texts of all tasks and the accuracy of workers."""

    @property
    def texts_(self) -> pd.Series:
        """Text of every task, as a Series indexed by task."""
        self._check_fitted("confidence_")
        return pd.Series(
            self.answer_texts_.to_numpy(), index=self.task_index_.rename("task"), name="text", dtype=object
        )

    @property
    def labels_(self) -> pd.Series:
        """Text of every task; the same as ``texts_``."""
        return self.texts_

    @property
    def tasks_(self) -> pd.DataFrame:
        """Text, confidence of the whole text and of its words, and number of votes of every task."""
        self._check_fitted("confidence_")
        columns = {
            "text": self.answer_texts_.to_numpy(),
            "confidence": self.confidence_,
            "token_confidence": self.token_confidence_,
            "n_votes": self.votes_per_task_,
        }
        return pd.DataFrame(columns, index=self.task_index_.rename("task"))

    @property
    def workers_(self) -> pd.DataFrame:
        """Table of workers: number of texts, and expected share of right words or characters."""
        self._check_fitted("confidence_")
        assert self.worker_index_ is not None
        columns = {"n_votes": self.votes_per_worker_, "accuracy": self.accuracy_}
        return pd.DataFrame(columns, index=self.worker_index_.rename("worker"))

    def _repr_html_(self) -> str:
        from wisecrowd.utils.notebook import render_html

        return render_html(repr(self), self.tasks_ if "confidence_" in vars(self) else None)

    def _check_fitted(self, attribute: str) -> NDArray[Any]:
        if attribute in ("posterior_", "tally_") and "confidence_" in vars(self):
            raise self._make_posterior_error()
        return super()._check_fitted(attribute)

    def _make_posterior_error(self) -> NoPosterior:
        return NoPosterior(
            f"{type(self).__name__} inferred texts, so there is no posterior over classes; use texts_, tasks_ and workers_"
        )

    if not TYPE_CHECKING:  # a type checker would accept any attribute

        def __getattr__(self, name: str) -> Any:
            if name in ("posterior_", "confusion_", "tally_", "proba_") and "confidence_" in vars(self):
                raise self._make_posterior_error()
            return super().__getattr__(name)
