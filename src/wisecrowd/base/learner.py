"""Learners: classifiers that are trained on votes."""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.fields import (
    N_VOTES_HELP,
    PAIR_LABEL_HELP,
    PAIR_WORKER_HELP,
    POSTERIOR_HELP,
    TALLY_HELP,
    fitted,
    method_class,
    parameter,
)
from wisecrowd.base.method import Method
from wisecrowd.base.sharpness import estimate_sharpness, safe_log, sharpen
from wisecrowd.data.alignment import (
    align_feature_rows,
    align_truth,
    as_float_features,
    as_sparse_features,
    find_invalid_features,
    is_sparse,
    order_by_task,
)
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.feature_profile import FeatureProfile
from wisecrowd.data.pairs import Pairs
from wisecrowd.data.types import CrowdLike, FeaturesLike, TruthLike
from wisecrowd.data.vocabulary import locate_ids
from wisecrowd.encoders.feature_encoder import FeatureEncoder
from wisecrowd.encoders.table_encoder import TableEncoder
from wisecrowd.errors import DataWarning, InputError, UsageError, ignore_fit_warnings, preview
from wisecrowd.utils.slices import slice_rows
from wisecrowd.utils.text import count_noun

if TYPE_CHECKING:
    from sklearn.utils import Tags

#: Smallest number of tasks with votes with which `Learner.predict_proba` is calibrated; fewer do not determine the exponent.
MIN_CALIBRATION_TASKS = 50
#: Standard deviation of the logarithm of the exponent in its prior, so that few votes change probabilities little.
CALIBRATION_SCALE = 1.0
#: Pseudo-votes in every cell of the crowd's confusion matrix; the row of a class without votes becomes uniform.
CROWD_PSEUDO_VOTES = 1e-3


@method_class
class Learner(Method):
    """Base class of classifiers that are trained on votes: scikit-learn classifiers whose ``y`` is a `Crowd`.

    ``fit(X, crowd)`` trains a classifier on features and infers the truth of the training tasks as an aggregator does.
    ``predict`` and ``predict_proba`` classify new tasks by their features.

    With ``calibration=0.2``, the learner is fitted a second time without the votes on a fifth of the tasks. One exponent of its
    class probabilities is then chosen so that these votes are most probable, given the confusion matrices of their workers, and
    ``predict_proba`` applies it. No truth is needed.

    A table may have strings, dates and missing values; `wisecrowd.encoders.table_encoder.TableEncoder` turns them into
    numbers and is saved with the learner. A sparse matrix stays sparse in `Raykar`, `TwoStage` and `CrowdLab`, if their
    classifier is logistic regression or one of scikit-learn.

    Examples
    --------
    >>> from wisecrowd import Raykar
    >>> crowd = Crowd.from_triples([(task, worker, "ab"[task % 2]) for task in range(8) for worker in range(3)])
    >>> X = np.array([[float(task % 2)] for task in range(8)])
    >>> Raykar().fit(X, crowd).predict([[0.0], [1.0]]).tolist()
    ['a', 'b']
    """

    without_workers: ClassVar[str] = "cmm"

    calibration: float = parameter(
        default=0.0,
        help="Share of tasks whose votes are held out in a second fit to calibrate ``predict_proba``; 0 does not calibrate. "
        "Crowds of fewer than 50 tasks are not calibrated.",
    )

    n_votes_: int = fitted(help=N_VOTES_HELP)
    posterior_: NDArray[Any] = fitted(help=POSTERIOR_HELP, shape=("n_tasks", "n_classes"), finite=True)
    pair_worker_: NDArray[np.int32] = fitted(help=PAIR_WORKER_HELP, shape=("n_pairs",), codes="n_workers")
    pair_label_: NDArray[np.int32] = fitted(help=PAIR_LABEL_HELP, shape=("n_pairs",), codes="n_classes")
    tally_: NDArray[Any] = fitted(help=TALLY_HELP, shape=("n_pairs", "n_classes"), finite=True)
    feature_shape_: list[int] = fitted(help="Shape of the features of one task.")
    feature_names_: list[str] | None = fitted(help="Names of the features, or None if they have no names.")
    feature_encoder_: FeatureEncoder | None = fitted(
        help="Encoder of a table with strings, dates or missing values, of texts or of images; None for numbers."
    )
    feature_profile_: FeatureProfile | None = fitted(
        help="Distributions and digests of the training features, with which ``predict`` recognises features in another order or "
        "unit; None for sparse features."
    )
    prediction_sharpness_: float = fitted(
        help="Exponent by which ``predict_proba`` is calibrated on held-out votes; 1 without calibration."
    )

    # ------------------------------------------------------------------ fitting

    def fit(self, X: FeaturesLike, crowd: CrowdLike, *, truth: TruthLike | None = None) -> Self:
        """Train the classifier on features and votes.

        Parameters
        ----------
        X : DataFrame, array of shape (n_tasks, ...) or sparse matrix
            Features of every task: a table indexed by task id, or an array in the order of the tasks.
        crowd : Crowd, table, or list of (task, worker, label)
            Votes.
        truth : Series, mapping, DataFrame or array, optional
            Truth of gold tasks by task id.

        Returns
        -------
        self

        Raises
        ------
        UsageError
            If the arguments are in the wrong order, or the votes are an array.
        InputError
            If the votes have fewer than two classes.
        """
        start_time = time.perf_counter()
        self._check_parameter_types()
        if not 0 <= self.calibration < 1:
            raise UsageError(
                f"calibration must be a share of tasks, from 0 to below 1, such as 0.2; got {self.calibration}"
            )
        if isinstance(X, Crowd):
            raise UsageError(f"{type(self).__name__}.fit takes the features first: fit(X, crowd)")
        if isinstance(crowd, np.ndarray):
            raise UsageError(
                f"{type(self).__name__}.fit takes a Crowd of votes as its target and got an array; to train on one label per "
                "task, use a scikit-learn classifier. (cross_val_predict converts a Crowd to an array unless its method is "
                "'predict'.)"
            )
        votes = self.validate_votes(crowd)
        if votes.n_classes < 2:
            names = preview([] if votes.classes is None else votes.classes)
            raise InputError(
                f"{type(self).__name__} needs two classes or more, and these votes have one class, {names}; if there are others, "
                "name all of them when reading the votes: classes=[...] (--classes)"
            )
        rows, encoder = self._encode_features(X, votes)
        self._start_fit(votes)
        self.feature_shape_ = list(rows.shape[1:])
        self.feature_names_, self.feature_encoder_ = _get_feature_names(X), encoder
        self.feature_profile_ = None if is_sparse(rows) or not rows.size else FeatureProfile.of(rows)
        gold = None if truth is None else self._encode_gold(truth, votes)
        self._fit(rows, votes, gold)
        self.prediction_sharpness_ = self._calibrate_predictions(rows, votes, gold)
        self._finish_fit(start_time)
        return self

    @abstractmethod
    def _fit(self, X: NDArray[np.float64], crowd: Crowd, gold: NDArray[np.int32] | None) -> None:
        """Train the classifier and call `_set_fitted`."""

    def _encode_features(self, X: FeaturesLike, votes: Crowd) -> tuple[Any, FeatureEncoder | None]:
        """Return the features of the tasks as numbers, and the encoder of a table that has anything else."""
        if is_sparse(X) and self._accepts_sparse():
            return as_sparse_features(order_by_task(X, votes)), None
        if is_sparse(X) and not isinstance(X, pd.DataFrame):
            raise InputError(
                f"{type(self).__name__} needs a dense array of features; got {type(X).__name__}. Reduce it to some hundred "
                "features, TruncatedSVD(100).fit_transform(X), or use Raykar or TwoStage with classifier='logistic'"
            )
        if isinstance(X, pd.DataFrame):
            table = order_by_task(X, votes)
            if TableEncoder.is_needed(table):
                encoder = TableEncoder().fit(table)
                return align_feature_rows(pd.DataFrame(encoder.transform(table), index=table.index), votes), encoder
        return align_feature_rows(X, votes), None

    def _accepts_sparse(self) -> bool:
        """Return whether the learner and its classifier take sparse features."""
        return False

    def attach_encoder(self, encoder: FeatureEncoder) -> Self:
        """Keep the encoder that made the training features, so that ``predict`` takes texts or images, too.

        Parameters
        ----------
        encoder : FeatureEncoder
            Encoder whose rows the learner was trained on.

        Returns
        -------
        self

        Examples
        --------
        >>> from wisecrowd import TwoStage
        >>> from wisecrowd.encoders.text_encoder import TextEncoder
        >>> texts = ["red bird", "blue bird", "red car", "blue car"] * 3
        >>> crowd = Crowd.from_triples([(task, "ann", text.split()[1]) for task, text in enumerate(texts)])
        >>> encoder = TextEncoder(n_features=3).fit(texts)
        >>> learner = TwoStage(aggregator="majority-vote").fit(encoder.transform(texts), crowd).attach_encoder(encoder)
        >>> learner.predict(["a green car"]).tolist()
        ['car']
        """
        self._check_fitted("posterior_")
        self.feature_encoder_ = encoder
        return self

    # ------------------------------------------------------------------ calibration

    def _calibrate_predictions(self, X: NDArray[np.float64], crowd: Crowd, gold: NDArray[np.int32] | None) -> float:
        """Return the exponent with which a fit to some tasks predicts the votes and gold of the others best."""
        voted = np.flatnonzero(crowd.votes_per_task > 0)
        if not self.calibration or len(voted) < MIN_CALIBRATION_TASKS:
            return 1.0
        rng = np.random.default_rng(getattr(self, "random_state", 0))
        n_heldout = max(round(self.calibration * len(voted)), 1)
        is_heldout = np.zeros(crowd.n_tasks, dtype=bool)
        is_heldout[rng.permutation(voted)[:n_heldout]] = True
        training, truth = crowd[~is_heldout].replace_fields(has_task_order=True), None  # rows of X have this order
        if gold is not None and (gold[~is_heldout] >= 0).any():
            is_known = ~is_heldout & (gold >= 0)
            truth = pd.Series(self.classes_[gold[is_known]], index=crowd.tasks[is_known])
        second = self.clone_unfitted().set_params(**self._calibration_parameters())
        with ignore_fit_warnings():
            second.fit(X[~is_heldout], training, truth=truth)
        heldout = crowd[is_heldout]
        vote_log_probs = heldout.layout.vote_matrix @ safe_log(_pair_label_probs(second, heldout.pairs))
        if gold is not None:
            is_known = gold[is_heldout] >= 0
            vote_log_probs[is_known] = safe_log(np.eye(heldout.n_classes)[gold[is_heldout][is_known]])
        return estimate_sharpness(second.predict_proba(X[is_heldout]), vote_log_probs, CALIBRATION_SCALE)

    def _calibration_parameters(self) -> dict[str, Any]:
        """Return the parameters in which the second fit differs."""
        differences: dict[str, Any] = {"calibration": 0.0, "checkpoint": None, "verbose": False}
        return {name: value for name, value in differences.items() if hasattr(self, name)}

    # ------------------------------------------------------------------ prediction

    @abstractmethod
    def _predict_proba(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return class probabilities for validated features."""

    @property
    def n_features_in_(self) -> int:
        """Number of features of a task, before strings and dates are encoded."""
        encoder = getattr(self, "feature_encoder_", None)
        if isinstance(encoder, TableEncoder):
            return len(encoder.columns)
        return int(np.prod(self.feature_shape_))

    def predict_proba(self, X: FeaturesLike) -> NDArray[np.float64]:
        """Return class probabilities of tasks by their features.

        Parameters
        ----------
        X : DataFrame or array of shape (n_tasks, ...)
            Features.

        Returns
        -------
        ndarray of shape (n_tasks, n_classes)
            Columns in the order of ``classes_``.
        """
        self._check_fitted("posterior_")
        rows = self._validate_features(X)
        if not rows.shape[0]:
            return np.empty((0, len(self.classes_)))
        self._warn_unlike_training(rows)
        return sharpen(self._predict_proba(rows), self.prediction_sharpness_)

    def predict(self, X: FeaturesLike) -> NDArray[Any]:
        """Return the most probable class of tasks by their features.

        Parameters
        ----------
        X : DataFrame or array of shape (n_tasks, ...)
            Features.

        Returns
        -------
        ndarray of shape (n_tasks,)
        """
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def describe_features(self) -> str:
        """State in words how much the features add to the votes.

        Returns
        -------
        str
            Empty if the method does not estimate it.
        """
        return ""

    def predict_worker_proba(self, X: FeaturesLike, workers: Sequence[Any] | pd.Index) -> NDArray[np.float64]:
        """Return label probabilities of workers on tasks.

        P(worker r gives label l | x) = Σ_k f_k(x) π_r[k, l]. A worker without training votes is treated as an average
        worker.

        Parameters
        ----------
        X : DataFrame or array of shape (n_tasks, ...)
            Features.
        workers : sequence
            Worker ids.

        Returns
        -------
        ndarray of shape (n_tasks, n_workers, n_classes)
        """
        return np.einsum("nk,rkl->nrl", self.predict_proba(X), self._confusion_by_id(workers))

    def score(self, X: FeaturesLike, y: Any) -> float:
        """Return the accuracy of `predict`.

        Parameters
        ----------
        X : DataFrame or array of shape (n_tasks, ...)
            Features. A table is aligned by task id with a crowd, and with a Series that contains all its ids.
        y : array-like of shape (n_tasks,) or Crowd
            True classes, or votes.

        Returns
        -------
        float
            Share of correct predictions; for votes, share of the votes that equal the prediction.
        """
        if isinstance(y, Crowd):
            predicted_code = self.classes_.get_indexer(pd.Index(self.predict(order_by_task(X, y))))
            names = pd.Index([]) if y.classes is None else y.classes
            is_equal = locate_ids(names, self.classes_)[y.label] == predicted_code[y.task]
            return float(np.average(is_equal, weights=y.weight)) if y.n_votes else float("nan")
        predicted, truth = self.predict(X), np.asarray(align_truth(y, X))
        if truth.shape != predicted.shape:
            raise InputError(f"y must have one class per row of X, shape {predicted.shape}; got shape {truth.shape}")
        return float((truth == predicted).mean())

    def restore_attribute(self, name: str, arrays: dict[str, NDArray[Any]]) -> Any:
        """Return the saved encoder or profile of the features, or a part of the method.

        Parameters
        ----------
        name : str
            Name of the attribute.
        arrays : dict of str to ndarray
            Saved arrays.

        Returns
        -------
        object
        """
        if name == "feature_profile_":
            return FeatureProfile.restore(arrays)
        if name == "feature_encoder_":
            from wisecrowd.encoders.stored_encoder import restore_encoder

            return restore_encoder(arrays)
        return super().restore_attribute(name, arrays)

    def check_restored(self) -> None:
        """Raise ValueError if the classifier that was read from files does not fit the features and the classes."""
        super().check_restored()
        proba = self._predict_proba(np.zeros((1, *self.feature_shape_)))
        if proba.shape != (1, len(self.classes_)) or not np.isfinite(proba).all():
            raise ValueError(f"the classifier does not give probabilities of {len(self.classes_)} classes")
        profile = getattr(self, "feature_profile_", None)
        if profile is not None and profile.lowest.size != np.prod(self.feature_shape_):
            raise ValueError(f"feature_profile_ must have ranges of features of the shape {self.feature_shape_}")
        if not 0 < self.prediction_sharpness_ < np.inf:
            raise ValueError(f"prediction_sharpness_ must be a positive number, not {self.prediction_sharpness_}")

    @property
    def crowd_confusion_(self) -> NDArray[np.float64]:
        """Confusion matrix of all votes together, shape (n_classes, n_classes); rows sum to one."""
        n_classes = self._check_fitted("tally_").shape[1]
        counts = np.zeros((n_classes, n_classes))
        np.add.at(counts, self.pair_label_, self.tally_)
        counts += CROWD_PSEUDO_VOTES
        return counts.T / counts.sum(axis=0)[:, None]

    def _worker_positions(self, workers: Sequence[Any] | pd.Index) -> NDArray[np.intp]:
        """Return the positions of workers by id, -1 for workers without training votes."""
        if isinstance(workers, str):
            raise UsageError(f"workers must be a list of worker ids; got {workers!r}. For one worker: [{workers!r}]")
        ids = pd.Index(workers)
        return np.full(len(ids), -1) if self.worker_index_ is None else locate_ids(ids, self.worker_index_)

    def _confusion_by_id(self, workers: Sequence[Any] | pd.Index) -> NDArray[np.float64]:
        """Return the confusion matrices of workers by id; an average one for workers without training votes."""
        positions = self._worker_positions(workers)
        matrices = np.empty((len(positions), len(self.classes_), len(self.classes_)))
        matrices[positions >= 0] = self.confusion_of(positions[positions >= 0])
        matrices[positions < 0] = self.crowd_confusion_
        return matrices

    def _validate_features(self, X: FeaturesLike) -> Any:
        """Return features of new tasks as numbers, with the columns in the order of training."""
        names = _get_feature_names(X)
        if names is not None and self.feature_names_ is not None and names != self.feature_names_:
            if sorted(names) != sorted(self.feature_names_):
                absent = [name for name in self.feature_names_ if name not in names]
                unexpected = [name for name in names if name not in self.feature_names_]
                differences = [
                    f"{word} {preview(columns)}"
                    for word, columns in (("lacks", absent), ("has also", unexpected))
                    if columns
                ]
                raise InputError(
                    "X must have the columns of training, in any order; this table "
                    f"{' and '.join(differences) or 'repeats columns'}"
                )
            assert isinstance(X, pd.DataFrame)
            X = X.iloc[:, [names.index(name) for name in self.feature_names_]]
        if names is not None and self.feature_names_ is None:
            warnings.warn(
                "the features of training had no names, so these columns are matched by position; check their order, or train "
                "on a table with names",
                DataWarning,
                stacklevel=4,
            )
        encoder = getattr(self, "feature_encoder_", None)  # a learner that an earlier version saved has none
        if encoder is not None and encoder.accepts(X):
            X = encoder.transform(X)
        rows = as_sparse_features(X) if is_sparse(X) and self._accepts_sparse() else as_float_features(X)
        shape = tuple(self.feature_shape_)
        if rows.shape[1:] != shape or rows.ndim < 2:
            raise InputError(
                f"X must have rows of {' x '.join(map(str, shape))} features, as in training; got an array of shape {rows.shape}"
                + (". Reshape your data: X.reshape(1, -1) is a single task" if rows.ndim == 1 else "")
            )
        problem = None if is_sparse(rows) else find_invalid_features(rows)
        if problem is not None:
            is_bad, adjective, advice = problem
            raise InputError(
                f"the features of {count_noun(int(is_bad.sum()), 'row')} are {adjective}, for example row "
                f"{preview(np.flatnonzero(is_bad))}; {advice}"
            )
        return rows

    def find_training_rows(self, X: FeaturesLike) -> NDArray[np.intp]:
        """Return the positions of the training tasks whose features rows are identical to.

        Parameters
        ----------
        X : DataFrame or array of shape (n_tasks, ...)
            Features, as for ``predict``.

        Returns
        -------
        ndarray of intp, shape (n_tasks,)
            The first such task; -1 without one. All are -1 if the learner was saved by a version that did not keep digests of the
            training rows, if it was trained on a sparse matrix, or if training rows repeat each other.
        """
        self._check_fitted("posterior_")
        rows, profile = self._validate_features(X), getattr(self, "feature_profile_", None)
        if profile is None or is_sparse(rows):
            return np.full(rows.shape[0], -1)
        return np.asarray(profile.find_training_rows(rows))

    def _warn_unlike_training(self, rows: Any) -> None:
        """Warn if features have another order, scaling or distribution than in training."""
        profile = getattr(self, "feature_profile_", None)  # a learner that an earlier version saved has none
        encoder = getattr(self, "feature_encoder_", None)
        is_encoded = encoder is not None and not isinstance(encoder, TableEncoder)  # texts and images have no units
        if profile is None or is_sparse(rows) or is_encoded:
            return
        names = encoder.feature_names if isinstance(encoder, TableEncoder) else self.feature_names_
        problem = profile.describe_problem(rows, names)
        if problem:
            warnings.warn(problem, DataWarning, stacklevel=4)

    def __sklearn_tags__(self) -> Tags:
        from sklearn.utils import ClassifierTags

        tags = super().__sklearn_tags__()
        tags.estimator_type, tags.classifier_tags, tags.target_tags.required = "classifier", ClassifierTags(), True
        return tags


def _get_feature_names(X: Any) -> list[str] | None:
    """Return the names of the features, or None if they are only numbered."""
    if not isinstance(X, pd.DataFrame) or X.columns.equals(pd.RangeIndex(X.shape[1])):
        return None
    return [str(name) for name in X.columns]


def _pair_label_probs(learner: Learner, pairs: Pairs) -> NDArray[np.float64]:
    """Return P(label given true class) of (worker, label) pairs by the confusion matrices of a fitted learner."""
    n_classes = len(learner.classes_)
    if learner.worker_index_ is None:
        return np.asarray(learner.crowd_confusion_.T[pairs.label])
    probs = np.empty((len(pairs), n_classes))
    for part in slice_rows(pairs.n_workers, n_classes**2):
        first, last = np.searchsorted(pairs.worker, [part.start, part.stop])
        matrices = learner.confusion_of(np.arange(part.start, min(part.stop, pairs.n_workers)))
        probs[first:last] = matrices[pairs.worker[first:last] - part.start, :, pairs.label[first:last]]
    return probs
