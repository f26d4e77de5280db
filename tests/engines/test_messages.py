"""Messages between the processes of a cluster."""

from __future__ import annotations

import numpy as np
import pytest

from wisecrowd.engines import messages


@pytest.mark.parametrize("many", [1, 2, 3, 6, 8, 13])
def test_every_actor_is_added_once_along_the_tree(many: int) -> None:
    below = {place: list(messages.iterate_children(place, many)) for place in range(many)}
    assert sorted(other for others in below.values() for other in others) == list(range(1, many))
    assert all(other > place for place, others in below.items() for other in others)
    depth: dict[int, int] = {}
    for place in reversed(range(many)):
        depth[place] = max((depth[other] + 1 for other in below[place]), default=0)
    assert depth[0] <= np.ceil(np.log2(many))
