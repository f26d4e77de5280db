"""Wawa: workers weighted by their agreement with the majority."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.aggregate.categorical._weighted_vote import DistributedPoll, WeightedVote
from wisecrowd.base.fields import ENGINE_HELP, N_JOBS_HELP, method_class, parameter


@method_class
class Wawa(WeightedVote):
    """Weighted vote in which the weight of a worker is the agreement with the majority (worker agreement with aggregate).

        w_r = share of r's labels that agree with the majority,   q_i(k) ∝ Σ_r w_r [y_ir = k]

    Choose it as a cheap and robust step beyond majority vote when workers differ and have few labels each. The weights are
    accuracies, so the weight of a random guesser is 1/K. `IWMV` subtracts that and iterates; `OneCoin` is the probabilistic
    model behind both.

    Ties of the first vote are split. Implementations that give ties to the first class get other results where ties are many.

    Examples
    --------
    >>> from wisecrowd import Crowd, Wawa
    >>> crowd = Crowd.from_triples([(task, worker, (task + (worker == "bad")) % 2) for task in range(8) for worker in
    ...                             ("ann", "bob", "bad")])
    >>> Wawa().fit(crowd).workers_["weight"].to_dict()
    {'ann': 1.0, 'bad': 0.0, 'bob': 1.0}
    """

    references: ClassVar[tuple[str, ...]] = ("ustalov2024learning",)
    streams: ClassVar[bool] = True

    n_jobs: int = parameter(default=1, help=N_JOBS_HELP)
    engine: str = parameter(default="local", help=ENGINE_HELP)

    def _estimate_weights(self, poll: DistributedPoll) -> NDArray[np.float64]:
        return poll.compute_agreement()
