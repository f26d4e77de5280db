"""The engine of a cluster: Ray's actors hold the chunks in memory from one pass over the votes to the next.

A call puts its work and parameters into Ray's object store once, for all actors. Every actor adds up its own chunks and
then what the actors below it in a binary tree found, always in the same order: with as many actors, the same bits,
whatever was lost in between. A lost actor is made anew from its chunks, and the call repeated.

All machines must have this wisecrowd installed and, for a crowd in shards, see its folder under the same path.
"""

from __future__ import annotations

import functools
import io
import itertools
import logging
import os
import pickle
import random
import socket
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from wisecrowd.data.crowd import Crowd
from wisecrowd.data.sharded import ShardedCrowd
from wisecrowd.engines import messages as sending
from wisecrowd.engines.base import Chunk, ChunkState, Engine, Work, summed
from wisecrowd.engines.messages import FromFolder, FromMemory, LeftBehind, Message
from wisecrowd.errors import MissingExtra, UsageError, WisecrowdError

#: Losses in a row after which a call is given up.
MOST_LOSSES = 5
#: Cells of a table that a function or a method may carry along.
MOST_CARRIED = 2**17
#: Bytes of the object store of a cluster that is started here, at most; what does not fit goes to disk.
STORE = 2**31


class Lost(WisecrowdError, RuntimeError):
    """Processes of the cluster are gone, and with them what cannot be had again.

    >>> issubclass(Lost, WisecrowdError)
    True
    """


class _Missed(Exception):
    """An actor did not get what another should have sent."""


class RayEngine(Engine):
    """Pieces of a crowd in the memory of a cluster's actors.

    A crowd in memory is cut into one chunk for each actor, without its times and marks; of a crowd in shards, actor j of
    A holds the shards j, j + A, …. Without ``actors`` there is one for each core of the cluster; they reserve none, so
    that several engines can share it. The cluster is the one that this process is in already, or that ``address`` or
    the variable RAY_ADDRESS names, or else a local one, which ends with its last engine.

    >>> RayEngine(Crowd.from_triples([("t1", "ann", "cat")]), actors=0)
    Traceback (most recent call last):
        ...
    wisecrowd.errors.UsageError: actors must be 1 or more; got 0
    """

    def __init__(
        self, crowd: Crowd | ShardedCrowd, gold: Any = None, *, address: str | None = None, actors: int | None = None,
        compiled: bool | None = None,
    ) -> None:  # fmt: skip
        if actors is not None and actors < 1:
            raise UsageError(f"actors must be 1 or more; got {actors}")
        self.crowd, self.gold, self.compiled = crowd, gold, compiled
        _ = crowd.pairs  # refuses a crowd of numbers before anything is started
        self._actors: list[Any] = []
        self._whole = False
        self._kept: weakref.WeakSet[_InActors] = weakref.WeakSet()
        self._dropped: list[int] = []
        cluster = _Cluster(address)
        self._end = weakref.finalize(self, cluster.leave, self._actors)
        try:
            many = actors or cluster.cores
            self._cuts = [] if isinstance(crowd, ShardedCrowd) else sending.cuts(crowd.offset, many)
            self._n_pieces = len(crowd.parts) if isinstance(crowd, ShardedCrowd) else len(self._cuts)
            self._actors += [None] * max(1, min(many, self._n_pieces))
            self._repeated(lambda: None)
        except BaseException:
            self.close()
            raise

    def total(self, work: Work, *shared: Any) -> Any:
        """Added up by every actor, and then along a tree of actors."""

        def attempt() -> Any:
            call, found, many = self._call(work, shared), dict[int, Any](), len(self._actors)
            for place in reversed(range(many)):
                below = [found[other] for other in sending.children(place, many)]
                found[place] = self._actors[place].total.remote([call], below)
            return _got(found[0])

        return self._repeated(attempt)

    def each(self, work: Work, *shared: Any) -> Iterator[Any]:
        """Chunk by chunk; while one is looked at, every actor has another to work on."""
        ahead: deque[Any] = deque()
        call: Any = None

        def attempt(number: int) -> Any:
            nonlocal call
            try:
                call = call or self._call(work, shared)
                for other in range(number + len(ahead), min(number + len(self._actors) + 1, self._n_pieces)):
                    ahead.append(self._actors[other % len(self._actors)].one.remote([call], other))
                return _got(ahead[0])
            except BaseException:
                ahead.clear()  # to be asked for again, of whoever is there then
                call = None
                raise

        for number in range(self._n_pieces):
            found = self._repeated(functools.partial(attempt, number))
            ahead.popleft()
            yield found

    def keep(self, work: Work, *shared: Any) -> ChunkState:
        """In the memory of the actors, until nobody has the handle any more. With an actor, what it keeps is lost."""

        def attempt() -> ChunkState:
            kept = _InActors(next(_InActors.tokens))
            weakref.finalize(kept, self._dropped.append, kept.token)
            call = self._call(work, shared)
            for done in [actor.keep.remote([call], kept.token) for actor in self._actors]:
                _got(done)
            self._kept.add(kept)
            return kept

        return self._repeated(attempt)

    def close(self) -> None:
        """End the actors, and the cluster if it was started here and no other engine is in it."""
        self._end()

    def _call(self, work: Work, shared: tuple[Any, ...]) -> Any:
        """Work and what it is given, in the object store."""
        if any(isinstance(given, _InActors) and given not in self._kept for given in shared):
            raise Lost(
                "an actor was lost, and with it values that were kept there and cannot be had again; "
                "go on from the last checkpoint, or fit again"
            )
        if self._dropped:
            dropped = [self._dropped.pop() for _ in range(len(self._dropped))]
            for actor in self._actors:
                actor.drop.remote(dropped)
        return _ray().put([_carried(given) for given in (work, *shared)])

    def _repeated(self, attempt: Callable[[], Any]) -> Any:
        """What an attempt gives, made again when an actor is lost in it."""
        if not self._end.alive or not _ray().is_initialized():
            raise UsageError("this engine was closed, or its cluster left; make another")
        for _ in range(MOST_LOSSES):
            try:
                if not self._whole:
                    self._restore()
                return attempt()
            except (_ray().exceptions.RayError, _Missed) as error:
                self._whole, last = False, error
            except KeyboardInterrupt:
                self.close()
                raise
        reason = str(last).strip().partition("\n")[0] or type(last).__name__
        raise Lost(f"gave up after {MOST_LOSSES} losses in the cluster in a row; at last: {reason}") from last

    def _restore(self) -> None:
        """Make the actors anew that are not there, or do not hold their chunks."""
        ray = _ray()
        answers = [None if actor is None else actor.holds.remote() for actor in self._actors]
        loading = []
        for place, answer in enumerate(answers):
            with suppress(ray.exceptions.RayError):
                if answer is not None and ray.get(answer):
                    continue
            if answer is not None:
                self._kept.clear()
                ray.kill(self._actors[place])
            self._actors[place] = ray.remote(num_cpus=0, scheduling_strategy="SPREAD")(_Holder).remote()
            loading.append(self._actors[place].load.remote(self._source(place)))
        for loaded in loading:
            _got(loaded)
        self._whole = True

    def _source(self, place: int) -> FromFolder | FromMemory:
        """What an actor loads."""
        if isinstance(self.crowd, ShardedCrowd):
            numbers = range(place, self._n_pieces, len(self._actors))
            clamps = [None if self.gold is None else self.gold(number) for number in numbers]
            return FromFolder(self.crowd.folder.resolve(), self.crowd.digest, numbers, clamps, self.compiled)
        cut = self._cuts[place]
        return FromMemory.of(self.crowd, self.gold, *cut, number=place, many=self._n_pieces, compiled=self.compiled)


@dataclass(eq=False)
class _InActors(ChunkState):
    """A handle of values in the actors."""

    token: int
    tokens: ClassVar[Iterator[int]] = itertools.count()


def _got(answer: Any) -> Any:
    """The value that an actor answers, or the error of its work as if it had been raised here."""
    ray = _ray()
    try:
        message = ray.get(answer)
    except ray.exceptions.RayTaskError as error:  # what came of the work cannot be sent
        raise error.cause from None
    if message.missed:
        raise _Missed("an actor did not get what another should have sent")
    if message.error is not None:
        raise pickle.loads(message.error)
    return message.unpacked()


_TABLES = np.ndarray | pd.Index | pd.Series | pd.DataFrame


@dataclass
class _Carried:
    """A function or a method, without the crowds and large tables that it refers to."""

    pickled: bytes


def _carried(given: Any) -> Any:
    """What goes along with a call: functions and methods, which may hold on to anything, pared down; values whole."""
    if not callable(given) and not hasattr(given, "get_params"):
        return given

    class Lean(_ray().cloudpickle.Pickler):  # type: ignore[misc]  # which base it has is known when it is used
        def reducer_override(self, part: Any) -> Any:
            if isinstance(part, Crowd | ShardedCrowd) or (isinstance(part, _TABLES) and part.size > MOST_CARRIED):
                return LeftBehind, (type(part).__name__,)
            return super().reducer_override(part)

    stream = io.BytesIO()
    Lean(stream).dump(given)
    return _Carried(stream.getvalue())


def _answering(method: Callable[..., Message | None]) -> Callable[..., Message]:
    """A method of an actor whose errors are answers too, so that whatever Ray raises means a loss."""

    @functools.wraps(method)
    def answer(*arguments: Any) -> Message:
        try:
            return method(*arguments) or Message()
        except _ray().exceptions.RayError:
            return Message(missed=True)
        except Exception as error:
            return Message(error=sending.portable(error))

    return answer


class _Holder:
    """An actor: some chunks, and what is kept of them."""

    def __init__(self) -> None:
        self.chunks: dict[int, Chunk] | None = None
        self.kept: dict[int, dict[int, Any]] = {}

    def holds(self) -> bool:
        return self.chunks is not None

    @_answering
    def load(self, source: FromFolder | FromMemory) -> None:
        chunks = {chunk.number: chunk for chunk in source.chunks()}
        layouts = [chunk.crowd.layout for chunk in chunks.values()]
        label_probs = np.zeros(layouts[0].n_pairs if layouts else 0, dtype=bool)
        for layout in layouts:
            label_probs[layout.pair] = True
        self.n_pairs, self.rows, self.chunks = len(label_probs), sending.few(label_probs), chunks

    @_answering
    def total(self, calls: list[Any], below: list[Any]) -> Message:
        work, given = self._call(calls)
        total, rows = summed(self._held.values(), work, given), self.rows
        for other in below:
            message = _ray().get(other)
            if message.missed or message.error is not None:
                return message
            total, rows = message.added_to(total), sending.union(rows, message.rows, self.n_pairs)
        return Message.packed(total, rows, self.n_pairs)

    @_answering
    def one(self, calls: list[Any], number: int) -> Message:
        work, given = self._call(calls)
        return Message(work(self._held[number], *given(self._held[number])))

    @_answering
    def keep(self, calls: list[Any], token: int) -> None:
        work, given = self._call(calls)
        self.kept[token] = {number: sending.frozen(work(chunk, *given(chunk))) for number, chunk in self._held.items()}

    def drop(self, tokens: list[int]) -> None:
        for token in tokens:
            self.kept.pop(token, None)

    @property
    def _held(self) -> dict[int, Chunk]:
        assert self.chunks is not None
        return self.chunks

    def _call(self, calls: list[Any]) -> tuple[Work, Callable[[Chunk], list[Any]]]:
        # In a list, so that it is fetched here, where an error becomes an answer.
        call = _ray().get(calls[0])
        work, *shared = (pickle.loads(part.pickled) if isinstance(part, _Carried) else part for part in call)

        def given(chunk: Chunk) -> list[Any]:
            return [self.kept[one.token][chunk.number] if isinstance(one, _InActors) else one for one in shared]

        return work, given


class _Cluster:
    """The cluster that this process is in; one that an engine joined or started is left with the last engine."""

    engines: ClassVar[int] = 0
    joined: ClassVar[tuple[str, str] | None] = None
    """The address that an engine asked for, and the node that it so became a part of."""

    def __init__(self, address: str | None) -> None:
        before = random.getstate()  # Ray draws from it
        try:
            ray, wanted = _ray(), address or os.environ.get("RAY_ADDRESS") or "local"
            new = not ray.is_initialized()
            if new:
                _join(wanted)
            here = ray.get_runtime_context()
            self.node, self.cores = here.get_node_id(), max(1, int(ray.cluster_resources().get("CPU", 1)))
            if new:
                _Cluster.engines, _Cluster.joined = 0, (wanted, self.node)
            elif address not in (None, "auto", here.gcs_address) and _Cluster.joined != (address, self.node):
                raise UsageError(f"this process is in the cluster {here.gcs_address} and cannot join {address!r} too")
        finally:
            random.setstate(before)
        _Cluster.engines += 1

    def leave(self, actors: list[Any]) -> None:
        ray = _ray()
        if not ray.is_initialized() or ray.get_runtime_context().get_node_id() != self.node:
            return  # left already
        for actor in actors:
            if actor is not None:
                ray.kill(actor)
        _Cluster.engines -= 1
        if not _Cluster.engines and _Cluster.joined is not None and _Cluster.joined[1] == self.node:
            ray.shutdown()


def _join(address: str) -> None:
    ray, alone = _ray(), address == "local"
    settings: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if alone:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would report to Ray's makers
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        settings |= {
            "include_dashboard": False,
            "num_cpus": os.cpu_count(),
            "object_store_memory": min(STORE, memory // 8),
        }
    try:
        host, _, port = address.rpartition(":")
        if port.isdigit() and "://" not in host:  # Ray itself would try for minutes
            socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
        ray.init(address, **settings)
    except (OSError, RuntimeError, ValueError) as error:
        ray.shutdown()
        if alone:
            raise UsageError(f"no Ray cluster could be started on this machine: {error}") from error
        raise UsageError(
            f"no Ray cluster answers at {address!r} ({error}); start one with `ray start --head`, correct the address, "
            "or give none for a cluster of this machine alone"
        ) from error
    except BaseException:
        ray.shutdown()
        raise


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise MissingExtra("cluster", "the Ray engine") from None
    return ray
