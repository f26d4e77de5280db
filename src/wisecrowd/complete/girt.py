"""GIRT: missing votes by the ability of the worker and the difficulty of the task."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from wisecrowd.base.completer import Completer, WorkerLabelProbs
from wisecrowd.base.fields import POSTERIOR_HELP, fitted, method_class, parameter
from wisecrowd.base.registry import find
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import UsageError


@method_class
class GIRT(Completer):
    """Completion by item response theory: the ability of the worker against the difficulty of the task.

        P(label l of worker r on task i) = q_i(l) s_ir + (1 − q_i(l)) (1 − s_ir) / (K − 1),   s_ir = g + (1 − g) σ(θ_r − b_i)

    with the posterior q, the abilities θ and the difficulties b of `Rasch`. A worker without votes has the expected ability, and
    a task without votes the expected difficulty and the class shares.

    The paper calls the method G_IRT and describes it as above. The program of its authors mixes two models: the posterior follows
    from σ(a·eᵇ), as in GLAD, the likelihood contains σ(a − eᵇ), and the gradient belongs to neither; missing votes follow from
    the most probable class alone. Here one model is fitted by EM to the votes, and all classes count with their probability.

    The method uses no features and does not know which classes a worker confuses. `DSFill` does, and predicts votes better where
    workers have enough votes to estimate that; with few votes and many classes, GIRT is better. Benchmark:
    ``wisecrowd bench show all-completers``.

    Examples
    --------
    >>> from wisecrowd import GIRT, simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=100, n_workers=10, n_classes=3, votes_per_task=4)
    >>> model = GIRT().fit(simulation.crowd)
    >>> filled = model.fill()
    >>> filled.n_votes, model.predict_worker_proba(filled.tasks[:2]).shape
    (1000, (2, 10, 3))
    """

    references: ClassVar[tuple[str, ...]] = ("han2025mmlc", "rasch1960probabilistic")

    fill_mode: Literal["hard", "sample", "soft"] = parameter(
        default="sample",
        help="Labels to fill in: 'sample' for a random one, 'hard' for the most probable one, 'soft' for all of them, "
        "weighted by their probabilities.",
    )
    guessing: float | Literal["chance"] = parameter(
        default=0.0, help="Probability g of being right by guessing; 'chance' is one over the number of classes."
    )

    posterior_: NDArray[Any] = fitted(help=POSTERIOR_HELP, shape=("n_tasks", "n_classes"), finite=True)
    ability_: NDArray[np.float64] = fitted(help="Ability θ of every worker.", shape=("n_workers",), finite=True)
    difficulty_: NDArray[np.float64] = fitted(help="Difficulty b of every task.", shape=("n_tasks",), finite=True)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        guessing: Any = self.guessing
        if guessing != "chance" and not (isinstance(guessing, int | float) and 0 <= guessing < 1):
            raise UsageError(f"guessing must be 'chance', or a probability below 1; got {guessing!r}")

    def _fit(self, crowd: Crowd, X: NDArray[np.float64] | None) -> None:
        rasch: Any = find("rasch")(guessing=self.guessing)  # type: ignore[call-arg]  # a class found by name
        rasch.fit(crowd)
        self.posterior_, self.ability_ = rasch.posterior_, rasch.ability_
        self.difficulty_ = rasch.tasks_["difficulty"].to_numpy(dtype=np.float64)

    def _worker_label_probs(self, tasks: NDArray[np.intp], workers: NDArray[np.intp]) -> WorkerLabelProbs:
        n_classes = len(self.classes_)
        if n_classes == 1:
            return WorkerLabelProbs(np.ones((len(tasks), len(workers), 1)))
        guessing = 1 / n_classes if self.guessing == "chance" else float(self.guessing)
        right = guessing + (1 - guessing) * expit(self.ability_[workers] - self.difficulty_[tasks, None])
        wrong = (1 - right) / (n_classes - 1)
        return WorkerLabelProbs(wrong[:, :, None] + self.posterior_[tasks][:, None] * (right - wrong)[:, :, None])
