"""ZenCrowd: one accuracy per worker by maximum likelihood, with a uniform class prior."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.fields import method_class, parameter
from wisecrowd.data.pairs import Pairs
from wisecrowd.em.confusion import PRIOR_HELP, ConfusionEM
from wisecrowd.em.loop import Statistics
from wisecrowd.em.priors import compute_beta_log_density, estimate_accuracy, spread_errors
from wisecrowd.engines.base import Engine
from wisecrowd.errors import UsageError


@method_class
class ZenCrowd(ConfusionEM):
    """ZenCrowd: one accuracy per worker by maximum likelihood, starting from an initial accuracy.

    Model: y_ir = z_i with probability a_r, otherwise any other class with equal probability, and z_i uniform:

        E:  q_i(k) ∝ Π_r a_r^[y_ir = k] ((1 − a_r) / (K − 1))^[y_ir ≠ k]
        M:  a_r = Σ_i q_i(y_ir) / n_r

    It is `OneCoin` without pseudo-votes, and its first E-step gives every worker the accuracy ``initial_accuracy`` instead of
    starting from vote shares. The class prior stays uniform. This is the form in which ZenCrowd is compared with other methods
    (Zheng et al. 2017); the paper's model has factors for links and prior probabilities that plain votes do not have.

    Choose it to compare with published results. `OneCoin` regularises the accuracies; here a worker with few labels can have an
    accuracy of one.

    Examples
    --------
    >>> from wisecrowd import Crowd, ZenCrowd
    >>> votes = {"ann": "aabbab", "bob": "aabbab", "cy": "abbbaa"}
    >>> crowd = Crowd.from_triples([(i, name, label) for name, row in votes.items() for i, label in enumerate(row)])
    >>> fitted = ZenCrowd().fit(crowd)
    >>> "".join(fitted.labels_)
    'aabbab'
    >>> fitted.workers_["accuracy"].round(2).to_dict()
    {'ann': 1.0, 'bob': 1.0, 'cy': 0.67}
    """

    references: ClassVar[tuple[str, ...]] = ("demartini2012zencrowd", "zheng2017truth")
    unused_labels_are_equal: ClassVar[bool] = True

    smoothing: float = parameter(
        default=0.0, help="Number of pseudo-votes for each wrong label, and for the right one."
    )
    diagonal: float = parameter(default=0.0, help="Number of further pseudo-votes for the right label.")
    prior: Literal["estimate", "uniform"] | Any = parameter(default="uniform", help=PRIOR_HELP)
    initial_accuracy: float = parameter(default=0.8, help="Accuracy of every worker in the first E-step.")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not 0 < self.initial_accuracy < 1:
            raise UsageError(f"initial_accuracy must lie between 0 and 1, for example 0.8; got {self.initial_accuracy}")

    def _estimate_accuracy(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[np.float64]:
        """Return the accuracy of every worker."""
        return estimate_accuracy(tally, pairs, *self.accuracy_pseudo_votes(tally.shape[1]))

    def _label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        return spread_errors(self._estimate_accuracy(tally, pairs).astype(tally.dtype), pairs, tally.shape[1])

    def _log_prior(self, tally: NDArray[Any], pairs: Pairs) -> float:
        accuracy = self._estimate_accuracy(tally, pairs)
        return compute_beta_log_density(accuracy, *self.accuracy_pseudo_votes(tally.shape[1]))

    def _initialize(self, engine: Engine, start: Any, dtype: type) -> Iterator[Statistics]:
        starts = super()._initialize(engine, start, dtype)
        if start is None:
            pairs, n_classes = engine.crowd.pairs, engine.crowd.n_classes
            accuracy: NDArray[Any] = np.full(pairs.n_workers, self.initial_accuracy, dtype=dtype)
            label_probs = spread_errors(accuracy, pairs, n_classes)
            expectation = engine.expect(np.full(n_classes, 1 / n_classes), label_probs)
            yield Statistics(expectation.class_counts, expectation.tally)
            starts = islice(starts, 1, None)  # the first one is the vote shares
        yield from starts
