"""ZenCrowd: one accuracy per worker, even classes, and trust in advance."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.aggregate.categorical.one_coin import OneCoin
from wisecrowd.base.fields import method_class, parameter
from wisecrowd.em.loop import Statistics
from wisecrowd.engines.base import Engine
from wisecrowd.errors import UsageError


@method_class
class ZenCrowd(OneCoin):
    """Every worker has one accuracy, by maximum likelihood from trust in everybody; all classes are equally likely.

    Model: y_ir = z_i with probability a_r, otherwise any other class alike, and z_i uniform:

        E:  q_i(k) ∝ Π_r a_r^[y_ir = k] ((1 − a_r) / (K − 1))^[y_ir ≠ k]
        M:  a_r = Σ_i q_i(y_ir) / n_r

    It is `OneCoin` without pseudo-votes, and its first E-step takes every worker to be right with probability
    ``initial_accuracy`` instead of taking the vote shares for posteriors. The class prior is never updated. This is the
    form in which ZenCrowd is compared with others (Zheng et al. 2017); the paper's model has factors for links and
    prior probabilities that plain votes do not come with.

    Choose it to compare with published figures. `OneCoin` does the same more carefully: here a worker with few labels can be
    held to be infallible.

    >>> from wisecrowd import Crowd, ZenCrowd
    >>> votes = {"ann": "aabbab", "bob": "aabbab", "cy": "abbbaa"}
    >>> crowd = Crowd.from_triples([(i, name, label_probs) for name, row in votes.items() for i, label_probs in enumerate(row)])
    >>> fitted = ZenCrowd().fit(crowd)
    >>> "".join(fitted.labels_)
    'aabbab'
    >>> fitted.workers_["accuracy"].round(2).to_dict()
    {'ann': 1.0, 'bob': 1.0, 'cy': 0.67}
    """

    references: ClassVar[tuple[str, ...]] = ("demartini2012zencrowd", "zheng2017truth")

    smoothing: float = parameter(default=0.0, help="pseudo-votes for each way of being wrong, and for being right")
    diagonal: float = parameter(default=0.0, help="further pseudo-votes for being right")
    initial_accuracy: float = parameter(default=0.8, help="what every worker is trusted with at first")

    def _check(self) -> None:
        super()._check()
        if not 0 < self.initial_accuracy < 1:
            raise UsageError(f"initial_accuracy must lie between 0 and 1, for example 0.8; got {self.initial_accuracy}")

    def _starts(self, engine: Engine, start: Any, dtype: type) -> Iterator[Statistics]:
        others = super()._starts(engine, start, dtype)
        if start is None:
            pairs, n_classes = engine.crowd.pairs, engine.crowd.n_classes
            label_probs: NDArray[Any] = np.full(
                (len(pairs), n_classes), (1 - self.initial_accuracy) / max(n_classes - 1, 1), dtype=dtype
            )
            label_probs[np.arange(len(pairs)), pairs.label] = self.initial_accuracy
            found = engine.expect(np.full(n_classes, 1 / n_classes), label_probs)
            yield Statistics(found.classes, found.tally)
            others = islice(others, 1, None)  # what they begin with are the vote shares
        yield from others
