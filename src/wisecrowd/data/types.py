"""Types of the arguments that methods take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.arrow_tables import DataFrameLike
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.sharded import ShardedCrowd

__all__ = ["AnyCrowd", "CrowdLike", "DataFrameLike", "FeaturesLike", "TruthLike"]

#: Votes in memory, or in shards on disk.
AnyCrowd: TypeAlias = Crowd | ShardedCrowd
#: Votes in any form that ``fit`` accepts: a crowd, a table, or triples of task, worker and label.
CrowdLike: TypeAlias = Crowd | ShardedCrowd | DataFrameLike | Sequence[tuple[Any, ...]]
#: One row of features per task: a table indexed by task, or an array in the order of the tasks.
FeaturesLike: TypeAlias = pd.DataFrame | NDArray[Any] | Sequence[Any]
#: Truth of some tasks by task id, or an array in the order of the tasks.
TruthLike: TypeAlias = "pd.Series[Any] | Mapping[Any, Any] | pd.DataFrame | NDArray[Any]"
