"""Bytes between the driver and Ray's actors in an iteration of every streaming method: ``scale_bytes.py FOLDER``.

Counts the messages of two actors: objects that the driver puts into the store for every actor, and messages that each actor
sends up the tree. The traffic of an iteration is the difference between a longer and a shorter fit, without extrapolation.
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

#: Passes of the shorter and of the longer fit.
SHORT_PASSES, LONG_PASSES = 2, 4


def size(value: Any) -> int:
    return len(ray.cloudpickle.dumps(value))


class Traffic(NamedTuple):
    """Bytes sent to an actor, bytes sent by the actor that sends most, number of calls, and number of passes."""

    down: float
    up: float
    calls: float
    passes: float


class CountingActor(on_ray.ChunkActor):
    """Actor that counts the bytes that it sends."""

    sent = 0

    def sum(self, calls: list[Any], children: list[Any]) -> Any:
        message = super().sum(calls, children)
        self.sent += size(message)
        return message

    def apply(self, calls: list[Any], number: int) -> Any:
        message = super().apply(calls, number)
        self.sent += size(message)
        return message

    def get_sent(self) -> int:
        return self.sent


class CountingEngine(on_ray.RayEngine):
    """Engine with two actors that counts the bytes sent to them."""

    #: Engines that were created.
    instances: ClassVar[list[CountingEngine]] = []

    def __init__(self, crowd: Any, gold: Any = None, **_: Any) -> None:
        self.put = self.calls = 0
        self.sent_by_actor: list[int] = []
        super().__init__(crowd, gold, actors=2, compiled=True)
        CountingEngine.instances.append(self)

    def _store_call(self, work: Any, shared: tuple[Any, ...]) -> Any:
        put = ray.put

        def count_and_put(value: Any) -> Any:
            self.put += size(value)
            return put(value)

        self.calls += 1
        ray.put = count_and_put
        try:
            return super()._store_call(work, shared)
        finally:
            ray.put = put

    def close(self) -> None:
        if not self.sent_by_actor:
            self.sent_by_actor = ray.get([actor.get_sent.remote() for actor in self._actors])
        super().close()


def count_bytes(kind: Any, crowd: Any, passes: int) -> Traffic:
    """Return the traffic of a fit."""
    names = {one.name for one in dataclasses.fields(kind)}
    settings = {"max_iter": passes, "tol": 0, "accelerate": False, "n_init": 1, "engine": "ray"}
    method = kind(**{name: value for name, value in settings.items() if name in names})
    CountingEngine.instances.clear()
    method.fit(crowd)
    instances = CountingEngine.instances
    down, up, calls = (
        sum(results)
        for results in zip(*((one.put, max(one.sent_by_actor), one.calls) for one in instances), strict=True)
    )
    return Traffic(down, up, calls, getattr(method, "n_iter_", 0))


def count_bytes_per_iteration(kind: Any, crowd: Any) -> dict[str, Any]:
    """Return the traffic of an iteration, or of the whole fit for a method that does not iterate."""
    short, long = count_bytes(kind, crowd, SHORT_PASSES), count_bytes(kind, crowd, LONG_PASSES)
    further = long.passes - short.passes
    if further > 0:
        short = Traffic(*((b - a) / further for a, b in zip(short, long, strict=True)))
    return short._asdict() | {"iterates": further > 0}


def main() -> None:
    warnings.simplefilter("ignore")
    on_ray.ChunkActor, on_ray.RayEngine = CountingActor, CountingEngine
    with tempfile.TemporaryDirectory(dir=sys.argv[1]) as folder:
        whole = Crowd.open(sys.argv[1]).load()  # written again, so that only pairs that occur are listed
        crowd = whole.to_shards(f"{folder}/crowd", votes_per_shard=whole.n_votes // 2 + 1)
        del whole
        ray.init(
            num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR", object_store_memory=2**31
        )
        results = {}
        for name, kind in methods("aggregate").items():
            if getattr(kind, "streams", False):
                results[name] = count_bytes_per_iteration(kind, crowd)
                print(name, results[name], file=sys.stderr, flush=True)
        ray.shutdown()
        sizes = {"pairs": len(crowd.pairs), "workers": crowd.n_workers, "votes": crowd.n_votes}
    print(json.dumps(sizes | {"methods": results}))


main()
