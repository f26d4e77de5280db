"""Bytes between the driver and Ray's actors in an iteration of every streaming method: ``scale_bytes.py FOLDER``.

Counted on the messages that are really sent, with two actors: what the driver puts into the store for every actor to get,
and what each actor sends up the tree. An iteration is what a longer fit sends more than a shorter one, without extrapolation.
Prints JSON.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import tempfile
import warnings
from typing import Any, ClassVar, NamedTuple

import ray

from wisecrowd import Crowd
from wisecrowd.base.registry import methods
from wisecrowd.engines import ray as on_ray

#: Passes of the shorter fit and of the longer one.
FEW, MORE = 2, 4


def size(value: Any) -> int:
    return len(ray.cloudpickle.dumps(value))


class Sent(NamedTuple):
    """Bytes down to an actor, up from the one that sends most, calls, and passes."""

    down: float
    up: float
    calls: float
    passes: float


class Telling(on_ray.ChunkActor):
    """An actor that knows how much it has sent."""

    sent = 0

    def sum(self, calls: list[Any], children: list[Any]) -> Any:
        message = super().sum(calls, children)
        self.sent += size(message)
        return message

    def apply(self, calls: list[Any], number: int) -> Any:
        message = super().apply(calls, number)
        self.sent += size(message)
        return message

    def told(self) -> int:
        return self.sent


class Counting(on_ray.RayEngine):
    """Two actors, and what went to each."""

    #: The engines that were made.
    made: ClassVar[list[Counting]] = []

    def __init__(self, crowd: Any, gold: Any = None, **_: Any) -> None:
        self.put = self.calls = 0
        self.told: list[int] = []
        super().__init__(crowd, gold, actors=2, compiled=True)
        Counting.made.append(self)

    def _store_call(self, work: Any, shared: tuple[Any, ...]) -> Any:
        put = ray.put

        def counted(value: Any) -> Any:
            self.put += size(value)
            return put(value)

        self.calls += 1
        ray.put = counted
        try:
            return super()._store_call(work, shared)
        finally:
            ray.put = put

    def close(self) -> None:
        if not self.told:
            self.told = ray.get([actor.told.remote() for actor in self._actors])
        super().close()


def sent(kind: Any, crowd: Any, passes: int) -> Sent:
    """What a fit sends."""
    names = {one.name for one in dataclasses.fields(kind)}
    wanted = {"max_iter": passes, "tol": 0, "accelerate": False, "n_init": 1, "engine": "ray"}
    method = kind(**{name: value for name, value in wanted.items() if name in names})
    Counting.made.clear()
    method.fit(crowd)
    made = Counting.made
    down, up, calls = (sum(found) for found in zip(*((one.put, max(one.told), one.calls) for one in made), strict=True))
    return Sent(down, up, calls, getattr(method, "n_iter_", 0))


def by_iteration(kind: Any, crowd: Any) -> dict[str, Any]:
    """What an iteration sends; of a method that does not iterate, and of one that ended at once, the whole fit."""
    few, more = sent(kind, crowd, FEW), sent(kind, crowd, MORE)
    further = more.passes - few.passes
    if further > 0:
        few = Sent(*((b - a) / further for a, b in zip(few, more, strict=True)))
    return few._asdict() | {"iterates": further > 0}


def main() -> None:
    warnings.simplefilter("ignore")
    on_ray.ChunkActor, on_ray.RayEngine = Telling, Counting
    with tempfile.TemporaryDirectory(dir=sys.argv[1]) as folder:
        whole = Crowd.open(sys.argv[1]).load()  # and written anew, so that only pairs are listed that occur
        crowd = whole.to_shards(f"{folder}/crowd", votes_per_shard=whole.n_votes // 2 + 1)
        del whole
        ray.init(
            num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR", object_store_memory=2**31
        )
        found = {}
        for name, kind in methods("aggregate").items():
            if getattr(kind, "streams", False):
                found[name] = by_iteration(kind, crowd)
                print(name, found[name], file=sys.stderr, flush=True)
        ray.shutdown()
        sizes = {"pairs": len(crowd.pairs), "workers": crowd.n_workers, "votes": crowd.n_votes}
    print(json.dumps(sizes | {"methods": found}))


main()
