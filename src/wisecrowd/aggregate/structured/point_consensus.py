"""Points of a crowd as objects with confidence."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from wisecrowd.aggregate.structured import _machine as machine
from wisecrowd.aggregate.structured._geometry import PointGeometry, estimate_radius
from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.base.mark_aggregator import MarkAggregator, MarkInference
from wisecrowd.data.answer_type import AnswerType
from wisecrowd.data.marks import MarkCrowd
from wisecrowd.data.points import PointCrowd
from wisecrowd.errors import UsageError


@method_class
class PointConsensus(MarkAggregator):
    """Points by match, decide and merge.

    Points of different workers become objects by agglomeration on a similarity that is 1/2 at the distance ``radius``; the rest is
    as in `BoxConsensus`.

    Examples
    --------
    >>> from wisecrowd import PointConsensus
    >>> points = {"task": ["i"] * 3, "worker": ["ann", "bob", "cy"], "x": [10.0, 12.0, 11.0], "y": [5.0, 5.0, 5.0]}
    >>> PointConsensus(model="majority").fit(points).objects_[["x", "y"]].round(6).values.tolist()
    [[11.0, 5.0]]
    """

    answer_types: ClassVar[tuple[AnswerType, ...]] = ("points",)
    crowd_class: ClassVar[type[MarkCrowd]] = PointCrowd
    references: ClassVar[tuple[str, ...]] = ("branson2017lean", "dawid1979maximum")

    model: Literal["detection", "majority"] = parameter(default="detection", help=machine.MODEL_HELP)
    radius: float | None = parameter(
        default=None,
        help="Distance within which points of two workers are as likely as not one object; estimated from the points if None.",
    )
    min_similarity: float = parameter(default=0.5, help="Mean similarity from which groups of points are one object.")
    n_rounds: int = parameter(default=2, help=machine.N_ROUNDS_HELP)
    shrinkage: float = parameter(default=10.0, help=machine.SHRINKAGE_HELP)
    max_iter: int = parameter(default=1000, help=machine.MAX_ITER_HELP)
    tol: float = parameter(default=1e-4, help=machine.TOL_HELP)

    radius_: float = fitted(help="Distance within which points are one object.")

    def _infer_objects(self, crowd: MarkCrowd, documents: Any) -> MarkInference:
        settings = machine.ConsensusSettings(
            self.model, self.min_similarity, self.n_rounds, self.shrinkage, self.max_iter, self.tol
        )
        if self.radius is not None and not self.radius > 0:
            raise UsageError(f"radius must be positive; got {self.radius}")
        self.radius_ = estimate_radius(crowd) if self.radius is None else float(self.radius)
        return machine.find_consensus(crowd, PointGeometry(self.radius_), settings)
