"""Crowds larger than memory, as folders of shards.

A shard holds consecutive tasks with all their votes. Its files are mapped into memory when a method processes it. A
folder contains:

- ``crowd.json``: sizes and the list of shards. It is written last, so a folder with it is complete.
- ``classes.parquet`` and ``workers.parquet``: the vocabularies.
- ``pairs.arrow``: the pairs of worker and label that occur, sorted.
- ``shards/000000.votes.arrow``: pair (a row of ``pairs.arrow``) and, in a weighted crowd, weight of each vote; sorted
  by task and pair.
- ``shards/000000.tasks.arrow``: id and number of votes of each task.
- ``shards/000000.json``: sizes and digest of the shard, written after both files.

`Crowd.to_shards` writes such a folder from a crowd in memory, ``wisecrowd shard`` from files of any size, and
`Crowd.open` opens it.
"""

from __future__ import annotations

import hashlib
import mmap
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from wisecrowd.data.answer_type import AnswerType
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.crowd_slice import CrowdSlice, PairVotes, cut_tasks
from wisecrowd.data.pairs import Pairs
from wisecrowd.errors import InputError, UsageError, preview
from wisecrowd.utils.files import atomic_path, read_json, write_json

#: Version of the folder's layout.
VERSION = 1
#: Default number of votes per shard: the fixed cost per shard is negligible, and a shard is small beside memory.
VOTES_PER_SHARD = 2**24
#: Largest number of task ids, or of posterior probabilities, that is collected from all shards into one array.
MAX_COLLECTED_CELLS = 2**28


class ShardInfo(NamedTuple):
    """Name, sizes and digest of a shard.

    Parameters
    ----------
    name : str
        Stem of the shard's files.
    n_tasks, n_votes : int
        Sizes.
    sha256 : str
        Digest of the contents.

    Examples
    --------
    >>> ShardInfo("000000", n_tasks=3, n_votes=9, sha256="…").n_votes
    9
    """

    name: str
    n_tasks: int
    n_votes: int
    sha256: str


class ShardFiles(PairVotes):
    """Votes in the files of a shard, mapped into memory on first access.

    Parameters
    ----------
    crowd : ShardedCrowd
        Crowd that the shard belongs to.
    info : ShardInfo
        The shard.
    """

    def __init__(self, crowd: ShardedCrowd, info: ShardInfo) -> None:
        self._crowd, self._info = crowd, info

    def prefetch(self) -> None:
        """Ask the operating system to read the votes from disk, without waiting for them."""
        self._votes_file.advise("MADV_WILLNEED")

    @cached_property
    def tasks(self) -> pd.Index:
        """Task ids."""
        return pd.Index(self._tasks_file.table.column("task").to_pandas())

    @property
    def workers(self) -> pd.Index | None:
        """Worker ids of the crowd; None when votes have no worker ids."""
        return self._crowd.workers

    @property
    def classes(self) -> pd.Index:
        """Classes of the crowd."""
        return self._crowd.classes

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return self._info.n_tasks

    @property
    def n_votes(self) -> int:
        """Number of votes."""
        return self._info.n_votes

    @cached_property
    def offset(self) -> NDArray[np.int64]:
        """First vote of each task, and the number of votes at the end."""
        offset = np.zeros(self.n_tasks + 1, dtype=np.int64)
        np.cumsum(self._tasks_file.column("n_votes"), dtype=np.int64, out=offset[1:])
        return offset

    @cached_property
    def pairs(self) -> Pairs:
        """Pairs of worker and label of the crowd, and the pair of each vote."""
        return self._crowd.pairs.with_votes(self._votes_file.column("pair"))

    @cached_property
    def weight(self) -> NDArray[np.float64] | None:
        """Weight of each vote; None when every vote counts once."""
        return self._votes_file.column("weight") if self._crowd.is_weighted else None

    @cached_property
    def _votes_file(self) -> _MappedArrowFile:
        return _MappedArrowFile(self._crowd.folder / "shards" / f"{self._info.name}.votes.arrow")

    @cached_property
    def _tasks_file(self) -> _MappedArrowFile:
        return _MappedArrowFile(self._crowd.folder / "shards" / f"{self._info.name}.tasks.arrow")


class Shard(CrowdSlice):
    """Slice of a crowd whose votes are in files.

    Parameters
    ----------
    crowd : ShardedCrowd
        Crowd that the shard belongs to; the shard has its workers, classes and pairs.
    info : ShardInfo
        The shard.

    Examples
    --------
    >>> import tempfile
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "bob", "dog"), ("t2", "cy", "cat")])
    >>> first, second = crowd.to_shards(tempfile.mkdtemp() + "/crowd", votes_per_shard=1).shards
    >>> second
    Crowd(2 votes: 1 tasks x 3 workers, 2 classes, 2.0 votes/task)
    >>> second.tasks.tolist(), len(second.pairs), second.pairs.vote_pairs.tolist()
    (['t2'], 3, [1, 2])
    """

    def __init__(self, crowd: ShardedCrowd, info: ShardInfo) -> None:
        self._crowd, self._info, self._files = crowd, info, ShardFiles(crowd, info)
        super().__init__(self._files)

    def prefetch(self) -> None:
        """Ask the operating system to read the votes from disk, without waiting for them."""
        self._files.prefetch()

    def __reduce__(self) -> tuple[Any, ...]:  # another process maps the same files
        return Shard, (self._crowd, self._info)


@dataclass(frozen=True, eq=False)
class ShardedCrowd:
    """Crowd in a folder of shards.

    It has the sizes and vocabularies of a `Crowd`; the votes are in its ``shards``.

    Parameters
    ----------
    folder : Path
        The folder.
    shard_infos : tuple of ShardInfo
        The shards in their order.
    is_weighted : bool
        Whether some vote has a weight other than one.
    has_workers : bool
        Whether votes have worker ids.
    digest : str
        SHA-256 of the contents.

    Examples
    --------
    >>> import tempfile
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "bob", "dog"), ("t2", "cy", "cat")])
    >>> sharded = crowd.to_shards(tempfile.mkdtemp() + "/crowd", votes_per_shard=1)
    >>> sharded
    ShardedCrowd(3 votes: 2 tasks x 3 workers, 2 classes, in 2 shards)
    >>> sharded.load() == crowd
    True
    """

    folder: Path
    shard_infos: tuple[ShardInfo, ...]
    is_weighted: bool
    has_workers: bool
    digest: str

    is_numeric = False
    answer_type: ClassVar[AnswerType] = "categorical"
    has_times = False

    @cached_property
    def classes(self) -> pd.Index:
        """Classes, including unused ones."""
        return _read_ids(self.folder / "classes.parquet")

    @cached_property
    def workers(self) -> pd.Index | None:
        """Worker ids; None when votes have no worker ids."""
        return _read_ids(self.folder / "workers.parquet") if self.has_workers else None

    @cached_property
    def pairs(self) -> Pairs:
        """Pairs of worker and label that occur; the pair of each vote is in its shard."""
        table = _MappedArrowFile(self.folder / "pairs.arrow")
        n_workers = 1 if self.workers is None else len(self.workers)
        return Pairs(table.column("worker"), table.column("label"), np.empty(0, dtype=np.int32), n_workers)

    @property
    def n_shards(self) -> int:
        """Number of shards."""
        return len(self.shard_infos)

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return sum(info.n_tasks for info in self.shard_infos)

    @property
    def n_votes(self) -> int:
        """Number of votes."""
        return sum(info.n_votes for info in self.shard_infos)

    @property
    def n_classes(self) -> int:
        """Number of classes, including unused ones."""
        return len(self.classes)

    @property
    def n_workers(self) -> int:
        """Number of workers; raises UsageError in a crowd without worker ids."""
        if self.workers is None:
            raise UsageError("this crowd has no worker ids: only counts per task are known")
        return len(self.workers)

    @property
    def shards(self) -> list[Shard]:
        """Shards in their order; each maps its files on first access."""
        return [Shard(self, info) for info in self.shard_infos]

    @property
    def tasks(self) -> pd.Index:
        """All task ids; raises UsageError if there are more than fit in memory."""
        if self.n_tasks > MAX_COLLECTED_CELLS:
            raise UsageError(
                f"{self.n_tasks:,} task ids do not fit in memory; read them shard by shard: crowd.shards[0].tasks"
            )
        ids = [shard.tasks for shard in self.shards]
        return ids[0].append(ids[1:]) if ids else pd.Index([])

    def load(self) -> Crowd:
        """Load all votes into memory.

        Returns
        -------
        Crowd
            The same votes; tasks in the order of the shards.
        """
        shards = self.shards
        first = np.cumsum([0, *(shard.n_tasks for shard in shards)])
        if first[-1] > np.iinfo(np.int32).max:
            raise UsageError(f"{first[-1]:,} tasks are too many for one crowd in memory; process the shards instead")
        task = [shard.task + np.int32(begin) for shard, begin in zip(shards, first[:-1], strict=True)]
        return Crowd.from_codes(
            np.concatenate(task),
            np.concatenate([shard.worker_codes for shard in shards]) if self.has_workers else None,
            np.concatenate([shard.label for shard in shards]),
            tasks=self.tasks,
            workers=self.workers,
            classes=self.classes,
            weight=np.concatenate([shard.weight for shard in shards]) if self.is_weighted else None,
            duplicates="keep",
        )

    def drop_workers(self) -> Crowd:
        """Load the number of votes for each class of each task, without worker ids.

        Returns
        -------
        Crowd
            A crowd without worker ids.
        """
        counts = np.concatenate([shard.vote_counts for shard in self.shards])
        task, label = np.nonzero(counts)
        return Crowd.from_codes(
            task, None, label, tasks=self.tasks, workers=None, classes=self.classes, weight=counts[task, label]
        )

    def __len__(self) -> int:
        return self.n_tasks

    def __reduce__(self) -> tuple[Any, ...]:  # another process maps the same files
        return open_shards, (self.folder,)

    def __repr__(self) -> str:
        workers = f" x {len(self.workers):,} workers" if self.workers is not None else ", no worker ids"
        return (
            f"ShardedCrowd({self.n_votes:,} votes: {self.n_tasks:,} tasks{workers}, {self.n_classes:,} classes, "
            f"in {self.n_shards:,} shard{'s' if self.n_shards != 1 else ''})"
        )


def is_shard_folder(folder: Path) -> bool:
    """Return whether a folder holds a complete set of shards.

    Parameters
    ----------
    folder : Path
        Folder, which need not exist.

    Returns
    -------
    bool
        Whether `open_shards` can open it.

    Examples
    --------
    >>> is_shard_folder(Path("nowhere"))
    False
    """
    return (folder / "crowd.json").is_file()


def is_unfinished_shard_folder(folder: Path) -> bool:
    """Return whether writing shards into a folder has begun.

    Parameters
    ----------
    folder : Path
        Folder, which need not exist.

    Returns
    -------
    bool
        Whether there are shards, or files from which ``wisecrowd shard`` makes them.

    Examples
    --------
    >>> is_unfinished_shard_folder(Path("nowhere"))
    False
    """
    return any((folder / name).is_dir() for name in ("shards", ".sharding"))


def open_shards(folder: str | os.PathLike[str]) -> ShardedCrowd:
    """Open a folder of shards; see `Crowd.open`.

    Parameters
    ----------
    folder : path-like
        Folder of shards.

    Returns
    -------
    ShardedCrowd
        The crowd.

    Raises
    ------
    InputError
        If the folder holds no shards, or is incomplete or damaged.

    Examples
    --------
    >>> open_shards("nowhere")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: nowhere has no crowd.json, so it is no folder of shards. Make one from files of votes: ...
    """
    path = Path(folder)
    if not is_shard_folder(path):
        if is_unfinished_shard_folder(path):
            raise InputError(
                f"{path} is incomplete: writing its shards was interrupted. Run the same wisecrowd shard again"
            )
        raise InputError(
            f"{path} has no crowd.json, so it is no folder of shards. Make one from files of votes: "
            "wisecrowd shard votes.parquet -o crowd"
        )
    try:
        content = read_json(path / "crowd.json")
        if content["version"] != VERSION:
            raise InputError(
                f"{path} has layout version {content['version']!r}, but this wisecrowd reads version {VERSION}. "
                "Shard the votes again"
            )
        infos = tuple(ShardInfo(**info) for info in content["shards"])
        crowd = ShardedCrowd(
            path, infos, bool(content["weighted"]), bool(content["has_workers"]), str(content["sha256"])
        )
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}/crowd.json is invalid ({error!r}). Shard the votes again") from None
    absent = [info.name for info in infos if not (path / "shards" / f"{info.name}.votes.arrow").is_file()]
    if absent:
        raise InputError(f"{path} lacks {len(absent):,} of its shards: {preview(absent)}. Shard the votes again")
    return crowd


def write_shard(
    folder: str | os.PathLike[str],
    number: int,
    tasks: Sequence[Any] | pd.Index,
    n_votes: NDArray[Any],
    pair: NDArray[np.int32],
    weight: NDArray[np.float64] | None = None,
) -> ShardInfo:
    """Write the files of one shard.

    Parameters
    ----------
    folder : path-like
        Folder of shards.
    number : int
        Position of the shard in the crowd.
    tasks : array-like of shape (n_tasks,)
        Task ids.
    n_votes : ndarray of shape (n_tasks,)
        Number of votes of each task.
    pair : ndarray of shape (n_votes,)
        Pair of each vote, sorted by task.
    weight : ndarray of shape (n_votes,), default=None
        Weight of each vote.

    Returns
    -------
    ShardInfo
        Sizes and digest.

    Examples
    --------
    >>> import tempfile
    >>> info = write_shard(tempfile.mkdtemp(), 0, ["t1", "t2"], np.array([1, 2]), np.array([0, 0, 1], dtype=np.int32))
    >>> info.name, info.n_tasks, info.n_votes
    ('000000', 2, 3)
    """
    name, path = f"{number:06d}", Path(folder) / "shards"
    path.mkdir(parents=True, exist_ok=True)
    counts = np.asarray(n_votes)
    if int(counts.sum()) != len(pair) or len(counts) != len(tasks):
        raise UsageError(
            f"shard {name}: n_votes counts {int(counts.sum()):,} votes of {len(counts):,} tasks; "
            f"got {len(pair):,} votes and {len(tasks):,} tasks"
        )
    count_type = np.min_scalar_type(int(counts.max(initial=0)))
    votes: dict[str, Any] = {"pair": pa.array(np.asarray(pair, dtype=np.int32))}
    if weight is not None:
        votes["weight"] = pa.array(np.asarray(weight, dtype=np.float64))
    sha = hashlib.sha256()
    for kind, columns in (
        ("votes", votes),
        ("tasks", {"task": pa.array(tasks), "n_votes": pa.array(counts.astype(count_type))}),
    ):
        _write_arrow(path / f"{name}.{kind}.arrow", columns)
        for column in columns.values():
            for buffer in column.buffers():
                sha.update(b"-" if buffer is None else buffer)
    info = ShardInfo(name, len(counts), len(pair), sha.hexdigest())
    write_json(path / f"{name}.json", info._asdict())
    return info


def finish_shards(
    folder: str | os.PathLike[str],
    infos: Iterable[ShardInfo],
    *,
    classes: pd.Index,
    workers: pd.Index | None,
    pair_worker: NDArray[np.int32],
    pair_label: NDArray[np.int32],
    weighted: bool,
) -> ShardedCrowd:
    """Write the vocabularies, the pairs and, last of all, ``crowd.json``.

    Parameters
    ----------
    folder : path-like
        Folder of shards.
    infos : iterable of ShardInfo
        The shards in their order.
    classes, workers : Index
        Vocabularies; ``workers`` is None when votes have no worker ids.
    pair_worker, pair_label : ndarray of shape (n_pairs,)
        Worker and class code of each pair.
    weighted : bool
        Whether the shards have weights.

    Returns
    -------
    ShardedCrowd
        The finished crowd.

    Examples
    --------
    >>> import tempfile
    >>> folder, codes = tempfile.mkdtemp(), np.array([0, 1], dtype=np.int32)
    >>> info = write_shard(folder, 0, ["t1"], np.array([2]), codes)
    >>> finish_shards(folder, [info], classes=pd.Index(["no", "yes"]), workers=pd.Index(["ann", "bob"]),
    ...               pair_worker=codes, pair_label=codes, weighted=False).n_votes
    2
    """
    path, shard_infos = Path(folder), list(infos)
    _write_arrow(path / "pairs.arrow", {"worker": pa.array(pair_worker), "label": pa.array(pair_label)})
    _write_ids(path / "classes.parquet", classes)
    sha = hashlib.sha256(np.ascontiguousarray(pair_worker).tobytes() + np.ascontiguousarray(pair_label).tobytes())
    if workers is not None:
        _write_ids(path / "workers.parquet", workers)
    for info in shard_infos:
        sha.update(info.sha256.encode())
    write_json(
        path / "crowd.json",
        {
            "version": VERSION,
            "n_tasks": sum(info.n_tasks for info in shard_infos),
            "n_votes": sum(info.n_votes for info in shard_infos),
            "weighted": weighted,
            "has_workers": workers is not None,
            "sha256": sha.hexdigest(),
            "shards": [info._asdict() for info in shard_infos],
        },
    )
    return open_shards(path)


def write_shards(crowd: Crowd, folder: str | os.PathLike[str], votes_per_shard: int = VOTES_PER_SHARD) -> ShardedCrowd:
    """Write a crowd in memory to a folder of shards; see `Crowd.to_shards`.

    Parameters
    ----------
    crowd : Crowd
        Votes for classes.
    folder : path-like
        New or empty folder.
    votes_per_shard : int, default=2**24
        Approximate number of votes per shard.

    Returns
    -------
    ShardedCrowd
        The crowd in the folder.

    Examples
    --------
    >>> import tempfile
    >>> write_shards(Crowd.from_triples([("t1", "ann", "cat")]), tempfile.mkdtemp() + "/crowd").n_votes
    1
    """
    path = Path(folder)
    if crowd.classes is None:
        raise UsageError("shards hold classes, but the labels of this crowd are numbers; use the crowd in memory")
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UsageError(f"{path} exists and is not empty; choose another folder for the shards")
    if votes_per_shard < 1:
        raise UsageError(f"votes_per_shard must be 1 or more; got {votes_per_shard}")
    pairs, counts = crowd.pairs, crowd.votes_per_task
    infos = []
    for number, (begin, end) in enumerate(cut_tasks(crowd.offset, votes_per_shard)):
        rows = slice(crowd.offset[begin], crowd.offset[end])
        weight = crowd.weight[rows] if crowd.is_weighted else None
        infos.append(
            write_shard(path, number, crowd.tasks[begin:end], counts[begin:end], pairs.vote_pairs[rows], weight)
        )
    return finish_shards(
        path,
        infos,
        classes=crowd.classes,
        workers=crowd.workers,
        pair_worker=pairs.worker,
        pair_label=pairs.label,
        weighted=crowd.is_weighted,
    )


class _MappedArrowFile:
    """Arrow file that is mapped into memory: the operating system reads pages on access and may drop them again."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        try:
            self.table = pa.ipc.open_file(pa.py_buffer(self._map)).read_all()
        except pa.ArrowInvalid as error:
            raise InputError(f"{path} is damaged ({error}). Shard the votes again") from None

    def column(self, name: str) -> NDArray[Any]:
        """Return a column without copying it."""
        chunks = self.table.column(name).chunks
        return chunks[0].to_numpy() if chunks else np.empty(0, self.table.schema.field(name).type.to_pandas_dtype())

    def advise(self, advice: str) -> None:
        """Give the operating system advice on the pages, where it takes such advice."""
        if hasattr(mmap, advice):
            self._map.madvise(getattr(mmap, advice))


def _write_arrow(path: Path, columns: dict[str, Any]) -> None:
    # One batch, so that each column is one chunk of memory.
    batch = pa.RecordBatch.from_pydict(columns)
    with (
        atomic_path(path) as partial_path,
        pa.OSFile(str(partial_path), "wb") as sink,
        pa.ipc.new_file(sink, batch.schema) as writer,
    ):
        writer.write_batch(batch)


def _write_ids(path: Path, ids: pd.Index) -> None:
    import pyarrow.parquet as pq

    with atomic_path(path) as partial_path:
        pq.write_table(pa.table({"value": pa.array(ids)}), partial_path)


def _read_ids(path: Path) -> pd.Index:
    import pyarrow.parquet as pq

    return pd.Index(pq.read_table(path).column("value").to_pandas())
