"""Engine of a cluster: actors of Ray hold the chunks in memory from one pass over the votes to the next.

A call puts its function and parameters into Ray's object store once, for all actors. Every actor sums over its own chunks
and then adds the sums of the actors below it in a binary tree, always in the same order. The same number of actors
therefore gives the same bits, even if actors are lost in between: a lost actor is created again from its chunks, and the
call is repeated.

All machines must have the same version of wisecrowd and, for a crowd in shards, see its folder under the same path.

Anybody who reaches a cluster can run code on it. A cluster that an engine starts therefore listens on the loopback address only,
asks for a token, and keeps its files in a folder of this user. A cluster at an address is trusted.
"""

from __future__ import annotations

import functools
import importlib
import io
import itertools
import logging
import os
import pickle
import random
import secrets
import shutil
import socket
import sys
import tempfile
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from wisecrowd.data.crowd import Crowd
from wisecrowd.data.sharded import ShardedCrowd
from wisecrowd.engines import messages
from wisecrowd.engines.base import Chunk, ChunkFunction, ChunkState, Engine, resolve_shared, sum_over_chunks
from wisecrowd.engines.messages import MemorySource, Message, OmittedObject, ShardSource
from wisecrowd.errors import MissingExtra, UsageError, WisecrowdError

#: Attempts of a call before it fails; more losses in a row are not a coincidence.
MAX_ATTEMPTS = 5
#: Cells of a table that is sent with a function or a method in every call; 1 MB of float64.
MAX_FUNCTION_CELLS = 2**17
#: Bytes of the object store of a local cluster; larger objects go to disk.
OBJECT_STORE_BYTES = 2**31
#: Seconds to wait for a cluster to answer; Ray itself would try for minutes.
CONNECT_TIMEOUT = 10
#: Seconds to wait for a new actor to start. An actor that does not start in time is replaced.
START_TIMEOUT = 120
#: Longest path of the folder of a local cluster. Ray's sockets in it have 70 characters more, and a socket at most 103.
MAX_FOLDER_CHARACTERS = 30
LOOPBACK_ADDRESSES = ("127.0.0.1", "::1")


class ClusterLost(WisecrowdError, RuntimeError):
    """Error when processes of the cluster are gone, and with them data that cannot be restored.

    Examples
    --------
    >>> issubclass(ClusterLost, WisecrowdError)
    True
    """


class _IncompleteReply(Exception):
    """An actor did not start, or did not receive the reply of another actor."""


class RayEngine(Engine):
    """Engine that holds the chunks of a crowd in the memory of a cluster's actors.

    A crowd in memory is split into one chunk per actor, without its times and marks. Of a crowd in shards, actor j of n
    holds the shards j, j + n, …. Actors reserve no cores, so that several engines can share a cluster. The cluster is the
    one that this process belongs to already; or the one at ``address`` or in the environment variable RAY_ADDRESS; or a
    local one, which ends with its last engine and cannot be reached from other machines.

    Parameters
    ----------
    crowd : Crowd or ShardedCrowd
        Votes.
    gold : ndarray, callable or None
        Class codes of gold tasks, -1 elsewhere: an array by task, or a function of the shard number.
    address : str, optional
        Address of a cluster.
    actors : int, optional
        Number of actors; by default the number of cores of the cluster.
    compiled : bool, optional
        Whether to use the compiled kernels. By default the size of a chunk decides.

    Raises
    ------
    UsageError
        If no cluster answers at the address.
    MissingExtra
        If Ray is not installed.

    Examples
    --------
    >>> RayEngine(Crowd.from_triples([("t1", "ann", "cat")]), actors=0)
    Traceback (most recent call last):
        ...
    wisecrowd.errors.UsageError: actors must be 1 or more; got 0
    """

    def __init__(
        self,
        crowd: Crowd | ShardedCrowd,
        gold: Any = None,
        *,
        address: str | None = None,
        actors: int | None = None,
        compiled: bool | None = None,
    ) -> None:
        if actors is not None and actors < 1:
            raise UsageError(f"actors must be 1 or more; got {actors}")
        self.crowd, self.gold, self.compiled = crowd, gold, compiled
        _ = crowd.pairs  # raises an error for numeric votes before anything is started
        self._actors: list[Any] = []
        self._all_loaded = False
        self._valid_states: weakref.WeakSet[_ActorState] = weakref.WeakSet()
        self._deleted_states: list[int] = []
        cluster = _Cluster(address)
        self._leave_cluster = weakref.finalize(self, cluster.leave, self._actors)
        try:
            n_actors = actors or cluster.n_cores
            self._task_ranges = (
                [] if isinstance(crowd, ShardedCrowd) else messages.split_by_votes(crowd.offset, n_actors)
            )
            self.n_chunks = crowd.n_shards if isinstance(crowd, ShardedCrowd) else len(self._task_ranges)
            self._actors += [None] * max(1, min(n_actors, self.n_chunks))
            self._retry(lambda: None)
        except BaseException:
            self.close()
            raise

    def sum(self, function: ChunkFunction, *shared: Any) -> Any:
        """Return the sum over chunks: every actor sums its own chunks, then the sums are added along a tree of actors.

        Parameters
        ----------
        function : callable
            Function of a chunk and the shared parameters.
        *shared : object
            Parameters; each chunk receives its own value of a `ChunkState`.

        Returns
        -------
        number, ndarray or tuple of them
        """

        def attempt() -> Any:
            call, replies, n_actors = self._store_call(function, shared), dict[int, Any](), len(self._actors)
            for position in reversed(range(n_actors)):
                children = [replies[child] for child in messages.iterate_children(position, n_actors)]
                replies[position] = self._actors[position].sum.remote([call], children)
            return _fetch(replies[0])

        return self._retry(attempt)

    def map(self, function: ChunkFunction, *shared: Any) -> Iterator[Any]:
        """Yield the result of every chunk; while one is processed by the caller, every actor computes another.

        Parameters
        ----------
        function : callable
            Function of a chunk and the shared parameters.
        *shared : object
            Parameters; each chunk receives its own value of a `ChunkState`.

        Yields
        ------
        object
        """
        pending: deque[Any] = deque()
        call: Any = None

        def attempt(number: int) -> Any:
            nonlocal call
            try:
                call = call or self._store_call(function, shared)
                for later in range(number + len(pending), min(number + len(self._actors) + 1, self.n_chunks)):
                    pending.append(self._actors[later % len(self._actors)].apply.remote([call], later))
                return _fetch(pending[0])
            except BaseException:
                pending.clear()  # requested again from the actors that exist then
                call = None
                raise

        for number in range(self.n_chunks):
            result = self._retry(functools.partial(attempt, number))
            pending.popleft()
            yield result

    def retain(self, function: ChunkFunction, *shared: Any) -> ChunkState:
        """Keep the results in the memory of the actors until the handle is deleted; they are lost with an actor.

        Parameters
        ----------
        function : callable
            Function of a chunk and the shared parameters.
        *shared : object
            Parameters; each chunk receives its own value of a `ChunkState`.

        Returns
        -------
        ChunkState
            Handle of the results, for later calls.
        """

        def attempt() -> ChunkState:
            state = _ActorState(next(_ActorState.tokens))
            weakref.finalize(state, self._deleted_states.append, state.token)
            call = self._store_call(function, shared)
            for reply in [actor.retain.remote([call], state.token) for actor in self._actors]:
                _fetch(reply)
            self._valid_states.add(state)
            return state

        return self._retry(attempt)

    def close(self) -> None:
        """Stop the actors, and the cluster if an engine started it and no other engine uses it."""
        self._leave_cluster()

    def _store_call(self, function: ChunkFunction, shared: tuple[Any, ...]) -> Any:
        """Put a function and its parameters into the object store."""
        if any(isinstance(value, _ActorState) and value not in self._valid_states for value in shared):
            raise ClusterLost(
                "an actor was lost, and with it values that cannot be computed again; resume from the last checkpoint, "
                "or fit again"
            )
        if self._deleted_states:
            deleted = [self._deleted_states.pop() for _ in range(len(self._deleted_states))]
            for actor in self._actors:
                actor.delete_states.remote(deleted)
        return _import_ray().put([_pickle_callable(value) for value in (function, *shared)])

    def _retry(self, attempt: Callable[[], Any]) -> Any:
        """Return the result of an attempt, which is repeated when an actor is lost."""
        if not self._leave_cluster.alive or not _import_ray().is_initialized():
            raise UsageError("this engine was closed, or this process left its cluster; create another engine")
        for _ in range(MAX_ATTEMPTS):
            try:
                if not self._all_loaded:
                    self._restore_actors()
                return attempt()
            except (_import_ray().exceptions.RayError, _IncompleteReply) as error:
                self._all_loaded, last_error = False, error
            except KeyboardInterrupt:
                self.close()
                raise
        reason = str(last_error).strip().partition("\n")[0] or type(last_error).__name__
        raise ClusterLost(f"{MAX_ATTEMPTS} losses in the cluster in a row; the last one: {reason}") from last_error

    def _restore_actors(self) -> None:
        """Create the actors that do not exist or do not hold their chunks."""
        ray = _import_ray()
        replies = [None if actor is None else actor.is_loaded.remote() for actor in self._actors]
        created = []
        for position, reply in enumerate(replies):
            with suppress(ray.exceptions.RayError):
                if reply is not None and ray.get(reply):
                    continue
            if reply is not None:
                self._valid_states.clear()
                ray.kill(self._actors[position])
            self._actors[position] = ray.remote(num_cpus=0, scheduling_strategy="SPREAD")(ChunkActor).remote()
            created.append(position)
        self._wait_for_start(created)
        for reply in [self._actors[position].load.remote(self._make_source(position)) for position in created]:
            _fetch(reply)
        self._all_loaded = True

    def _wait_for_start(self, positions: list[int]) -> None:
        """Wait until new actors answer, and remove those that do not start in time."""
        ray = _import_ray()
        answers = {self._actors[position].is_loaded.remote(): position for position in positions}
        _, missing = ray.wait(list(answers), num_returns=len(answers), timeout=START_TIMEOUT) if answers else ([], [])
        for position in (answers[answer] for answer in missing):
            ray.kill(self._actors[position])
            self._actors[position] = None
        if missing:
            raise _IncompleteReply(
                f"{len(missing)} of {len(positions)} actors did not start within {START_TIMEOUT} seconds"
            )

    def _make_source(self, position: int) -> ShardSource | MemorySource:
        """Return the chunks that an actor loads."""
        if isinstance(self.crowd, ShardedCrowd):
            numbers = range(position, self.n_chunks, len(self._actors))
            gold = [None if self.gold is None else self.gold(number) for number in numbers]
            folder, digest, verify = self.crowd.folder.resolve(), self.crowd.digest, self.crowd.verify
            return ShardSource(folder, digest, numbers, gold, self.compiled, verify)
        begin, end = self._task_ranges[position]
        return MemorySource.from_crowd(
            self.crowd, self.gold, begin, end, number=position, n_chunks=self.n_chunks, compiled=self.compiled
        )


@dataclass(eq=False)
class _ActorState(ChunkState):
    """Handle of values in the memory of actors."""

    token: int
    tokens: ClassVar[Iterator[int]] = itertools.count()

    def get(self, number: int) -> Any:
        raise UsageError(f"the value of chunk {number} is in the memory of an actor; pass the handle to the engine")


def _fetch(reply: Any) -> Any:
    """Return the value of an actor's reply, or raise the error of its chunk function."""
    ray = _import_ray()
    try:
        message = ray.get(reply)
    except ray.exceptions.RayTaskError as error:  # the result cannot be pickled
        raise error.cause from None
    if message.incomplete:
        raise _IncompleteReply("an actor did not receive the reply of another actor")
    if message.error is not None:
        raise pickle.loads(message.error)
    return message.unpack()


_TABLES = np.ndarray | pd.Index | pd.Series | pd.DataFrame


@dataclass
class _PickledCallable:
    """A function or a method, pickled without the crowds and large tables that it refers to."""

    pickled: bytes


def _pickle_callable(value: Any) -> Any:
    """Return functions and methods pickled without crowds and large tables; return other values as they are."""
    if not callable(value) and not hasattr(value, "get_params"):
        return value

    class LeanPickler(_import_ray().cloudpickle.Pickler):  # type: ignore[misc]  # the base class is known at run time
        def reducer_override(self, part: Any) -> Any:
            if isinstance(part, Crowd | ShardedCrowd) or (isinstance(part, _TABLES) and part.size > MAX_FUNCTION_CELLS):
                return OmittedObject, (type(part).__name__,)
            return super().reducer_override(part)

    stream = io.BytesIO()
    LeanPickler(stream).dump(value)
    return _PickledCallable(stream.getvalue())


def _reply_errors(method: Callable[..., Message | None]) -> Callable[..., Message]:
    """Decorate a method of an actor: its errors become replies, so that an exception of Ray always means a loss."""

    @functools.wraps(method)
    def reply(*arguments: Any) -> Message:
        try:
            return method(*arguments) or Message()
        except _import_ray().exceptions.RayError:
            return Message(incomplete=True)
        except Exception as error:
            return Message(error=messages.pickle_error(error))

    return reply


class ChunkActor:
    """Actor that holds some chunks and the values that are retained for them.

    Attributes
    ----------
    chunks : dict of int to Chunk, or None
        Chunks by number; None until they are loaded.
    states : dict
        Retained values by token and chunk number.

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat")])
    >>> actor = ChunkActor()
    >>> _ = actor.load(MemorySource.from_crowd(crowd, None, 0, 1, number=0, n_chunks=1))
    >>> actor.is_loaded(), list(actor.chunks)
    (True, [0])
    """

    def __init__(self) -> None:
        self.chunks: dict[int, Chunk] | None = None
        self.states: dict[int, dict[int, Any]] = {}

    def is_loaded(self) -> bool:
        """Return whether the chunks are in memory."""
        return self.chunks is not None

    @_reply_errors
    def load(self, source: ShardSource | MemorySource) -> None:
        """Load the chunks of a source.

        Parameters
        ----------
        source : ShardSource or MemorySource
            Chunks to load.
        """
        chunks = {chunk.number: chunk for chunk in source.load_chunks()}
        layouts = [chunk.crowd.layout for chunk in chunks.values()]
        has_votes = np.zeros(layouts[0].n_pairs if layouts else 0, dtype=bool)
        for layout in layouts:
            has_votes[layout.pair] = True
        self.n_pairs, self.rows, self.chunks = len(has_votes), messages.find_rows(has_votes), chunks

    @_reply_errors
    def sum(self, calls: list[Any], children: list[Any]) -> Message:
        """Sum a function over the chunks of this actor and its children.

        Parameters
        ----------
        calls : list
            Reference to the call, in a list, so that it is fetched here, where an error becomes a reply.
        children : list
            References to the replies of other actors.

        Returns
        -------
        Message
        """
        function, resolve = self._load_call(calls)
        total, rows = sum_over_chunks(self._loaded_chunks.values(), function, resolve), self.rows
        for child in children:
            message = _import_ray().get(child)
            if message.incomplete or message.error is not None:
                return message
            total, rows = message.add_to(total), messages.unite_rows(rows, message.rows, self.n_pairs)
        return Message.pack(total, rows, self.n_pairs)

    @_reply_errors
    def apply(self, calls: list[Any], number: int) -> Message:
        """Apply a function to one chunk.

        Parameters
        ----------
        calls : list
            Reference to the call, in a list.
        number : int
            Number of the chunk.

        Returns
        -------
        Message
        """
        function, resolve = self._load_call(calls)
        chunk = self._loaded_chunks[number]
        return Message(function(chunk, *resolve(chunk)))

    @_reply_errors
    def retain(self, calls: list[Any], token: int) -> None:
        """Apply a function to every chunk and keep the results.

        Parameters
        ----------
        calls : list
            Reference to the call, in a list.
        token : int
            Token of the handle.
        """
        function, resolve = self._load_call(calls)
        self.states[token] = {
            number: messages.freeze_arrays(function(chunk, *resolve(chunk)))
            for number, chunk in self._loaded_chunks.items()
        }

    def delete_states(self, tokens: list[int]) -> None:
        """Delete retained values whose handles are gone.

        Parameters
        ----------
        tokens : list of int
            Tokens of the handles.
        """
        for token in tokens:
            self.states.pop(token, None)

    @property
    def _loaded_chunks(self) -> dict[int, Chunk]:
        """Chunks by number, after `load`."""
        assert self.chunks is not None
        return self.chunks

    def _load_call(self, calls: list[Any]) -> tuple[ChunkFunction, Callable[[Chunk], list[Any]]]:
        """Return the function of a call, and a function that returns the parameters of a chunk."""
        call = _import_ray().get(calls[0])
        function, *shared = (
            pickle.loads(part.pickled) if isinstance(part, _PickledCallable) else part for part in call
        )

        def resolve(chunk: Chunk) -> list[Any]:
            number = chunk.number
            values = (self.states[value.token][number] if isinstance(value, _ActorState) else value for value in shared)
            return resolve_shared(values, number)

        return function, resolve


class _Cluster:
    """Cluster of this process; one that an engine joined or started is left with the last engine."""

    n_engines: ClassVar[int] = 0
    #: Folder of the files of a cluster that an engine started.
    folder: ClassVar[Path | None] = None
    #: Address that an engine asked for, and the node of this process in that cluster.
    joined: ClassVar[tuple[str, str] | None] = None

    def __init__(self, address: str | None) -> None:
        random_state = random.getstate()  # Ray draws from the global generator
        try:
            target = address or os.environ.get("RAY_ADDRESS") or "local"
            if target == "local" and "ray" not in sys.modules:
                os.environ.setdefault("RAY_AUTH_MODE", "token")  # Ray reads it when it is imported
            ray = _import_ray()
            is_new = not ray.is_initialized()
            if is_new and target == "local":
                _Cluster.folder = _start_cluster()
            elif is_new:
                _join_cluster(target)
            context = ray.get_runtime_context()
            self.node, self.n_cores = context.get_node_id(), max(1, int(ray.cluster_resources().get("CPU", 1)))
            if is_new:
                _Cluster.n_engines, _Cluster.joined = 0, (target, self.node)
            elif address not in (None, "auto", context.gcs_address) and _Cluster.joined != (address, self.node):
                raise UsageError(
                    f"this process is in the cluster {context.gcs_address} and cannot join {address!r} too"
                )
        finally:
            random.setstate(random_state)
        _Cluster.n_engines += 1

    def leave(self, actors: list[Any]) -> None:
        """Stop the actors of an engine, and leave the cluster with the last engine."""
        ray = _import_ray()
        if not ray.is_initialized() or ray.get_runtime_context().get_node_id() != self.node:
            return  # this process has left the cluster already
        for actor in actors:
            if actor is not None:
                ray.kill(actor)
        _Cluster.n_engines -= 1
        if not _Cluster.n_engines and _Cluster.joined is not None and _Cluster.joined[1] == self.node:
            ray.shutdown()
            if _Cluster.folder is not None:
                shutil.rmtree(_Cluster.folder, ignore_errors=True)
                _Cluster.folder = None


def _join_cluster(address: str) -> None:
    """Join the cluster at an address."""
    ray = _import_ray()
    try:
        host, _, port = address.rpartition(":")
        if port.isdigit() and "://" not in host:
            socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_TIMEOUT).close()
        ray.init(address, **_QUIET)
    except (OSError, RuntimeError, ValueError) as error:
        ray.shutdown()
        raise UsageError(
            f"no Ray cluster answers at {address!r} ({error}); start one with `ray start --head`, correct the address, "
            "or give no address to use this machine only"
        ) from error
    except BaseException:
        ray.shutdown()
        raise


def _start_cluster() -> Path:
    """Start a cluster that only this user of this machine can reach, and return the folder of its files."""
    ray = _import_ray()
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no reports to the developers of Ray
    _protect_token()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    folder = _make_private_folder()
    try:
        with _on_loopback():
            ray.init(
                "local",
                include_dashboard=False,
                num_cpus=os.cpu_count(),
                object_store_memory=min(OBJECT_STORE_BYTES, memory // 8),
                _temp_dir=str(folder / "ray"),  # Ray makes this one writable for everybody
                **_QUIET,
            )
        host = ray.util.get_node_ip_address()
        if host not in LOOPBACK_ADDRESSES:
            raise UsageError(
                f"this version of Ray ({ray.__version__}) listens on {host}, where other machines can reach it; install another "
                "version, or start a cluster on purpose with `ray start --head` and give its address"
            )
    except BaseException as error:
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, OSError | RuntimeError | ValueError) and not isinstance(error, UsageError):
            raise UsageError(f"no Ray cluster could be started on this machine: {error}") from error
        raise
    return folder


@contextmanager
def _on_loopback() -> Iterator[None]:
    """Make Ray start servers on the loopback address, as it does on macOS and Windows.

    On Linux, Ray replaces a loopback address by the address of the network card and then listens on all interfaces.
    """
    constants = importlib.import_module("ray._private.ray_constants")
    before = getattr(constants, "ENABLE_RAY_CLUSTER", None)
    try:
        constants.ENABLE_RAY_CLUSTER = False  # type: ignore[attr-defined]
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before  # type: ignore[attr-defined]


def _make_private_folder() -> Path:
    """Make a folder that only this user can enter, with a path that is short enough for sockets."""
    folder = Path(tempfile.mkdtemp(prefix="wc-ray-"))
    if len(str(folder)) <= MAX_FOLDER_CHARACTERS or not Path("/tmp").is_dir():
        return folder
    folder.rmdir()
    return Path(tempfile.mkdtemp(prefix="wc-ray-", dir="/tmp"))


def _protect_token() -> None:
    """Create Ray's token if there is none, and make it readable for this user only; Ray makes it readable for everybody."""
    if os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_TOKEN_PATH"):
        return
    if os.environ.get("RAY_AUTH_MODE", "token").lower() != "token":
        return
    path = Path.home() / ".ray" / "auth_token"
    with suppress(OSError):  # a home that cannot be written to; Ray reports that itself
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with suppress(FileExistsError):
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(descriptor, "w", encoding="ascii") as file:
                file.write(secrets.token_hex(32))
        if path.stat().st_mode & 0o077:
            path.chmod(0o600)


#: Options of `ray.init` that leave the terminal to the caller.
_QUIET = {"log_to_driver": False, "logging_level": logging.ERROR}


def _import_ray() -> Any:
    """Import Ray, or raise an error that names the extra to install."""
    try:
        import ray
    except ImportError:
        raise MissingExtra("cluster", "the Ray engine") from None
    return ray
