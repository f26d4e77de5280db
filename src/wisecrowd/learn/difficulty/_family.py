"""EM with a classifier as the prior of every task and workers who fail on hard tasks: Xu et al. (2019), once.

z_i | x_i ~ f(x_i),   P(y_ir | z_i = k) by worker r's ability a_rk and the easiness s_i of the task (see `_responses`)

E:  q_i(k) ∝ f_k(x_i) Π_r P(y_ir | k; a_rk s_i)
M:  a_rk by Newton's method;  f by what the method believes of easiness
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.fields import method_class, parameter
from wisecrowd.classifiers.soft import SoftClassifier
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.classifier import CLIP, posterior_of
from wisecrowd.em.classifier_fields import ClassifierLearner, taught_by
from wisecrowd.em.initialization import apply_gold, vote_shares
from wisecrowd.em.loop import Statistics, iterate
from wisecrowd.errors import UsageError, one_of
from wisecrowd.kernels.reference import LEAST
from wisecrowd.learn.difficulty._responses import MOST, Anchor, Array, Responses, confusion_at, easiness_of
from wisecrowd.utils import progress

#: Pseudo-votes in every cell, and for being right, where a worker's ability is read off the votes to begin with.
SMOOTHING, DIAGONAL = 0.1, 1.0


@method_class
class DifficultyEM(ClassifierLearner):
    """Every model in which a task's easiness scales what a worker's ability makes of it.

    After ``fit``: ``tasks_`` tells the easiness and difficulty of every task, ``workers_`` the abilities by class (and
    sensitivity and specificity when there are two), ``confusion_`` what workers say on the *easiest* task.

    >>> from wisecrowd import AdaptiveDifficulty
    >>> issubclass(AdaptiveDifficulty, DifficultyEM)
    True
    """

    ability_update: Literal["map", "ml", "frozen"] = parameter(
        default="map", help="'map': abilities near those of the soft vote, 'ml': anywhere, 'frozen': there"
    )
    allow_adversarial: bool = parameter(default=False, help="let abilities be negative: worse than guessing")
    max_iter: int = parameter(default=200, help="passes at most")
    tol: float = parameter(default=1e-6, help="stop when the objective changes by less than this fraction")
    verbose: bool = parameter(default=False, help="draw a progress bar")

    # ------------------------------------------------------------------ what a member of the family says

    @abstractmethod
    def _precision(self, crowd: Crowd) -> Array:
        """How sure the prior of each worker's abilities, centred on those of the soft vote, is: (workers,)."""

    @abstractmethod
    def _belief(self, expected: Array, posterior: Array) -> Array | None:
        """The distribution over classes whose distance from uniform is the easiness; None where all tasks are easiest."""

    def _teach(
        self,
        model: SoftClassifier,
        X: Array,
        posterior: Array,
        ability: Array,
        responses: Responses,
    ) -> None:
        """The M-step of the classifier: to fit the posterior, unless easiness depends on it."""
        model.fit(X, posterior)

    def _prepare(self, crowd: Crowd) -> None:
        """Whatever is known of the tasks before anything is learnt."""

    def _prior(self, expected: Array) -> Array:
        """What the E-step weighs the votes against: the classifier, unless the method says otherwise."""
        return expected

    def _exact(self, model: SoftClassifier) -> bool:
        """Whether no step can lower the objective."""
        return model.exact

    # ------------------------------------------------------------------ the iteration

    def _fit(self, X: Array, crowd: Crowd, gold: NDArray[np.int32] | None) -> None:
        self._check()
        with progress.shown(self.verbose):
            self._run(X, crowd, gold)

    def _check(self) -> None:
        one_of("ability_update", self.ability_update, ("map", "ml", "frozen"))
        if self.max_iter < 1:
            raise UsageError(f"max_iter must be 1 or more; got {self.max_iter}")
        if self.l2 is not None and self.l2 < 0:
            raise UsageError(f"l2 must not be negative; got {self.l2}")

    def _run(self, X: Array, crowd: Crowd, gold: NDArray[np.int32] | None) -> None:
        self._prepare(crowd)
        responses = Responses(crowd)
        taught = taught_by(crowd.layout, gold)
        model, least = self._new_classifier(), -MOST if self.allow_adversarial else 0.0
        floor = LEAST if model.exact else CLIP
        start = apply_gold(vote_shares(crowd), gold)
        centre = np.maximum(responses.agreement(start, SMOOTHING, DIAGONAL), least)
        anchor = Anchor(centre, self._precision(crowd) if self.ability_update == "map" else np.zeros(len(centre)))
        rows = X if taught.all() else X[taught]
        voted = responses if taught.all() else Responses(crowd[np.flatnonzero(taught)])

        def expect() -> Array:
            return _normal(np.maximum(model.predict_proba(X), floor))

        def infer(posterior: Array, ability: Array, expected: Array) -> tuple[Array, float]:
            """The E-step."""
            self.expected_ = expected
            self.easiness_ = self._easiness(expected, posterior)
            joint = np.log(self._prior(expected)) + responses.evidence(ability, self.easiness_)
            return posterior_of(joint, taught, gold)

        def step(statistics: Statistics) -> tuple[Statistics, float]:
            posterior, ability = statistics
            # The classifier first: that of the soft vote is so unsure of everything that abilities would have to be huge.
            self._teach(model, rows, posterior[taught], ability, voted)
            expected = expect()
            if self.ability_update != "frozen":
                easiness = self._easiness(expected, posterior)
                ability = responses.abilities(posterior, easiness, ability, anchor, least=least)
            found, log_likelihood = infer(posterior, ability, expected)
            return Statistics(found, ability), log_likelihood + model.log_prior() + anchor.log_density(ability)

        model.fit(rows, start[taught])
        first, _ = infer(start, centre, expect())
        run = iterate(
            step, Statistics(first, centre), max_iter=self.max_iter, tol=self.tol, accelerate=False,
            monotone=self._exact(model), what=type(self).__name__,
        )  # fmt: skip
        self.trace_, self.n_iter_, self.converged_ = np.asarray(run.trace), len(run.trace), run.converged
        self.ability_, self.classifier_ = run.statistics.tally, model
        self._set_fitted(crowd, run.statistics.classes)
        self.n_votes_ = crowd.votes.sum(axis=1)

    def _easiness(self, expected: Array, posterior: Array) -> Array:
        belief = self._belief(expected, posterior)
        return np.ones(len(expected)) if belief is None else easiness_of(belief)

    # ------------------------------------------------------------------ what was learnt

    @property
    def tasks_(self) -> pd.DataFrame:
        """How easy each task is (1: as easy as can be, 0: everybody guesses), its difficulty 1 − easiness, its labels."""
        columns = {
            "difficulty": 1 - self._check_fitted("easiness_"),
            "easiness": self.easiness_,
            "n_votes": self.n_votes_,
        }
        return pd.DataFrame(columns, index=self.task_index_.rename("task"))

    def _worker_columns(self) -> dict[str, NDArray[Any]]:
        """Besides the usual: abilities (log-odds on the easiest task) by class; of two classes, the second is positive."""
        columns = super()._worker_columns()
        columns |= {f"ability_{name}": self.ability_[:, k] for k, name in enumerate(self.classes_)}
        if len(self.classes_) == 2:
            right = np.diagonal(confusion_at(self.ability_), axis1=1, axis2=2)
            columns |= {"sensitivity": right[:, 1], "specificity": right[:, 0]}
        return columns

    def confusion_of(self, workers: Any) -> Array:
        """What some workers, by position, say on the easiest task: (chosen workers, true, said)."""
        return confusion_at(self._check_fitted("ability_")[self._chosen(workers)])

    def predict_worker_proba(self, X: Any, workers: Any) -> Array:
        """What each of some workers (by id) would say of tasks, hard ones included: (tasks, workers, classes).

        A worker who was not seen in training has the mean ability of the crowd.
        """
        expected = self.predict_proba(X)
        known = self._places_of(workers)
        ability = np.where((known >= 0)[:, None], self.ability_[known], self.ability_.mean(axis=0))
        right = confusion_at(ability, self._easiness_ahead(expected)[:, None, None])  # (tasks, workers, true, said)
        return np.asarray(np.einsum("nk,nrkl->nrl", expected, right))

    def _easiness_ahead(self, expected: Array) -> Array:
        """How easy tasks without votes will be."""
        return self._easiness(expected, expected)


def _normal(share: Array) -> Array:
    return np.asarray(share / share.sum(axis=1, keepdims=True))
