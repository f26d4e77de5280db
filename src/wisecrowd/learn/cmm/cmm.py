"""CMM: a classifier and a mixture of a few confusion matrices (Mena and Ñanculef)."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.base.learner import Learner
from wisecrowd.base.method import MAX_DENSE_CELLS
from wisecrowd.classifiers.soft_classifier import SoftClassifier
from wisecrowd.data.alignment import align_features
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.sharded import ShardedCrowd
from wisecrowd.data.types import AnyCrowd, CrowdLike, FeaturesLike
from wisecrowd.data.vocabulary import locate_ids
from wisecrowd.em.divergence import confusion_divergence
from wisecrowd.em.incremental import recode_classes
from wisecrowd.errors import DataWarning, InputError, UsageError, check_choice
from wisecrowd.kernels import MIN_PROB
from wisecrowd.learn.cmm._confusion_mixture import ConfusionMixture, sum_votes_by_worker
from wisecrowd.learn.cmm._mixture_fit import MixtureFitter
from wisecrowd.learn.cmm._worker_mixture import infer_memberships
from wisecrowd.nn.classifier_choice import CLASSIFIER_HELP, CLASSIFIER_L2_HELP, make_classifier
from wisecrowd.utils import progress

#: Numbers of groups that "auto" compares.
GROUP_NUMBERS = (1, 2, 3, 4, 5, 6)
#: Share of votes that "auto" hides for the comparison.
HIDDEN_SHARE = 0.2
#: Smallest gain, in nats per hidden vote, that counts; smaller ones come from the smoothing.
MIN_GAIN = 1e-3
#: Distance of the seeds of two starts, so that networks of other starts and seeds differ.
RESTART_SEED_STEP = 1_000_003
#: Gain in the sum of the diagonal by another order of the classes at which a warning is issued.
SWITCHED_CLASSES_GAIN = 0.1


@method_class
class CMM(Learner):
    """Crowd Mixture Model: a classifier, and a few confusion matrices for all votes instead of one per worker.

    The method needs no worker ids. A vote on task i comes from group m with probability α_m, has the true class k with
    probability f_k(x_i), and gives label j with probability β^m[k, j]. With r_ij votes for j on task i,

        p_ij = Σ_m α_m Σ_k f_k(x_i) β^m[k, j]              the likelihood is Π p_ij^r_ij               (1)–(3)
        E:  q_ij(m, k) = α_m f_k(x_i) β^m[k, j] / p_ij                                                  (4)
        M:  α and β from the sums of r_ij q_ij (plus ``smoothing``), f fits Σ_jm r_ij q_ij(m, k)        (5)–(7)

    A task counts in f as often as it has votes. All sums follow from a table of classes x classes, so the cost of an
    iteration does not depend on the number of workers and groups. The first start takes the true class from the vote shares
    and the groups from k-means over votes. Further starts (``n_init``) are random, and the best iterate of all is returned.

    **Meaning of groups.** With B = Σ_m α_m β^m the model is p_ij = Σ_k f_k(x_i) B[k, j]: the likelihood depends on the groups
    only through their sum. Single votes cannot identify groups, more groups never fit better, and the start and the smoothing
    determine how B is split. Only the classifier and B (``crowd_confusion_``) are identified. With ``tied="worker"`` all
    votes of a worker come from one group and all votes on a task have one true class; then workers with several votes
    identify the groups. This needs worker ids, and it is the better choice if workers have more than a few votes.

    **Posterior.** In the paper's model every vote has a true class of its own, so a task has no posterior, and the paper
    reports the predictions of the classifier. Here ``posterior_`` assumes that the votes are independent given one true class
    of the task: P(z | x, r) ∝ f_z(x) Π_j B[z, j]^r_j. With ``tied="worker"`` it is q(z).

    **Workers.** With worker ids, worker a belongs to group m with probability ∝ α_m Π p_m(y | x) over the worker's votes (8),
    ``worker_groups_``, and has the matrix Σ_m P(m | a) β^m (9), ``confusion_``. A worker without votes gets α.

    Of a crowd in shards, only the counts of votes are used, and single workers are unknown.

    **Cross-fitting.** With many features and few tasks a classifier explains the noise of the votes by itself, and B comes out
    too good. The authors stop a network after a few epochs. Logistic regression converges, so that here the classes of a task
    are predicted by a classifier that has not seen its votes (``cross_fit``); the objective may then fall, and the iteration
    ends when 20 iterations have brought no better iterate. A last classifier is fitted to all tasks.

    Use it without worker ids, or with so many workers that each has very few votes. With about ten votes per worker or more,
    `Raykar` and `Concord` are mostly better. As in the authors' program: ``classifier="mlp"``, ``start="authors"``,
    ``stop="matrices"``, ``tol=0.03``, ``max_iter=50`` and ``n_init=20``. Benchmark: ``wisecrowd bench show mena2020``.

    Examples
    --------
    >>> from wisecrowd import CMM
    >>> from wisecrowd.simulate import simulate_gaussian_groups
    >>> simulation = simulate_gaussian_groups(n_workers=1000, n_tasks=600)
    >>> model = CMM(n_groups=2).fit(simulation.features, simulation.crowd.drop_workers())
    >>> bool(model.score(simulation.test_features, simulation.test_truth) > 0.9)
    True
    >>> model.groups_.columns.tolist(), model.crowd_confusion_.shape
    (['weight', 'n_votes', 'identity_similarity', 'entropy'], (3, 3))
    """

    references: ClassVar[tuple[str, ...]] = ("mena2019revisiting",)
    needs_workers: ClassVar[bool] = False
    breaks: ClassVar[dict[str, str]] = {
        "the_objective_never_falls": "with cross-fitting, the objective is the likelihood of tasks that a classifier has not seen",
    }

    classifier: Any = parameter(default="logistic", help=CLASSIFIER_HELP)
    l2: float | None = parameter(default=None, help=CLASSIFIER_L2_HELP)
    random_state: int = parameter(
        default=0, help="Seed of further starts, of hidden votes and of the initial weights of networks."
    )
    n_groups: int | Literal["auto"] = parameter(
        default=3, help="Number of groups; 'auto' compares 1 to 6 by the likelihood of hidden votes."
    )
    tied: Literal["no", "worker"] = parameter(
        default="no",
        help="Votes that share a group. 'worker': all votes of a worker come from one group, and a task has one true class. "
        "'no': every vote has a group and a class of its own.",
    )
    smoothing: float = parameter(
        default=1.0, help="Pseudo-count of the weight of every group and of every cell of its matrix."
    )
    n_init: int = parameter(default=1, help="Number of starts; the first from the votes, the others at random.")
    max_iter: int = parameter(default=1000, help="Maximum number of EM iterations.")
    tol: float = parameter(default=1e-5, help="Relative change of the objective at which the iteration stops.")
    stop: Literal["objective", "matrices"] = parameter(
        default="objective",
        help="Values that must have settled: the 'objective', or also the 'matrices', by their mean relative change.",
    )
    start: Literal["votes", "authors"] = parameter(
        default="votes",
        help="First values of classes and groups: from the 'votes', later ones at random; or all as in the program of the "
        "'authors', by k-means over the pairs of tasks and labels, with a random share of each vote's own label.",
    )
    cross_fit: int | Literal["auto"] = parameter(
        default="auto",
        help="Number of folds in which a task's class is predicted without its own votes; 1 for none. 'auto': 5 for a classifier "
        "that is no network, if there are fewer than 50 tasks per feature.",
    )
    verbose: bool = parameter(default=False, help="Show a progress bar.")

    classifier_: SoftClassifier = fitted(help="Classifier of the best iterate, which predicts new tasks.")
    n_groups_: int = fitted(help="Number of groups.")
    groups_: pd.DataFrame = fitted(
        help="Weight, number of votes, similarity to the identity and entropy (in nats) of every group, heaviest first."
    )
    group_weight_: NDArray[np.float64] = fitted(help="Weights α of the groups.", shape=("n_groups",), finite=True)
    group_confusion_: NDArray[np.float64] = fitted(
        help="Confusion matrices β, by true class and label.", shape=("n_groups", "n_classes", "n_classes"), finite=True
    )
    membership_: NDArray[np.float64] = fitted(
        help="Probability of every group for every worker.", shape=("n_workers", "n_groups"), finite=True
    )
    restarts_: pd.DataFrame = fitted(help="Objective, number of iterations and convergence of every start.")
    selection_: pd.DataFrame | None = fitted(
        help="Log-likelihood of hidden votes and its standard error by number of groups; None unless n_groups='auto'."
    )
    trace_: NDArray[np.float64] = fitted(help="Objective after every iteration of the best start.", shape=("n_iter",))
    n_iter_: int = fitted(help="Number of iterations of the best start.")
    converged_: bool = fitted(help="Whether the best start converged.")

    def _count_matrices(self, votes: AnyCrowd) -> int:
        return self.n_groups if isinstance(self.n_groups, int) else 1

    def _fit(self, X: NDArray[np.float64], crowd: Crowd, gold: NDArray[np.int32] | None) -> None:
        self._check_parameters(crowd)
        fitter = self._fitter()
        selection = None
        with progress.show_if(self.verbose):
            if self.n_groups == "auto":
                n_groups, selection = self._select_number(fitter, X, crowd, gold)
            else:
                n_groups = int(self.n_groups)
            fit = fitter.fit(X, crowd, gold, n_groups)
        self.n_groups_, self.selection_ = n_groups, selection
        self.trace_, self.n_iter_, self.converged_ = np.asarray(fit.trace), len(fit.trace), fit.converged
        self.restarts_, self.classifier_ = fit.restarts, fit.classifier
        mixture, order = fit.mixture.sort_by_weight()
        self.group_weight_, self.group_confusion_ = mixture.weight, mixture.confusion
        self._set_fitted(crowd, fit.posterior)
        if not crowd.has_workers:  # all votes count as those of one worker with the weights of the mixture
            self.membership_ = mixture.weight[None]
        elif fit.membership is not None:
            self.membership_ = fit.membership[:, order]
        else:
            self.membership_ = mixture.worker_memberships(fit.class_probs, crowd)
        self.groups_ = self._describe_groups(mixture, crowd, self.membership_)
        self._warn_of_switched_classes(mixture.pooled)

    def as_crowd(self, crowd: CrowdLike) -> Crowd:
        """Convert votes to a crowd; of a crowd in shards, untied groups need only the counts of votes.

        Parameters
        ----------
        crowd : Crowd, ShardedCrowd, table, or list of (task, worker, label)
            Votes.

        Returns
        -------
        Crowd

        Raises
        ------
        UsageError
            If the votes are in shards and ``tied`` is "worker".
        """
        if isinstance(crowd, ShardedCrowd) and self.tied == "no":
            return super().as_crowd(crowd.drop_workers())
        return super().as_crowd(crowd)

    def _check_parameters(self, crowd: Crowd) -> None:
        check_choice("tied", self.tied, ("no", "worker"))
        check_choice("stop", self.stop, ("objective", "matrices"))
        check_choice("start", self.start, ("votes", "authors"))
        if self.start == "authors" and self.tied == "worker":
            raise UsageError("start='authors' groups single votes; use start='votes' for tied groups, or tied='no'")
        if self.cross_fit != "auto" and not self.cross_fit >= 1:
            raise UsageError(f"cross_fit must be a number of folds from 1, or 'auto'; got {self.cross_fit!r}")
        n_groups: Any = self.n_groups
        if n_groups != "auto" and not (isinstance(n_groups, int | np.integer) and n_groups >= 1):
            raise UsageError(f"n_groups must be a whole number from 1, or 'auto'; got {self.n_groups!r}")
        if self.max_iter < 1 or self.n_init < 1:
            raise UsageError(f"max_iter and n_init must be 1 or more; got {self.max_iter} and {self.n_init}")
        if min(self.smoothing, self.l2 or 0) < 0:
            raise UsageError(f"smoothing and l2 must not be negative; got {self.smoothing} and {self.l2}")
        if self.tied == "worker" and not crowd.has_workers:
            raise InputError("tied='worker' groups workers, and this crowd has no worker ids; use tied='no'")

    # ------------------------------------------------------------------ fitting

    def _fitter(self) -> MixtureFitter:
        return MixtureFitter(
            make_classifier=self._make_classifier,
            tied=self.tied,
            smoothing=self.smoothing,
            n_init=self.n_init,
            max_iter=self.max_iter,
            tol=self.tol,
            stop=self.stop,
            start=self.start,
            cross_fit=self.cross_fit,
            random_state=self.random_state,
            title=type(self).__name__,
        )

    def _make_classifier(self, attempt: int = 0) -> SoftClassifier:
        seed = self.random_state + RESTART_SEED_STEP * attempt
        return make_classifier(self.classifier, l2=self.l2, random_state=seed)

    def _select_number(
        self, fitter: MixtureFitter, X: NDArray[np.float64], crowd: Crowd, gold: NDArray[np.int32] | None
    ) -> tuple[int, pd.DataFrame]:
        """Return the fewest groups that predict hidden votes as well as the best number, and the table of scores.

        A number is as good as the best if it is worse by no more than a standard error or `MIN_GAIN`.
        """
        visible, hidden = _hide_votes(crowd, self.random_state)
        if min(visible.n_votes, hidden.n_votes) == 0:
            raise InputError(
                f"n_groups='auto' compares numbers of groups by hidden votes, and {crowd.n_votes} votes are too few to "
                "hide any; set the number of groups: n_groups=3"
            )
        start = fitter.infer_without_groups(X, visible, gold) if self.tied == "worker" else None
        scores = []
        for number in GROUP_NUMBERS:
            fit = fitter.fit(X, visible, gold, number, start)
            if fit.membership is not None:
                assert hidden.worker is not None
                class_probs, group_probs = fit.posterior, fit.membership[hidden.worker]
            else:  # every vote has a class of its own, so visible votes say nothing about hidden ones
                class_probs, group_probs = fit.class_probs, fit.mixture.weight
            vote_probs = (fit.mixture.vote_probs(class_probs, hidden) * group_probs).sum(axis=1)
            scores.append(np.log(np.maximum(vote_probs, MIN_PROB)))
        mean = np.array([np.average(score, weights=hidden.weight) for score in scores])
        leader = int(mean.argmax())
        gaps = [scores[leader] - score for score in scores]
        error = np.array([gap.std() / np.sqrt(len(gap)) for gap in gaps])
        columns = {"log_likelihood": mean, "standard_error": error}
        selection = pd.DataFrame(columns, index=pd.Index(GROUP_NUMBERS, name="n_groups"))
        first = int(np.flatnonzero(mean[leader] - mean <= np.maximum(error, MIN_GAIN))[0])
        return GROUP_NUMBERS[first], selection

    def _describe_groups(
        self, mixture: ConfusionMixture, crowd: Crowd, membership: NDArray[np.float64]
    ) -> pd.DataFrame:
        """Return the table of the groups."""
        n_votes = crowd.weight.sum() * mixture.weight
        if self.tied == "worker":
            n_votes = sum_votes_by_worker(1.0, crowd) @ membership
        confusion = mixture.confusion
        columns = {
            "weight": mixture.weight,
            "n_votes": n_votes,
            "identity_similarity": 1 - confusion_divergence(confusion, np.eye(crowd.n_classes)),
            "entropy": -(confusion * np.log(np.maximum(confusion, MIN_PROB))).sum(axis=2).mean(axis=1),
        }
        return pd.DataFrame(columns, index=pd.RangeIndex(len(mixture.weight), name="group"))

    def _warn_of_switched_classes(self, confusion: NDArray[np.float64]) -> None:
        """Warn if the classes fit the labels better in another order."""
        from scipy.optimize import linear_sum_assignment

        true, label = linear_sum_assignment(confusion, maximize=True)
        if confusion[true, label].sum() - np.trace(confusion) > SWITCHED_CLASSES_GAIN:
            switched = [f"{self.classes_[k]} to {self.classes_[j]}" for k, j in zip(true, label, strict=True) if k != j]
            warnings.warn(
                f"the fitted classes match other labels better than their own ({', '.join(switched)}); give the truth "
                "of some tasks, use more starts (n_init), or check the votes",
                DataWarning,
                stacklevel=5,
            )

    # ------------------------------------------------------------------ results

    def _predict_proba(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.classifier_.predict_proba(X)

    def restore_part(self, name: str, arrays: dict[str, NDArray[Any]]) -> SoftClassifier:
        """Return the saved classifier.

        Parameters
        ----------
        name : str
            Name of the attribute, ``classifier_``.
        arrays : dict of str to ndarray
            Fitted parameters of the classifier.

        Returns
        -------
        SoftClassifier
        """
        return self._make_classifier().restore(arrays)

    @property
    def crowd_confusion_(self) -> NDArray[np.float64]:
        """Confusion matrix B = Σ_m α_m β^m of the crowd, (true, given)."""
        return ConfusionMixture(self._check_fitted("group_weight_"), self.group_confusion_).pooled

    @property
    def worker_groups_(self) -> pd.DataFrame:
        """Probability of every group for every worker (eq. 8)."""
        self._check_fitted("membership_")
        if self.worker_index_ is None:
            raise UsageError(
                "the model was fitted to votes without worker ids, so there are no groups of workers; assign(X, crowd) gives the "
                "groups of votes"
            )
        columns = pd.RangeIndex(self.n_groups_, name="group")
        return pd.DataFrame(self.membership_, index=self.worker_index_.rename("worker"), columns=columns)

    def confusion_of(self, workers: Iterable[int]) -> NDArray[np.float64]:
        """Return the confusion matrices of some workers, mixed from those of their groups (eq. 9).

        Parameters
        ----------
        workers : iterable of int
            Positions of the workers.

        Returns
        -------
        ndarray of shape (n_chosen, n_classes, n_classes)
        """
        self._check_fitted("membership_")
        chosen = np.asarray(list(workers), dtype=np.int64)
        if len(chosen) * len(self.classes_) ** 2 > MAX_DENSE_CELLS:
            raise UsageError(
                f"{len(chosen):,} confusion matrices do not fit in memory; ask for some of the workers, confusion_of([0, "
                "1, 2]), or use worker_groups_ and group_confusion_"
            )
        return np.einsum("rm,mkj->rkj", self.membership_[chosen], self.group_confusion_)

    def _worker_columns(self) -> dict[str, NDArray[Any]]:
        # The accuracy that confusion_ implies, without a matrix for every worker.
        group_accuracy = np.einsum("k,mkk->m", self.posterior_.mean(axis=0), self.group_confusion_)
        columns = {"accuracy": self.membership_ @ group_accuracy, "group": self.membership_.argmax(axis=1)}
        return super()._worker_columns() | columns

    def assign(self, X: FeaturesLike, crowd: CrowdLike) -> pd.DataFrame:
        """Assign votes, which may be new, to groups.

        A vote y on a task with features x comes from group m with probability ∝ α_m p_m(y | x). With ``tied="worker"`` all
        votes of a worker count together, as do the votes of the fit.

        Parameters
        ----------
        X : DataFrame or ndarray
            Features of the tasks.
        crowd : Crowd or DataFrame
            Votes.

        Returns
        -------
        DataFrame
            Probability of every group, with a row for every vote (task, worker, label).

        Raises
        ------
        InputError
            If groups are tied and the votes have no worker ids.
        """
        self._check_fitted("membership_")
        votes = recode_classes(self.validate_votes(crowd), self.classes_)
        class_probs = self.predict_proba(align_features(X, votes))
        mixture = ConfusionMixture(self.group_weight_, self.group_confusion_)
        if self.tied == "worker":
            if votes.workers is None or votes.worker is None or self.worker_index_ is None:
                raise InputError("tied='worker' groups workers, and this crowd has no worker ids; give votes with ids")
            prior = np.tile(mixture.weight, (votes.n_workers, 1))
            position = locate_ids(votes.workers, self.worker_index_)
            prior[position >= 0] = self.membership_[position[position >= 0]]
            probs = infer_memberships(mixture, class_probs, prior, votes)[votes.worker]
        else:
            probs = mixture.weight * mixture.vote_probs(class_probs, votes)
            probs /= np.maximum(probs.sum(axis=1, keepdims=True), MIN_PROB)
        frame = votes.to_frame()
        index = pd.MultiIndex.from_frame(frame[[name for name in ("task", "worker", "label") if name in frame]])
        return pd.DataFrame(probs, index=index, columns=pd.RangeIndex(self.n_groups_, name="group"))


def _hide_votes(crowd: Crowd, random_state: int) -> tuple[Crowd, Crowd]:
    """Split the votes at random. The votes that a row without worker counts are split one by one, a fraction as one vote."""
    if crowd.has_workers:
        return crowd.hide(HIDDEN_SHARE, random_state=random_state)
    rng = np.random.default_rng(random_state)
    count = np.floor(crowd.weight)
    n_hidden = rng.binomial(count.astype(np.int64), HIDDEN_SHARE).astype(np.float64)
    n_hidden += np.where(rng.random(len(count)) < HIDDEN_SHARE, crowd.weight - count, 0.0)

    def select_votes(weight: NDArray[np.float64]) -> Crowd:
        rows = weight > 0
        return Crowd.from_codes(
            crowd.task[rows],
            None,
            crowd.label[rows],
            tasks=crowd.tasks,
            workers=None,
            classes=crowd.classes,
            weight=weight[rows],
            duplicates="keep",
            has_task_order=crowd.has_task_order,
        )

    return select_votes(crowd.weight - n_hidden), select_votes(n_hidden)
