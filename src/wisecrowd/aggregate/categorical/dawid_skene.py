"""Dawid and Skene's model: one confusion matrix per worker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from numpy.typing import NDArray

from wisecrowd.aggregate.categorical._spectral_initialization import (
    INIT_HELP,
    compute_spectral_statistics,
    uses_spectral_start,
)
from wisecrowd.base.fields import method_class, parameter
from wisecrowd.data.pairs import Pairs
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.em.loop import Statistics
from wisecrowd.em.priors import compute_smoothing_log_prior, estimate_smoothed_probs
from wisecrowd.engines.base import Engine


@method_class
class DawidSkene(ConfusionEM):
    """Dawid–Skene model with one confusion matrix per worker, fitted by EM.

    Model: z_i ~ ρ and y_ir | z_i = k ~ π_r[k, ·], with pseudo-votes s_kl = smoothing + diagonal·[k = l] (a Dirichlet prior):

        E:  q_i(k) ∝ ρ_k Π_r π_r[k, y_ir]
        M:  π_r[k, l] = (n_r[k, l] + s_kl) / (n_r[k, ·] + s_k·),   n_r[k, l] = Σ_i q_i(k) [y_ir = l]

    Choose it when workers label many tasks each (about five per cell of their matrix) and err in different ways: it detects
    class-specific bias and adversaries. With few labels per worker or many classes it has too many parameters; use
    `OneCoin` or majority vote there. Maximum likelihood (``smoothing=0, diagonal=0``) is less accurate than majority vote
    on sparse data. With a single vote per task nothing distinguishes workers, and the model can put all tasks into one
    class; it warns then.

    Examples
    --------
    >>> from wisecrowd import DawidSkene, MajorityVote, simulate_crowd
    >>> simulation = simulate_crowd(n_tasks=300, n_workers=20, n_classes=3, votes_per_task=5)
    >>> fitted = DawidSkene().fit(simulation.crowd)
    >>> majority = MajorityVote().fit(simulation.crowd)
    >>> bool((fitted.labels_ == simulation.truth).mean() > (majority.labels_ == simulation.truth).mean())
    True
    >>> fitted.confusion_.shape
    (20, 3, 3)
    """

    references: ClassVar[tuple[str, ...]] = ("dawid1979maximum",)
    unused_labels_are_equal: ClassVar[bool] = True

    init: Literal["votes", "spectral"] = parameter(default="votes", help=INIT_HELP)

    def _label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        return estimate_smoothed_probs(tally, pairs, self.smoothing, self.diagonal)

    def _log_prior(self, tally: NDArray[Any], pairs: Pairs) -> float:
        return compute_smoothing_log_prior(tally, pairs, self.smoothing, self.diagonal)

    def _initialize(self, engine: Engine, start: Any, dtype: type) -> Iterator[Statistics]:
        if uses_spectral_start(self.init, start):
            yield compute_spectral_statistics(engine, dtype, self.random_state, "confusion")
        else:
            yield from super()._initialize(engine, start, dtype)
