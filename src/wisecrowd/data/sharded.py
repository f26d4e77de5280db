"""Crowds larger than memory: a folder of shards, each some tasks with all their votes, mapped when it is their turn.

A folder holds ``crowd.json`` (sizes, the list of shards; written last, so that a folder with it is whole), the
vocabularies ``classes.parquet`` and ``workers.parquet``, ``pairs.arrow`` (the (worker, label) combinations that occur,
sorted) and for each shard two Arrow files without compression:

    shards/000000.votes.arrow    pair (int32, a row of pairs.arrow) and, in a weighted crowd, weight; sorted by task, pair
    shards/000000.tasks.arrow    task (its id) and n_votes (how many votes it has)
    shards/000000.json           sizes and a digest, written after both: the shard is whole

`Crowd.to_shards` writes such a folder from a crowd in memory, ``wisecrowd shard`` from files of any size, and
`Crowd.open` opens it. A `Shard` is itself a `Crowd`, over the workers, classes and pairs of the whole, so that whatever
adds up over tasks can be added up shard by shard.
"""

from __future__ import annotations

import hashlib
import mmap
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd, Pairs
from wisecrowd.data.layout import Layout
from wisecrowd.errors import InputError, UsageError, some
from wisecrowd.utils.files import atomic_path, read_json, write_json

VERSION = 1
#: Votes in a shard, unless it is said: large enough that what is done once per shard is nothing, small beside memory.
VOTES_PER_SHARD = 2**24
#: Task ids and posteriors are collected from all shards on request only up to so many cells.
MOST_CELLS = 2**28


class Part(NamedTuple):
    """What ``crowd.json`` tells of one shard.

    >>> Part("000000", tasks=3, labels=9, sha256="…").labels
    9
    """

    name: str
    tasks: int
    labels: int
    sha256: str


class Shard(Crowd):
    """Some tasks of a larger crowd with all their votes; workers, classes and pairs are those of the whole.

    >>> import tempfile
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "bob", "dog"), ("t2", "cy", "cat")])
    >>> first, second = crowd.to_shards(tempfile.mkdtemp() + "/crowd", votes_per_shard=1).shards
    >>> second
    Crowd(2 labels: 1 tasks x 3 workers, 2 classes, 2.0 labels/task)
    >>> second.tasks.tolist(), len(second.pairs), second.pairs.of_vote.tolist()
    (['t2'], 3, [1, 2])
    """

    tasks_given = True
    _observed = None
    _time = None

    def __init__(self, whole: ShardedCrowd, part: Part) -> None:
        self.whole, self.part = whole, part
        self.workers, self.classes = whole.workers, whole.classes

    @cached_property
    def _votes_file(self) -> _Mapped:
        return _Mapped(self.whole.folder / "shards" / f"{self.part.name}.votes.arrow")

    @cached_property
    def _tasks_file(self) -> _Mapped:
        return _Mapped(self.whole.folder / "shards" / f"{self.part.name}.tasks.arrow")

    def fetch(self) -> None:
        """Have the system read the votes from disk, without waiting for it."""
        self._votes_file.advise("MADV_WILLNEED")

    @property
    def n_tasks(self) -> int:
        """Number of tasks in this shard."""
        return self.part.tasks

    @property
    def n_votes(self) -> int:
        """Number of votes in this shard."""
        return self.part.labels

    @cached_property
    def tasks(self) -> pd.Index:  # type: ignore[override]  # read when it is asked for
        """The ids of the tasks."""
        return pd.Index(self._tasks_file.table.column("task").to_pandas())

    @cached_property
    def offset(self) -> NDArray[np.int64]:
        """Votes of task ``i`` are ``offset[i]:offset[i + 1]``."""
        offset = np.zeros(self.n_tasks + 1, dtype=np.int64)
        np.cumsum(self._tasks_file.column("n_votes"), dtype=np.int64, out=offset[1:])
        return offset

    @cached_property
    def pairs(self) -> Pairs:
        """The (worker, label) combinations of the whole crowd, and which of them each vote here is."""
        return self.whole.pairs.of(self._votes_file.column("pair"))

    @cached_property
    def layout(self) -> Layout:
        """The votes as the kernels want them."""
        return Layout(self.offset, self.pairs.of_vote, self._weight, len(self.pairs))

    @cached_property
    def task(self) -> NDArray[np.int32]:  # type: ignore[override]
        """The task of each vote, by position in this shard."""
        return np.repeat(np.arange(self.n_tasks, dtype=np.int32), np.diff(self.offset))

    @cached_property
    def worker(self) -> NDArray[np.int32] | None:  # type: ignore[override]
        """The worker of each vote."""
        return None if self.workers is None else self.pairs.worker[self.pairs.of_vote]

    @cached_property
    def label(self) -> NDArray[Any]:  # type: ignore[override]
        """The label of each vote."""
        return self.pairs.label[self.pairs.of_vote]

    @property
    def _said(self) -> NDArray[Any]:
        return self.pairs.short_label[self.pairs.of_vote]

    @cached_property
    def _weight(self) -> NDArray[np.float64] | None:  # type: ignore[override]
        return self._votes_file.column("weight") if self.whole.is_weighted else None

    def __reduce__(self) -> tuple[Any, ...]:  # another process maps the same file
        return Shard, (self.whole, self.part)

    def blocks(self, votes: int) -> Iterator[tuple[slice, CrowdSlice]]:
        """Consecutive tasks with about so many votes, and where they are in this shard; nothing is copied."""
        offset, pairs, weight = self.offset, self.pairs, self._weight
        _ = pairs.short_label  # once for all blocks
        for begin, end in _cuts(offset, votes):
            rows = slice(offset[begin], offset[end])
            known = pairs.of(pairs.of_vote[rows])
            own = None if weight is None else weight[rows]
            ids = partial(self._ids_between, begin, end)
            yield (
                slice(begin, end),
                CrowdSlice(self.workers, self._classes, known, offset[begin : end + 1] - offset[begin], own, ids),
            )

    def _ids_between(self, begin: int, end: int) -> pd.Index:
        return self.tasks[begin:end]

    @property
    def _classes(self) -> pd.Index:
        assert self.classes is not None
        return self.classes


class CrowdSlice(Shard):
    """Some tasks of a larger crowd whose votes are in memory; their ids are fetched when they are asked for.

    >>> pairs = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "bob", "dog")]).pairs
    >>> known = pairs.of(np.array([1], dtype=np.int32))
    >>> chunk = CrowdSlice(pd.Index(["ann", "bob"]), pd.Index(["cat", "dog"]), known, np.array([0, 1]), None, lambda: pd.Index(["t2"]))
    >>> chunk.n_tasks, chunk.label.tolist(), chunk.tasks.tolist()
    (1, [1], ['t2'])
    """

    def __init__(
        self, workers: pd.Index | None, classes: pd.Index, pairs: Pairs, offset: NDArray[np.int64],
        weight: NDArray[np.float64] | None, ids: Callable[[], pd.Index],
    ) -> None:  # fmt: skip
        self.workers, self.classes, self._ids = workers, classes, ids
        self.part = Part("in memory", len(offset) - 1, len(pairs.of_vote), "")
        vars(self).update(offset=offset, pairs=pairs, _weight=weight)  # what a shard maps from its files

    @cached_property
    def tasks(self) -> pd.Index:  # type: ignore[override]  # see Shard
        """The ids of the tasks."""
        return self._ids()

    def __reduce__(self) -> tuple[Any, ...]:
        parts = (self.workers, self.classes, self.pairs, self.offset, self._weight)
        return CrowdSlice, (*parts, partial(_given, self.tasks))


def _given(ids: pd.Index) -> pd.Index:
    return ids


@dataclass(frozen=True, eq=False)
class ShardedCrowd:
    """A crowd in a folder. It has the sizes and vocabularies of a `Crowd`; its votes are in its ``shards``.

    >>> import tempfile
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "bob", "dog"), ("t2", "cy", "cat")])
    >>> sharded = crowd.to_shards(tempfile.mkdtemp() + "/crowd", votes_per_shard=1)
    >>> sharded
    ShardedCrowd(3 labels: 2 tasks x 3 workers, 2 classes, in 2 shards)
    >>> sharded.load() == crowd
    True
    """

    folder: Path
    parts: tuple[Part, ...]
    is_weighted: bool
    has_workers: bool
    digest: str

    is_numeric = False
    has_times = False

    @cached_property
    def classes(self) -> pd.Index:
        """What can be said."""
        return _read_ids(self.folder / "classes.parquet")

    @cached_property
    def workers(self) -> pd.Index | None:
        """Who said it; None where nobody knows."""
        return _read_ids(self.folder / "workers.parquet") if self.has_workers else None

    @cached_property
    def pairs(self) -> Pairs:
        """The (worker, label) combinations that occur; which of them a vote is, its shard tells."""
        table = _Mapped(self.folder / "pairs.arrow")
        n_workers = 1 if self.workers is None else len(self.workers)
        return Pairs(table.column("worker"), table.column("label"), np.empty(0, dtype=np.int32), n_workers)

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return sum(part.tasks for part in self.parts)

    @property
    def n_votes(self) -> int:
        """Number of votes."""
        return sum(part.labels for part in self.parts)

    @property
    def n_classes(self) -> int:
        """Number of classes, used or not."""
        return len(self.classes)

    @property
    def n_workers(self) -> int:
        """Number of workers; asking a crowd without worker ids is an error."""
        if self.workers is None:
            raise UsageError("this crowd has no worker ids: only counts per task are known")
        return len(self.workers)

    @property
    def shards(self) -> list[Shard]:
        """The shards, in order; each maps its files when something of it is asked for."""
        return [Shard(self, part) for part in self.parts]

    @property
    def tasks(self) -> pd.Index:
        """All task ids, shard by shard; of a crowd with very many tasks, ask the shards."""
        if self.n_tasks > MOST_CELLS:
            raise UsageError(
                f"{self.n_tasks:,} task ids would not fit in memory; ask the shards: crowd.shards[0].tasks"
            )
        ids = [shard.tasks for shard in self.shards]
        return ids[0].append(ids[1:]) if ids else pd.Index([])

    def load(self) -> Crowd:
        """All votes in memory, as an ordinary crowd, tasks in the order of shards."""
        shards = self.shards
        first = np.cumsum([0, *(shard.n_tasks for shard in shards)])
        if first[-1] > np.iinfo(np.int32).max:
            raise UsageError(f"{first[-1]:,} tasks are too many for one crowd in memory; work on the shards")
        task = [shard.task + np.int32(begin) for shard, begin in zip(shards, first[:-1], strict=True)]
        worker = None if self.workers is None else np.concatenate([shard.worker_codes for shard in shards])
        weight = np.concatenate([shard.weight for shard in shards]) if self.is_weighted else None
        return Crowd(
            np.concatenate(task), worker, np.concatenate([shard.label for shard in shards]), tasks=self.tasks,
            workers=self.workers, classes=self.classes, weight=weight, duplicates="keep",
        )  # fmt: skip

    def without_workers(self) -> Crowd:
        """The counts of votes by task and class, in memory: who cast them is forgotten."""
        counts = np.concatenate([shard.votes for shard in self.shards])
        task, label = np.nonzero(counts)
        return Crowd(
            task, None, label, tasks=self.tasks, workers=None, classes=self.classes, weight=counts[task, label]
        )

    def __len__(self) -> int:
        return self.n_tasks

    def __reduce__(self) -> tuple[Any, ...]:  # another process maps the same files
        return open_shards, (self.folder,)

    def __repr__(self) -> str:
        who = f" x {len(self.workers):,} workers" if self.workers is not None else ", no worker ids"
        return (
            f"ShardedCrowd({self.n_votes:,} labels: {self.n_tasks:,} tasks{who}, {self.n_classes:,} classes, "
            f"in {len(self.parts):,} shard{'s' if len(self.parts) != 1 else ''})"
        )


def is_whole(folder: Path) -> bool:
    """Whether a folder holds shards, all of them.

    >>> is_whole(Path("nowhere"))
    False
    """
    return (folder / "crowd.json").is_file()


def is_begun(folder: Path) -> bool:
    """Whether somebody began to write shards into a folder.

    >>> is_begun(Path("nowhere"))
    False
    """
    return any((folder / name).is_dir() for name in ("shards", ".sharding"))


def open_shards(folder: str | os.PathLike[str]) -> ShardedCrowd:
    """Open a folder of shards (see `Crowd.open`).

    >>> open_shards("nowhere")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: nowhere is no folder of shards: it has no crowd.json. Make one from files of votes: wisecrowd shard votes.parquet -o crowd
    """  # noqa: E501
    place = Path(folder)
    if not is_whole(place):
        if is_begun(place):
            raise InputError(
                f"{place} is no folder of shards yet: making it was interrupted. Give the same wisecrowd shard again, to go on"
            )
        raise InputError(
            f"{place} is no folder of shards: it has no crowd.json. Make one from files of votes: "
            "wisecrowd shard votes.parquet -o crowd"
        )
    try:
        told = read_json(place / "crowd.json")
        if told["version"] != VERSION:
            raise InputError(
                f"{place} was written in layout {told['version']!r}; this wisecrowd reads layout {VERSION}"
            )
        parts = tuple(Part(**part) for part in told["shards"])
        crowd = ShardedCrowd(place, parts, bool(told["weighted"]), bool(told["has_workers"]), str(told["sha256"]))
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{place}/crowd.json is not as wisecrowd writes it ({error!r}); shard the votes again"
        ) from None
    absent = [part.name for part in parts if not (place / "shards" / f"{part.name}.votes.arrow").is_file()]
    if absent:
        raise InputError(f"{place} lacks {len(absent):,} of its shards: {some(absent)}; shard the votes again")
    return crowd


def write_shard(
    folder: str | os.PathLike[str], number: int, tasks: Any, n_votes: NDArray[Any], pair: NDArray[np.int32],
    weight: NDArray[np.float64] | None = None,
) -> Part:  # fmt: skip
    """Write one shard, whole or not at all: ids of its tasks, how many votes each has, and the votes task by task.

    >>> import tempfile
    >>> part = write_shard(tempfile.mkdtemp(), 0, ["t1", "t2"], np.array([1, 2]), np.array([0, 0, 1], dtype=np.int32))
    >>> part.name, part.tasks, part.labels
    ('000000', 2, 3)
    """
    name, place = f"{number:06d}", Path(folder) / "shards"
    place.mkdir(parents=True, exist_ok=True)
    counts = np.asarray(n_votes)
    if int(counts.sum()) != len(pair) or len(counts) != len(tasks):
        raise UsageError(f"shard {name}: {len(tasks):,} tasks with {int(counts.sum()):,} votes, but {len(pair):,} came")
    smallest = np.min_scalar_type(int(counts.max(initial=0)))
    votes: dict[str, Any] = {"pair": pa.array(np.asarray(pair, dtype=np.int32))}
    if weight is not None:
        votes["weight"] = pa.array(np.asarray(weight, dtype=np.float64))
    sha = hashlib.sha256()
    for kind, columns in (
        ("votes", votes),
        ("tasks", {"task": pa.array(tasks), "n_votes": pa.array(counts.astype(smallest))}),
    ):
        _write_arrow(place / f"{name}.{kind}.arrow", columns)
        for column in columns.values():
            for buffer in column.buffers():
                sha.update(b"-" if buffer is None else buffer)
    part = Part(name, len(counts), len(pair), sha.hexdigest())
    write_json(place / f"{name}.json", part._asdict())
    return part


def finish_shards(
    folder: str | os.PathLike[str], parts: Iterable[Part], *, classes: pd.Index, workers: pd.Index | None,
    pair_worker: NDArray[np.int32], pair_label: NDArray[np.int32], weighted: bool,
) -> ShardedCrowd:  # fmt: skip
    """Write the vocabularies and, last of all, ``crowd.json``.

    >>> import tempfile
    >>> place, codes = tempfile.mkdtemp(), np.array([0, 1], dtype=np.int32)
    >>> part = write_shard(place, 0, ["t1"], np.array([2]), codes)
    >>> finish_shards(place, [part], classes=pd.Index(["no", "yes"]), workers=pd.Index(["ann", "bob"]),
    ...               pair_worker=codes, pair_label=codes, weighted=False).n_votes
    2
    """
    place, listed = Path(folder), list(parts)
    _write_arrow(place / "pairs.arrow", {"worker": pa.array(pair_worker), "label": pa.array(pair_label)})
    _write_ids(place / "classes.parquet", classes)
    sha = hashlib.sha256(np.ascontiguousarray(pair_worker).tobytes() + np.ascontiguousarray(pair_label).tobytes())
    if workers is not None:
        _write_ids(place / "workers.parquet", workers)
    for part in listed:
        sha.update(part.sha256.encode())
    write_json(
        place / "crowd.json",
        {
            "version": VERSION,
            "tasks": sum(part.tasks for part in listed),
            "labels": sum(part.labels for part in listed),
            "weighted": weighted,
            "has_workers": workers is not None,
            "sha256": sha.hexdigest(),
            "shards": [part._asdict() for part in listed],
        },
    )
    return open_shards(place)


def to_shards(crowd: Crowd, folder: str | os.PathLike[str], votes_per_shard: int = VOTES_PER_SHARD) -> ShardedCrowd:
    """Write a crowd in memory as a folder of shards (see `Crowd.to_shards`).

    >>> import tempfile
    >>> to_shards(Crowd.from_triples([("t1", "ann", "cat")]), tempfile.mkdtemp() + "/crowd").n_votes
    1
    """
    place = Path(folder)
    if crowd.is_numeric:
        raise UsageError("shards hold classes, and the labels of this crowd are numbers")
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise UsageError(f"{place} exists and is not empty; choose another folder for the shards")
    if votes_per_shard < 1:
        raise UsageError(f"votes_per_shard must be 1 or more; got {votes_per_shard}")
    pairs, counts = crowd.pairs, crowd.votes_per_task
    parts = []
    for number, (begin, end) in enumerate(_cuts(crowd.offset, votes_per_shard)):
        rows = slice(crowd.offset[begin], crowd.offset[end])
        weight = crowd.weight[rows] if crowd.is_weighted else None
        parts.append(write_shard(place, number, crowd.tasks[begin:end], counts[begin:end], pairs.of_vote[rows], weight))
    return finish_shards(
        place, parts, classes=_named(crowd.classes), workers=crowd.workers, pair_worker=pairs.worker,
        pair_label=pairs.label, weighted=crowd.is_weighted,
    )  # fmt: skip


def _cuts(offset: NDArray[np.int64], votes: int) -> Iterator[tuple[int, int]]:
    """Consecutive tasks with about so many votes together."""
    begin = 0
    while begin < len(offset) - 1:
        end = max(int(np.searchsorted(offset, offset[begin] + votes, side="right")) - 1, begin + 1)
        yield begin, end
        begin = end


def _named(classes: pd.Index | None) -> pd.Index:
    assert classes is not None
    return classes


class _Mapped:
    """An Arrow file in memory as far as it is looked at: the system reads pages, and may drop them again."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        try:
            self.table = pa.ipc.open_file(pa.py_buffer(self._map)).read_all()
        except pa.ArrowInvalid as error:
            raise InputError(f"{path} is damaged ({error}); shard the votes again") from None

    def column(self, name: str) -> NDArray[Any]:
        """A column, without copying it."""
        chunks = self.table.column(name).chunks
        return chunks[0].to_numpy() if chunks else np.empty(0, self.table.schema.field(name).type.to_pandas_dtype())

    def advise(self, advice: str) -> None:
        if hasattr(mmap, advice):  # not on every system
            self._map.madvise(getattr(mmap, advice))


def _write_arrow(path: Path, columns: dict[str, Any]) -> None:
    # One batch, so that each column is one chunk of memory.
    batch = pa.RecordBatch.from_pydict(columns)
    with (
        atomic_path(path) as partial,
        pa.OSFile(str(partial), "wb") as sink,
        pa.ipc.new_file(sink, batch.schema) as out,
    ):
        out.write_batch(batch)


def _write_ids(path: Path, ids: pd.Index) -> None:
    with atomic_path(path) as partial:
        pq.write_table(pa.table({"value": pa.array(ids)}), partial)


def _read_ids(path: Path) -> pd.Index:
    return pd.Index(pq.read_table(path).column("value").to_pandas())
