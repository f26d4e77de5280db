"""Spans of a crowd as objects with confidence."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from wisecrowd.aggregate.structured import _machine as machine
from wisecrowd.aggregate.structured._geometry import SpanGeometry
from wisecrowd.base.fields import method_class, parameter
from wisecrowd.base.mark_aggregator import MarkAggregator, MarkInference
from wisecrowd.data.answer_type import AnswerType
from wisecrowd.data.marks import MarkCrowd
from wisecrowd.data.spans import SpanCrowd


@method_class
class SpanConsensus(MarkAggregator):
    """Spans by match, decide and merge.

    *Match*: spans of different workers become objects by agglomeration on the Dice coefficient, with at most one span per worker
    and object. *Decide*: every object is real and of a class with a probability that follows from who marked it and who saw the
    text and did not; see `BoxConsensus`. *Merge*: start and end are the most probable of those that workers gave, because means
    would cut through words. The confidence of a span includes the probability that both ends are right.

    Offsets are characters or tokens; spans may overlap and nest.

    Examples
    --------
    >>> from wisecrowd import SpanConsensus, simulate_spans
    >>> simulation = simulate_spans(n_tasks=50, n_workers=8, random_state=0)
    >>> SpanConsensus().fit(simulation.crowd).objects_.columns.tolist()
    ['task', 'start', 'end', 'label', 'confidence', 'n_marks', 'n_votes']
    """

    answer_types: ClassVar[tuple[AnswerType, ...]] = ("spans",)
    crowd_class: ClassVar[type[MarkCrowd]] = SpanCrowd
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
        return machine.find_consensus(crowd, SpanGeometry(), settings)
