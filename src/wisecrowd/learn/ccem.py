"""CCEM: coupled cross-entropy minimisation of a network and confusion matrices (Ibrahim, Nguyen and Fu)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.fields import method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.nn.crowd_network import CrowdNetwork, ModelSizes
from wisecrowd.nn.deep_learner import DeepLearner
from wisecrowd.nn.softmax_confusion import START_HELP, SURE_HELP, SoftmaxConfusion
from wisecrowd.nn.vote_tensors import Batch

if TYPE_CHECKING:
    from torch import Tensor


@method_class
class CCEM(DeepLearner):
    """Network and one confusion matrix per worker, trained together on the votes.

        P(r gives l | x) = Σ_k f_k(x) π_r[k, l],   π_r[k, ·] = softmax(A_r[k, ·]),   loss: the mean of −log P(y_ir | x_i)

    This is the model of Raykar's EM, fitted by gradient descent. ``confusion_`` is π. Ibrahim et al. show that the
    votes determine f and π if some tasks of every class are certain by their features, and for every class some
    worker is nearly perfect. `GeoCrowdNet` adds a term for crowds in which that fails.

    A starts from the identity as in the paper, where π is nearly uniform. ``start="votes"`` counts the labels of each
    worker against the soft vote instead, which ties classes to labels from the first step.

    Benchmark: ``wisecrowd bench show all-learners``.

    Examples
    --------
    >>> from wisecrowd import CCEM, simulate_crowd
    >>> import numpy as np, pandas as pd
    >>> simulation = simulate_crowd(n_tasks=200, n_workers=10, n_classes=2, votes_per_task=3)
    >>> rng = np.random.default_rng(0)
    >>> x = 3.0 * (simulation.truth == simulation.crowd.classes[1]) + rng.normal(size=200)
    >>> X = pd.DataFrame({"x": x}, index=simulation.truth.index)
    >>> model = CCEM(epochs=20).fit(X, simulation.crowd)
    >>> bool(model.score(X, simulation.truth) > 0.9), model.confusion_.shape
    (True, (10, 2, 2))
    """

    references: ClassVar[tuple[str, ...]] = ("ibrahim2023deep",)
    separable: ClassVar[bool] = True

    start: Literal["identity", "votes"] = parameter(default="identity", help=START_HELP)
    sure: float = parameter(default=1.0, help=SURE_HELP)

    @property
    def _confusion(self) -> SoftmaxConfusion:
        return SoftmaxConfusion(self.start, self.sure)

    def _check_parameters(self, crowd: Crowd) -> None:
        super()._check_parameters(crowd)
        self._confusion.check_parameters()

    def _make_worker_parameters(self, sizes: ModelSizes) -> dict[str, Any]:
        return self._confusion.make_parameters(sizes)

    def _initialize_parameters(self, network: CrowdNetwork, crowd: Crowd) -> None:
        self._confusion.initialize(network, crowd)

    def _label_log_probs(self, batch: Batch) -> Tensor:
        return self._confusion.label_log_probs(batch)

    def confusion_of(self, workers: Iterable[int]) -> NDArray[np.float64]:
        """Return the trained confusion matrices π of some workers.

        Parameters
        ----------
        workers : iterable of int
            Positions of workers in ``worker_index_``.

        Returns
        -------
        ndarray of shape (len(workers), n_classes, n_classes)
        """
        self._check_fitted("posterior_")
        return self._confusion.matrices(self.network_, self._check_positions(workers))
