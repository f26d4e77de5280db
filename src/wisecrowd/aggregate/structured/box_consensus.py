"""Boxes of a crowd as objects with confidence."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from wisecrowd.aggregate.structured import _machine as machine
from wisecrowd.aggregate.structured._geometry import BoxGeometry
from wisecrowd.base.fields import method_class, parameter
from wisecrowd.base.mark_aggregator import MarkAggregator, MarkInference
from wisecrowd.data.answer_type import AnswerType
from wisecrowd.data.boxes import BoxCrowd
from wisecrowd.data.marks import MarkCrowd


@method_class
class BoxConsensus(MarkAggregator):
    """Boxes by match, decide and merge.

    *Match*: boxes of different workers become objects by agglomeration on the Dice coefficient, with at most one box per worker
    and object. *Decide*: every object is real with a probability that follows from who marked it and who saw the image and did
    not. Workers have detection rates, false alarms and confusion matrices; objects are easy or difficult, because most workers
    overlook what is small or crowded. *Merge*: edges are means weighted by the precision of workers. There is no quorum to choose:
    the confidence from which an object is chosen maximises the expected F1 score.

    Assignments matter. A worker who saw an image and marked nothing has voted "absent" on all of its objects.

    Examples
    --------
    >>> from wisecrowd import BoxConsensus, simulate_boxes
    >>> simulation = simulate_boxes(n_tasks=50, n_workers=8, random_state=0)
    >>> BoxConsensus().fit(simulation.crowd).objects_.columns.tolist()
    ['task', 'x', 'y', 'width', 'height', 'label', 'confidence', 'n_marks', 'n_votes']
    """

    answer_types: ClassVar[tuple[AnswerType, ...]] = ("boxes",)
    crowd_class: ClassVar[type[MarkCrowd]] = BoxCrowd
    references: ClassVar[tuple[str, ...]] = ("branson2017lean", "dawid1979maximum")

    model: Literal["detection", "majority"] = parameter(default="detection", help=machine.MODEL_HELP)
    min_similarity: float = parameter(default=0.5, help=machine.MIN_SIMILARITY_HELP)
    n_rounds: int = parameter(default=2, help=machine.N_ROUNDS_HELP)
    shrinkage: float = parameter(default=10.0, help=machine.SHRINKAGE_HELP)
    max_iter: int = parameter(default=1000, help=machine.MAX_ITER_HELP)
    tol: float = parameter(default=1e-4, help=machine.TOL_HELP)

    def _infer_objects(self, crowd: MarkCrowd, documents: Any) -> MarkInference:
        settings = machine.ConsensusSettings(
            self.model, self.min_similarity, self.n_rounds, self.shrinkage, self.max_iter, self.tol
        )
        return machine.find_consensus(crowd, BoxGeometry(), settings)
