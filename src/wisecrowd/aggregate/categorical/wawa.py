"""Wawa: workers weigh as much as they agree with the majority."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.aggregate.categorical._weighting import AdditiveVote, Polls
from wisecrowd.base.fields import method_class


@method_class
class Wawa(AdditiveVote):
    """Vote once, weigh every worker by agreement with the outcome, and vote again.

        w_r = share of r's labels that agree with the majority,   q_i(k) ∝ Σ_r w_r [y_ir = k]

    Choose it for a cheap and robust step beyond majority vote when workers differ and have few labels each: one number
    per worker cannot go far wrong. Its weights are accuracies, so somebody who guesses still counts 1/K; `IWMV` takes
    that off and goes on until nothing changes, and `OneCoin` is the model behind both.

    Ties of the first vote are split. Implementations that give them to the first class of all get other figures where
    ties are many: .817 on web search, where splitting gives .799 and the last class .765; elsewhere it is half a point.

    >>> from wisecrowd import Crowd, Wawa
    >>> crowd = Crowd.from_triples([(task, worker, (task + (worker == "bad")) % 2) for task in range(8) for worker in
    ...                             ("ann", "bob", "bad")])
    >>> Wawa().fit(crowd).workers_["weight"].to_dict()
    {'ann': 1.0, 'bad': 0.0, 'bob': 1.0}
    """

    references: ClassVar[tuple[str, ...]] = ("ustalov2024learning",)

    def _weigh(self, poll: Polls) -> NDArray[np.float64]:
        return poll.agreement()
