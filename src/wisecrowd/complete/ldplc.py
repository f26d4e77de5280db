"""LDPLC: what a worker would say of a task is like what they would say of similar tasks."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from wisecrowd.base.completer import Answers
from wisecrowd.base.fields import method_class, parameter
from wisecrowd.classifiers.neighbours import range_scaled, reconstruction_weights
from wisecrowd.complete.wslc import WSLC
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.priors import blocks
from wisecrowd.errors import UsageError
from wisecrowd.utils.progress import report

#: Bytes that the answers of all workers to all tasks may take.
LIMIT = 2**31


@method_class
class LDPLC(WSLC):
    """What `WSLC` expects a worker to say, then spread over tasks that look alike, worker by worker.

    Label distribution propagation-based label completion. Every worker has a distribution for every task, P_ir; it is the
    label where there is one, and stays so. The others begin as `WSLC` has them, and take from the tasks most alike:

        w_i  = argmin |x_i − Σ_j w_ij x_j|²,   w_ij ≥ 0,  Σ_j w_ij = 1,  j among the k nearest neighbours of i
        P_ir ← λ P⁰_ir + (1 − λ) Σ_j w_ij P_jr,   ``rounds`` times

    with features on the range 0 to 1 and λ = ``keep``. k = 5, λ = 0.5 and 5 rounds are those of the authors' program; theirs
    solves a quadratic program for the weights, to which a small ridge is added here, for several weights may do. A task that
    nobody labelled takes all from its neighbours and gives nothing.

    What it adds to `WSLC` comes from features: a worker's own labels reach five steps, and most of what travels is what
    other workers said of neighbouring tasks. `MNLDP`, which spreads the votes of all without asking who cast them, gains as
    much (music genres .777, scenes .822, leaves .648), so that there is little to credit the worker model with. Measured
    with ``fill_weight=1``, accuracy of majority vote before and after: music genres .704 and .774 (.769 with 124 features
    instead of 31), scenes .766 and .820, leaves .643 and .646, incomes .721 and .715. Of a fifth of the votes that was hidden
    (5 times) it foretold .50, .73, .64 and .68, where `WSLC` had .45, .65, .63 and .64.

    A round passes over tasks x workers x classes numbers, for that is what there is to fill in. Workers do not touch each
    other's answers, so some are done at a time, when answers are first asked for; they are kept in single precision (and not
    saved) if those of all workers fit into 2 GB, else those of the workers who are asked about. Beyond that it says so:
    ``min_labels`` leaves out workers with few labels.

    >>> import numpy as np, pandas as pd
    >>> from wisecrowd import LDPLC, Crowd
    >>> X = pd.DataFrame({"size": [1.0, 1.1, 1.2, 5.0, 5.1, 5.2]}, index=range(6))
    >>> crowd = Crowd.from_triples([(0, "ann", "cat"), (1, "ann", "cat"), (2, "bob", "cat"), (3, "bob", "dog"),
    ...                             (4, "ann", "dog"), (5, "cy", "cat")], tasks=X.index)
    >>> LDPLC(k=2).fit(crowd, X).predict_worker_proba([5], ["ann"]).round(2).tolist()  # half by cy, half by task 4
    [[[0.5, 0.5]]]
    """

    references: ClassVar[tuple[str, ...]] = ("wu2025label",)

    k: int = parameter(default=5, help="neighbours of a task")
    keep: float = parameter(default=0.5, help="share of what was expected at first, above 0 up to 1")
    rounds: int = parameter(default=5, help="how often answers are passed on")

    def _check(self) -> None:
        super()._check()
        if self.k < 1 or self.rounds < 0 or not 0 < self.keep <= 1:
            raise UsageError(
                "k must be 1 or more, rounds 0 or more, and keep a share above 0 and at most 1; "
                f"got {self.k}, {self.rounds} and {self.keep}"
            )

    def _fit(self, crowd: Crowd, X: NDArray[np.float64] | None) -> None:
        assert X is not None
        super()._fit(crowd, X)
        informed = crowd.votes_per_task > 0
        graph = reconstruction_weights(range_scaled(X, informed), self.k, informed)
        self.edge_weight_, self.edge_to_, self.edge_offset_ = graph.data, graph.indices, graph.indptr
        self._forget()

    def _worker_label_probs(self, tasks: NDArray[np.intp], workers: NDArray[np.intp]) -> Answers:
        place, answers = self._answers(workers)
        return Answers(answers[np.ix_(tasks, place[workers])].astype(np.float64))

    def _answers(self, workers: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """Answers to all tasks of these workers at least, and where each worker's are; made when first asked for."""
        held: tuple[NDArray[np.intp], NDArray[np.float32]] | None = vars(self).get("_held")
        if held is not None and (held[0][workers] >= 0).all():
            return held
        n_tasks, n_workers = self._crowd.shape
        cell = n_tasks * len(self.classes_) * np.dtype(np.float32).itemsize
        wanted = np.arange(n_workers) if n_workers * cell <= LIMIT else np.unique(workers)
        if len(wanted) * cell > LIMIT:
            raise UsageError(
                f"what {len(wanted):,} workers would say of {n_tasks:,} tasks of {len(self.classes_):,} classes takes "
                f"{len(wanted) * cell / 2**30:.1f} GB, and LDPLC keeps {LIMIT / 2**30:.0f} GB at most; fill in for fewer workers "
                f"(min_labels=..., for {LIMIT // cell:,} of them), for fewer tasks at a time, or take WSLC"
            )
        self._forget()
        place = np.full(n_workers, -1)
        place[wanted] = np.arange(len(wanted))
        answers = np.empty((n_tasks, len(wanted), len(self.classes_)), dtype=np.float32)
        parts = blocks(len(wanted), n_tasks * len(self.classes_))
        for done, part in enumerate(parts, start=1):
            answers[:, part] = self._spread(wanted[part])
            report("LDPLC: passing on", done, len(parts))
        self._held = place, answers
        return self._held

    def _spread(self, workers: NDArray[np.intp]) -> NDArray[np.float64]:
        """What some workers would say of all tasks: (tasks, workers, classes)."""
        crowd, n_classes = self._crowd, len(self.classes_)
        first = super()._worker_label_probs(np.arange(crowd.n_tasks), workers).proba
        place = np.full(crowd.n_workers, -1)
        place[workers] = np.arange(len(workers))
        vote = np.flatnonzero(place[crowd.worker_codes] >= 0)
        task, column = crowd.task[vote], place[crowd.worker_codes[vote]]
        own = np.zeros_like(first)
        np.add.at(own, (task, column, crowd.label[vote]), crowd.weight[vote])
        own = own[task, column] / own[task, column].sum(axis=1, keepdims=True)
        first[task, column] = own
        graph = csr_array((self.edge_weight_, self.edge_to_, self.edge_offset_), shape=(crowd.n_tasks, crowd.n_tasks))
        keep = np.where(crowd.votes_per_task > 0, self.keep, 0.0)[:, None]
        answers, flat = first, first.reshape(crowd.n_tasks, -1)
        for _ in range(self.rounds):
            passed = graph @ answers.reshape(crowd.n_tasks, -1)
            passed *= 1 - keep
            passed += keep * flat
            answers = passed.reshape(-1, len(workers), n_classes)
            answers[task, column] = own
        return answers

    def _forget(self) -> None:
        vars(self).pop("_held", None)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_held"}
