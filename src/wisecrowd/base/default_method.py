"""Name of the method that infers labels if the caller names none."""

from __future__ import annotations

#: Aggregator for votes with classes and worker ids. It has a confusion matrix per worker, streams, and updates vote by vote.
DEFAULT_METHOD = "model-average"

#: Methods for other answers, by answer type.
DEFAULT_METHODS = {
    "pairwise": "judge-aware-bradley-terry",
    "multilabel": "label-set-mixture",
    "boxes": "box-consensus",
    "points": "point-consensus",
    "polygons": "polygon-consensus",
    "spans": "span-consensus",
    "masks": "staple",
    "scores": "panel",
    "texts": "rover",
}
#: Method for comparisons without worker ids.
DEFAULT_WITHOUT_WORKERS = "bradley-terry"
