"""Polygons of a crowd as objects with confidence."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from wisecrowd.aggregate.structured import _machine as machine
from wisecrowd.aggregate.structured._geometry import PolygonGeometry
from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.base.mark_aggregator import Array, MarkAggregator, MarkInference
from wisecrowd.data.answer_type import AnswerType
from wisecrowd.data.marks import MarkCrowd
from wisecrowd.data.polygon_rings import PolygonRings
from wisecrowd.data.polygons import PolygonCrowd, format_polygons


@method_class
class PolygonConsensus(MarkAggregator):
    """Polygons by match, decide and merge.

    Matching and decision are those of `BoxConsensus`, with the Dice coefficient of the areas of polygons. *Merge*: an object
    consists of the points that at least half of its workers enclosed, weighted by how near their polygons are to the
    results. Areas are compared on a grid with 64 cells along a typical polygon of the image. If the result has several
    parts, the largest counts; holes are filled.

    Examples
    --------
    >>> from wisecrowd import PolygonConsensus, simulate_polygons
    >>> simulation = simulate_polygons(n_tasks=20, n_workers=6, random_state=0)
    >>> PolygonConsensus().fit(simulation.crowd).objects_.columns.tolist()
    ['task', 'polygon', 'label', 'confidence', 'n_marks', 'n_votes']
    """

    answer_types: ClassVar[tuple[AnswerType, ...]] = ("polygons",)
    crowd_class: ClassVar[type[MarkCrowd]] = PolygonCrowd
    references: ClassVar[tuple[str, ...]] = ("branson2017lean", "dawid1979maximum")

    vertex_offset_: NDArray[np.int64] = fitted(
        help="Position of the first vertex of each object, in the order of the last coordinate.",
        shape=("n_offsets",),
    )
    vertices_: Array = fitted(help="Vertices of the objects.", shape=("n_vertices", 2), finite=True)

    model: Literal["detection", "majority"] = parameter(default="detection", help=machine.MODEL_HELP)
    min_similarity: float = parameter(default=0.5, help=machine.MIN_SIMILARITY_HELP)
    n_rounds: int = parameter(default=2, help=machine.N_ROUNDS_HELP)
    shrinkage: float = parameter(default=10.0, help=machine.SHRINKAGE_HELP)
    max_iter: int = parameter(default=1000, help=machine.MAX_ITER_HELP)
    tol: float = parameter(default=1e-4, help=machine.TOL_HELP)

    def _infer_objects(self, crowd: MarkCrowd, documents: Any) -> MarkInference:
        assert isinstance(crowd, PolygonCrowd)
        settings = machine.ConsensusSettings(
            self.model, self.min_similarity, self.n_rounds, self.shrinkage, self.max_iter, self.tol
        )
        inference = machine.find_consensus(crowd, PolygonGeometry(crowd), settings)
        rings = inference.objects.rings
        assert rings is not None
        self.vertex_offset_, self.vertices_ = rings.offset, rings.points
        return inference

    def check_restored(self) -> None:
        """Raise ValueError if vertices that were read from files do not belong to the objects."""
        super().check_restored()
        if "vertices_" not in vars(self):
            return
        offset, ring = self.vertex_offset_, self.object_coordinates_[:, -1]
        if offset[0] != 0 or offset[-1] != len(self.vertices_) or (np.diff(offset) < 3).any():
            raise ValueError("vertex_offset_ must ascend from 0 to the number of vertices, by three or more")
        if not np.array_equal(np.sort(ring), np.arange(len(offset) - 1)):
            raise ValueError("the last coordinate of objects must be the position of their vertices")

    @property
    def rings_(self) -> PolygonRings:
        """Vertices of all candidates, in the order of ``candidates_``."""
        self._check_fitted("object_probs_")
        rings = PolygonRings(self.vertex_offset_, self.vertices_)
        return rings.take(self.object_coordinates_[:, -1].astype(np.int64))

    def _place_columns(self) -> dict[str, Any]:
        return {"polygon": np.array(format_polygons(self.rings_, digits=8), dtype=object)}
