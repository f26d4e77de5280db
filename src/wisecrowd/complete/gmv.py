"""GMV: a missing vote is one of the task's own."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.completer import Answers, Completer
from wisecrowd.base.fields import method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.initialization import vote_shares


@method_class
class GMV(Completer):
    """Every missing vote is drawn from the votes that the task has.

        P(r says l of task i) = n_il / n_i

    whoever r is. Features are not looked at, nor what workers are like: nothing is added to the votes, and no aggregator
    can gain by it but by luck. It is here to be beaten, as in the paper, whose text says that it draws by workers' ability
    where the authors' program draws as above. A task without votes is answered as all tasks together are.

    >>> from wisecrowd import GMV, Crowd
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog"), ("t2", "cy", "dog")])
    >>> GMV().fit(crowd).predict_worker_proba(["t1"], ["cy"]).tolist()
    [[[0.5, 0.5]]]
    """

    references: ClassVar[tuple[str, ...]] = ("han2025mmlc",)

    answers: Literal["hard", "sample", "soft"] = parameter(default="sample", help="'sample' draws a label, 'hard' takes the likeliest, 'soft' gives each its share")  # fmt: skip

    def _fit(self, crowd: Crowd, X: NDArray[np.float64] | None) -> None:
        self.shares_ = vote_shares(crowd)
        unlabelled = crowd.votes_per_task == 0
        self.shares_[unlabelled] = crowd.votes.sum(axis=0) / crowd.votes.sum()

    def _worker_label_probs(self, tasks: NDArray[np.intp], workers: NDArray[np.intp]) -> Answers:
        shares = self.shares_[tasks]
        return Answers(np.broadcast_to(shares[:, None], (len(tasks), len(workers), shares.shape[1])))
