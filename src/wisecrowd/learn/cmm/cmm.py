"""CMM: groups of votes with a confusion matrix each, and a classifier, learnt together (Mena and Ñanculef)."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import softmax

from wisecrowd.base.fields import method_class, parameter
from wisecrowd.base.method import DENSE_CELLS
from wisecrowd.classifiers.soft import SoftClassifier
from wisecrowd.data.alignment import align_features
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.sharded import ShardedCrowd
from wisecrowd.em import incremental as online
from wisecrowd.em.classifier_fields import ClassifierLearner, taught_by
from wisecrowd.em.divergence import confusion_divergence
from wisecrowd.em.initialization import apply_gold
from wisecrowd.em.loop import Statistics, iterate
from wisecrowd.errors import DataWarning, InputError, UsageError, one_of
from wisecrowd.kernels.reference import LEAST
from wisecrowd.learn.cmm._groups import Grouping, Groups, Reached, by_worker
from wisecrowd.learn.cmm._votes import VoteMixture
from wisecrowd.learn.cmm._workers import WorkerMixture, placed
from wisecrowd.utils import progress

#: Numbers of groups that "auto" tries, and the share of votes that it hides to compare them.
NUMBERS, HIDDEN = (1, 2, 3, 4, 5, 6), 0.2

#: Nats per hidden vote below which a gain is the work of the smoothing, not of another group.
WORTH = 1e-3

#: By how much the classes would have to fit better in another order, in rows of the matrix, before a warning.
SWITCHED = 0.1


@method_class
class CMM(ClassifierLearner):
    """The Crowd Mixture Model: a classifier, and a few confusion matrices for all votes instead of one for each worker.

    Who cast a vote need not be known. A vote on task i comes from group m with probability α_m, meets class k with
    probability f_k(x_i), and says j with probability β^m[k, j], so that with r_ij votes for j on task i

        p_ij = Σ_m α_m Σ_k f_k(x_i) β^m[k, j]              the likelihood is Π p_ij^r_ij               (1)–(3)
        E:  q_ij(m, k) = α_m f_k(x_i) β^m[k, j] / p_ij                                                  (4)
        M:  α and β from the sums of r_ij q_ij (plus ``smoothing``), f fits Σ_jm r_ij q_ij(m, k)        (5)–(7)

    A task counts in f as often as it has votes. All sums follow from a table of classes x classes, so that a pass
    costs the same however many workers and groups there are. The first start takes the true class from the soft vote
    and the groups from K-means over votes; others (``n_init``) are random, and the best iterate of all is kept.

    **What groups mean.** With B = Σ_m α_m β^m the model is p_ij = Σ_k f_k(x_i) B[k, j]: the likelihood depends on the
    groups only through their sum. Votes cannot tell groups apart, more groups never fit better, and how
    B is split among them is what the start and the smoothing made of it. What can be relied on is the classifier and B,
    ``crowd_confusion_``. With ``tied="worker"`` all votes of a worker come from one group, and all
    votes on a task meet one class: then workers who label several tasks do tell the groups apart
    (communities of workers, with a classifier as the prior of a task; variational EM). It needs worker ids, and with
    workers of more than a handful of labels it is the better choice.

    **Posterior.** In the paper's model every vote has a true class of its own, so that a task has no posterior, and the
    paper reports the classifier's answers alone. A task has one truth, though, and ``posterior_`` is what its features
    and its votes say of it when the votes are independent given that truth: P(z | x, r) ∝ f_z(x) Π_j B[z, j]^r_j.
    With ``tied="worker"`` it is q(z).

    **Workers.** Where ids are known, worker a belongs to group m with probability ∝ α_m Π p_m(y | x) over the worker's
    votes (8), ``worker_groups_``, and has the matrix Σ_m P(m | a) β^m (9), ``confusion_``; one without votes gets α.

    Of a crowd in shards it takes the counts of votes, and knows nothing of single workers then.

    Choose it when there are no worker ids, or more workers than labels could ever tell apart. With some ten labels per
    worker or more, methods that know their workers (`Raykar`, `Concord`) are mostly better.

    After ``fit`` there are further ``groups_`` (a table: weight, labels, similarity to the identity, entropy in nats),
    ``group_weight_``, ``group_confusion_`` (groups, true, said; the heaviest group first) and ``restarts_``.

    The authors' program runs one epoch of Adam per pass and stops at a change of 3 %. On their simulated crowds, logistic
    regression run to convergence has 94 to 95 % on test tasks, and their network with at most 50 passes about 92 %, where
    the paper has 90 to 92 %. With many features and few tasks a classifier can explain the noise of the votes by itself:
    give a strong ridge (``l2``), or stop a network early (``tol``), and expect the answer to depend on it.

    >>> from wisecrowd import CMM
    >>> from wisecrowd.simulate import simulate_gaussian_groups
    >>> made = simulate_gaussian_groups(n_workers=1000, n_tasks=600)
    >>> model = CMM(n_groups=2).fit(made.features, made.crowd.without_workers())
    >>> bool(model.score(made.test_features, made.test_truth) > 0.9)
    True
    >>> model.groups_.columns.tolist(), model.crowd_confusion_.shape
    (['weight', 'n_votes', 'identity_similarity', 'entropy'], (3, 3))
    """

    references: ClassVar[tuple[str, ...]] = ("mena2019revisiting",)
    needs_workers: ClassVar[bool] = False

    n_groups: int | Literal["auto"] = parameter(
        default=3, help="groups; 'auto' compares 1 to 6 by the likelihood of hidden votes"
    )
    tied: Literal["no", "worker"] = parameter(
        default="no", help="'worker': all votes of a worker come from one group, and a task has one class"
    )
    smoothing: float = parameter(
        default=1.0, help="pseudo-counts of every group's weight and in every cell of its matrix"
    )
    n_init: int = parameter(default=1, help="starts; the first from the votes, the others at random")
    max_iter: int = parameter(default=1000, help="passes at most")
    tol: float = parameter(default=1e-5, help="stop when the objective rises by less than this fraction")
    random_state: int = parameter(default=0, help="seed of further starts, hidden votes and networks")
    verbose: bool = parameter(default=False, help="draw a progress bar")

    def _fit(self, X: NDArray[np.float64], crowd: Crowd, gold: NDArray[np.int32] | None) -> None:
        self._check(crowd)
        with progress.shown(self.verbose):
            number = self._choose(X, crowd, gold) if self.n_groups == "auto" else int(self.n_groups)
            best = self._run(X, crowd, gold, number)
        self.n_groups_ = number
        self.trace_, self.n_iter_, self.converged_ = np.asarray(best.trace), len(best.trace), best.converged
        self.restarts_, self.classifier_ = best.restarts, best.classifier
        groups, order = best.reached.groups.sorted()
        self.group_weight_, self.group_confusion_ = groups.weight, groups.confusion
        self._set_fitted(crowd, self._posterior(X, crowd, gold, best))
        self.membership_ = self._membership(X, crowd, best.reached.found, groups, order)
        votes = crowd.weight.sum() * groups.weight
        if self.tied == "worker":
            votes = by_worker(1.0, crowd) @ self.membership_
        self.groups_ = pd.DataFrame(
            {
                "weight": groups.weight,
                "n_votes": votes,
                "identity_similarity": 1 - confusion_divergence(groups.confusion, np.eye(crowd.n_classes)),
                "entropy": -(groups.confusion * np.log(np.maximum(groups.confusion, LEAST))).sum(axis=2).mean(axis=1),
            },
            index=pd.RangeIndex(number, name="group"),
        )
        self._warn_of_switched_classes()

    def _as_crowd(self, crowd: Any) -> Crowd:
        # All that untied groups want of votes is how many there are for each class of each task.
        counts = isinstance(crowd, ShardedCrowd) and self.tied == "no"
        return super()._as_crowd(crowd.without_workers() if counts else crowd)

    def _check(self, crowd: Crowd) -> None:
        one_of("tied", self.tied, ("no", "worker"))
        wanted: Any = self.n_groups
        if wanted != "auto" and not (isinstance(wanted, int | np.integer) and wanted >= 1):
            raise UsageError(f"n_groups must be a whole number from 1, or 'auto'; got {self.n_groups!r}")
        if self.max_iter < 1 or self.n_init < 1:
            raise UsageError(f"max_iter and n_init must be 1 or more; got {self.max_iter} and {self.n_init}")
        if min(self.smoothing, self.l2 or 0) < 0:
            raise UsageError(f"smoothing and l2 must not be negative; got {self.smoothing} and {self.l2}")
        if self.tied == "worker" and not crowd.has_workers:
            raise InputError("tied='worker' groups workers, and this crowd has no worker ids; use tied='no'")

    # ------------------------------------------------------------------ fitting

    def _run(
        self,
        X: NDArray[np.float64],
        crowd: Crowd,
        gold: NDArray[np.int32] | None,
        n_groups: int,
        first: NDArray[np.float64] | None = None,
    ) -> _Best:
        """Fit so many groups, from all starts; those of workers start from a posterior, which is found unless given."""
        taught = np.flatnonzero(taught_by(crowd.layout, gold))
        known, rest = None if gold is None else gold[taught], (n_groups, self.smoothing, self.random_state)
        grouping: Grouping
        if self.tied == "worker":
            first = self._ungrouped(X, crowd, gold) if first is None else first
            grouping = WorkerMixture(X[taught], crowd[taught], known, first[taught], *rest)
        else:
            grouping = VoteMixture(X[taught], crowd.votes[taught], known, *rest)
        best: _Best | None = None
        rows: list[tuple[float, int, bool]] = []
        for attempt in range(self.n_init):
            watch = _Watch(grouping, self._new_classifier())
            # Networks are neither exact nor functions of the statistics alone: no extrapolation, no monotone law.
            run = iterate(
                watch, grouping.start(attempt), max_iter=self.max_iter, tol=self.tol, monotone=watch.classifier.exact,
                accelerate=watch.classifier.exact and self.tied == "no", what=type(self).__name__,
            )  # fmt: skip
            assert watch.best is not None
            objective = watch.best[0].objective
            rows.append((objective, len(run.trace), run.converged))
            # Of starts that ended on one top the first is kept, for which came nearest is chance.
            if best is None or objective - best.reached.objective > 10 * self.tol * abs(objective):
                best = _Best(*watch.best, run.trace, run.converged, best.restarts if best else pd.DataFrame())
        assert best is not None
        return best._replace(restarts=pd.DataFrame(rows, columns=["objective", "n_iter", "converged"]))

    def _ungrouped(self, X: NDArray[np.float64], crowd: Crowd, gold: NDArray[np.int32] | None) -> NDArray[np.float64]:
        """The posterior without groups: workers who are told apart by the soft vote alone are often told apart wrongly."""
        single = CMM(**self.get_params(deep=False) | {"tied": "no", "n_groups": 1, "n_init": 1})
        return single._posterior(X, crowd, gold, single._run(X, crowd, gold, 1))

    def _posterior(
        self, X: NDArray[np.float64], crowd: Crowd, gold: NDArray[np.int32] | None, best: _Best
    ) -> NDArray[np.float64]:
        expected = best.classifier.predict_proba(X)
        if self.tied == "worker":
            expected[taught_by(crowd.layout, gold)] = best.reached.found.classes
            return expected
        said = np.log(np.maximum(best.reached.groups.pooled, LEAST))
        return apply_gold(softmax(np.log(np.maximum(expected, LEAST)) + crowd.votes @ said.T, axis=1), gold)

    def _membership(
        self, X: NDArray[np.float64], crowd: Crowd, found: Statistics, groups: Groups, order: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        """Workers x groups; without ids, everybody is one worker, of whom only the mixture is known."""
        if not crowd.has_workers:
            return groups.weight[None]
        return found.tally[:, order] if self.tied == "worker" else groups.of_workers(self._predict_proba(X), crowd)

    def _choose(self, X: NDArray[np.float64], crowd: Crowd, gold: NDArray[np.int32] | None) -> int:
        """The fewest groups that foretell hidden votes as well as the best number, within a standard error or `WORTH`."""
        kept, hidden = _hidden(crowd, self.random_state)
        if min(kept.n_votes, hidden.n_votes) == 0:
            raise InputError(
                f"n_groups='auto' compares numbers of groups by hidden votes, and {crowd.n_votes} votes are too few to "
                "hide any; say how many groups there are: n_groups=3"
            )
        scores = []
        first = self._ungrouped(X, kept, gold) if self.tied == "worker" else None
        for number in NUMBERS:
            best = self._run(X, kept, gold, number, first)
            groups, expected = best.reached.groups, self._posterior(X, kept, gold, best)
            if self.tied == "worker":
                assert hidden.worker is not None
                share = best.reached.found.tally[hidden.worker]
            else:  # every vote has a class of its own: those that were batch say nothing of those that were not
                share, expected = groups.weight, best.classifier.predict_proba(X)
            scores.append(np.log(np.maximum((groups.votes(expected, hidden) * share).sum(axis=1), LEAST)))
        mean = np.array([np.average(score, weights=hidden.weight) for score in scores])
        leader = int(mean.argmax())
        behind = [scores[leader] - score for score in scores]
        error = np.array([gap.std() / np.sqrt(len(gap)) for gap in behind])
        columns = {"log_likelihood": mean, "standard_error": error}
        self.selection_ = pd.DataFrame(columns, index=pd.Index(NUMBERS, name="n_groups"))
        return NUMBERS[int(np.flatnonzero(mean[leader] - mean <= np.maximum(error, WORTH))[0])]

    def _warn_of_switched_classes(self) -> None:
        from scipy.optimize import linear_sum_assignment

        said = self.crowd_confusion_
        true, called = linear_sum_assignment(said, maximize=True)
        if said[true, called].sum() - np.trace(said) > SWITCHED:
            warnings.warn(
                "the classes that were found answer better to other labels than their own "
                f"({', '.join(f'{self.classes_[k]} to {self.classes_[j]}' for k, j in zip(true, called, strict=True) if k != j)})"
                "; give the truth of some tasks, or more starts (n_init), or look at the votes",
                DataWarning,
                stacklevel=5,
            )

    # ------------------------------------------------------------------ what was learnt

    @property
    def crowd_confusion_(self) -> NDArray[np.float64]:
        """B = Σ_m α_m β^m, what the crowd as a whole says when each class is true: (true, said)."""
        return Groups(self._check_fitted("group_weight_"), self.group_confusion_).pooled

    @property
    def worker_groups_(self) -> pd.DataFrame:
        """How probable it is that each worker belongs to each group (eq. 8)."""
        self._check_fitted("membership_")
        if self.worker_index_ is None:
            raise UsageError("this crowd had no worker ids, so workers belong to no group; see assign for votes")
        columns = pd.RangeIndex(self.n_groups_, name="group")
        return pd.DataFrame(self.membership_, index=self.worker_index_.rename("worker"), columns=columns)

    def confusion_of(self, workers: Any) -> NDArray[np.float64]:
        """Matrices of some workers, by position, as their groups have them (eq. 9): (chosen workers, true, said)."""
        self._check_fitted("membership_")
        chosen = np.asarray(list(workers), dtype=np.int64)
        if len(chosen) * len(self.classes_) ** 2 > DENSE_CELLS:
            raise UsageError(
                f"{len(chosen):,} confusion matrices would not fit in memory; ask for some of the workers: "
                "confusion_of([0, 1, 2]), or use worker_groups_ and group_confusion_, of which they are made"
            )
        return np.einsum("rm,mkj->rkj", self.membership_[chosen], self.group_confusion_)

    def _worker_columns(self) -> dict[str, NDArray[Any]]:
        # As confusion_ has it, so that the two agree, without a matrix for everybody.
        right = np.einsum("k,mkk->m", self.posterior_.mean(axis=0), self.group_confusion_)
        accuracy = {"accuracy": self.membership_ @ right, "group": self.membership_.argmax(axis=1)}
        return super()._worker_columns() | accuracy

    def assign(self, X: Any, crowd: Any) -> pd.DataFrame:
        """The groups of votes, which may be new: a row for each vote (task, worker, label), a column for each group.

        A vote y on a task with features x comes from group m with probability ∝ α_m p_m(y | x). With
        ``tied="worker"`` the votes of a worker decide together, and what was learnt of a worker before counts as well.
        """
        self._check_fitted("membership_")
        votes = online.in_classes_of(self, self._admit(crowd))  # type: ignore[arg-type]  # asks for classes_ alone
        expected = self.predict_proba(align_features(X, votes))
        groups = Groups(self.group_weight_, self.group_confusion_)
        if self.tied == "worker":
            if votes.workers is None or votes.worker is None or self.worker_index_ is None:
                raise InputError("tied='worker' groups workers, and this crowd has no worker ids")
            prior = np.tile(groups.weight, (votes.n_workers, 1))
            place = self.worker_index_.get_indexer(votes.workers)
            prior[place >= 0] = self.membership_[place[place >= 0]]
            share = placed(groups, expected, prior, votes)[votes.worker]
        else:
            share = groups.weight * groups.votes(expected, votes)
            share /= np.maximum(share.sum(axis=1, keepdims=True), LEAST)
        frame = votes.to_frame()
        index = pd.MultiIndex.from_frame(frame[[name for name in ("task", "worker", "label") if name in frame]])
        return pd.DataFrame(share, index=index, columns=pd.RangeIndex(self.n_groups_, name="group"))


class _Best(NamedTuple):
    """The best iterate of all starts."""

    reached: Reached
    classifier: SoftClassifier
    trace: list[float]
    converged: bool
    restarts: pd.DataFrame


@dataclass
class _Watch:
    """A step that remembers the best iterate: a network's last epoch is seldom its best."""

    grouping: Grouping
    classifier: SoftClassifier
    best: tuple[Reached, SoftClassifier] | None = None

    def __call__(self, statistics: Statistics) -> tuple[Statistics, float]:
        reached = self.grouping.step(statistics, self.classifier)
        if self.best is None or reached.objective > self.best[0].objective:
            # Exact classifiers replace what they learn; networks change it in place.
            keep = copy.copy if self.classifier.exact else copy.deepcopy
            self.best = reached, keep(self.classifier)
        return reached.found, reached.objective


def _hidden(crowd: Crowd, random_state: int) -> tuple[Crowd, Crowd]:
    """The votes split at random; of a row that stands for several votes, each by itself."""
    if crowd.has_workers:
        return crowd.hide(HIDDEN, random_state=random_state)
    count = np.rint(crowd.weight).astype(np.int64)
    hidden = np.random.default_rng(random_state).binomial(count, HIDDEN).astype(np.float64)

    def part(weight: NDArray[np.float64]) -> Crowd:
        rows = weight > 0
        return Crowd(crowd.task[rows], None, crowd.label[rows], tasks=crowd.tasks, workers=None, classes=crowd.classes,
                     weight=weight[rows], duplicates="keep", tasks_given=crowd.tasks_given)  # fmt: skip

    return part(count - hidden), part(hidden)
