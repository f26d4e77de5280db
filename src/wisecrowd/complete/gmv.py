"""GMV: missing votes drawn from the votes on the task."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.completer import Completer, WorkerLabelProbs
from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.initialization import compute_vote_shares


@method_class
class GMV(Completer):
    """Completion by the vote shares of the task.

        P(label l of worker r on task i) = n_il / n_i

    for every worker r. The method uses neither features nor a model of the workers, so it adds no information to the votes. It
    is a baseline, as in the paper, whose text says that labels are drawn by the ability of workers; the program of the authors
    draws them as above. A task without votes gets the label shares of all tasks together.

    Examples
    --------
    >>> from wisecrowd import GMV, Crowd
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog"), ("t2", "cy", "dog")])
    >>> GMV().fit(crowd).predict_worker_proba(["t1"], ["cy"]).tolist()
    [[[0.5, 0.5]]]
    """

    references: ClassVar[tuple[str, ...]] = ("han2025mmlc",)

    fill_mode: Literal["hard", "sample", "soft"] = parameter(
        default="sample",
        help="Labels to fill in: 'sample' for a random one, 'hard' for the most probable one, 'soft' for all of them, "
        "weighted by their probabilities.",
    )

    shares_: NDArray[np.float64] = fitted(
        help="Label probabilities by task.", shape=("n_tasks", "n_classes"), finite=True
    )

    def _fit(self, crowd: Crowd, X: NDArray[np.float64] | None) -> None:
        shares = compute_vote_shares(crowd)
        shares[crowd.votes_per_task == 0] = crowd.vote_counts.sum(axis=0) / crowd.vote_counts.sum()
        self.shares_ = shares

    def _worker_label_probs(self, tasks: NDArray[np.intp], workers: NDArray[np.intp]) -> WorkerLabelProbs:
        shares = self.shares_[tasks]
        return WorkerLabelProbs(np.broadcast_to(shares[:, None], (len(tasks), len(workers), shares.shape[1])))
