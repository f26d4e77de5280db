"""Messages between the processes of a cluster."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from wisecrowd import Crowd, MajorityVote
from wisecrowd.data.pairs import Pairs
from wisecrowd.data.sharded import finish_shards, write_shard
from wisecrowd.engines import messages
from wisecrowd.engines.messages import MemorySource, ShardSource
from wisecrowd.errors import InputError, WisecrowdError


@pytest.mark.parametrize("many", [1, 2, 3, 6, 8, 13])
def test_every_actor_is_added_once_along_the_tree(many: int) -> None:
    below = {place: list(messages.iterate_children(place, many)) for place in range(many)}
    assert sorted(other for others in below.values() for other in others) == list(range(1, many))
    assert all(other > place for place, others in below.items() for other in others)
    depth: dict[int, int] = {}
    for place in reversed(range(many)):
        depth[place] = max((depth[other] + 1 for other in below[place]), default=0)
    assert depth[0] <= np.ceil(np.log2(many))


def codes(*values: int) -> Any:
    return np.array(values, dtype=np.int32)


@pytest.mark.parametrize(
    "changes",
    [
        {"pairs": Pairs(codes(0, 1), codes(0, 1), codes(0, -1, 1), 2)},
        {"pairs": Pairs(codes(0, 1), codes(0, 1), codes(0, 2, 1), 2)},
        {"pairs": Pairs(codes(0, 9), codes(0, 1), codes(0, 1, 1), 2)},
        {"pairs": Pairs(codes(0, 1), codes(0, -1), codes(0, 1, 1), 2)},
        {"offset": np.array([0, 2, 30])},
        {"offset": np.array([0, 3, 2])},
        {"weight": np.ones((3, 0))},
        {"weight": np.ones(2)},
    ],
    ids=range(8),
)
def test_a_message_with_invalid_votes_is_refused(changes: dict[str, Any]) -> None:
    crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "dog"), ("t2", "bob", "dog")])
    source = MemorySource.from_crowd(crowd, None, 0, 2, number=0, n_chunks=1)
    [chunk] = source.load_chunks()
    assert chunk.crowd.layout.is_checked
    with pytest.raises(WisecrowdError, match=r"layout|damaged"):
        list(replace(source, **changes).load_chunks())


def test_shards_are_checked_where_they_are_loaded(tmp_path: Any) -> None:
    info = write_shard(tmp_path, 0, ["t1"], np.array([2]), codes(0, -1))
    names = Crowd.from_triples([("t1", "ann", "cat")])
    crowd = finish_shards(
        tmp_path,
        [info],
        classes=names.classes,
        workers=names.workers,
        pair_worker=codes(0),
        pair_label=codes(0),
        weighted=False,
    )
    for verify in (True, False):
        with pytest.raises(InputError, match="vote 1 has the pair -1"):
            list(ShardSource(crowd.folder, crowd.digest, range(1), [None], verify=verify).load_chunks())
    with pytest.raises(InputError, match="vote 1 has the pair -1"):
        MajorityVote().fit(crowd)


def test_an_error_that_cannot_be_pickled_keeps_its_traceback() -> None:
    class LocalError(Exception):
        """Exception of a local class, which cannot be pickled."""

    try:
        raise LocalError("far away")
    except LocalError as error:
        arrived = pickle.loads(messages.pickle_error(error))
    assert "LocalError: far away" in str(arrived)
    assert any("test_an_error_that_cannot_be_pickled" in note for note in arrived.__notes__)
