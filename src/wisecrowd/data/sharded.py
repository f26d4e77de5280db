"""Crowds larger than memory, as folders of shards.

A shard holds consecutive tasks with all their votes. Its files are mapped into memory when a method processes it. A
folder contains:

- ``crowd.json``: sizes and the list of shards. It is written last, so a folder with it is complete.
- ``classes.arrow`` and ``workers.arrow``: the vocabularies.
- ``pairs.arrow``: the pairs of worker and label that occur, sorted.
- ``shards/000000.votes.arrow``: pair (a row of ``pairs.arrow``) and, in a weighted crowd, weight of each vote; sorted
  by task and pair.
- ``shards/000000.tasks.arrow``: id and number of votes of each task.
- ``shards/000000.json``: sizes and digest of the shard, written after both files.

`Crowd.to_shards` writes such a folder from a crowd in memory, ``wisecrowd shard`` from files of any size, and
`Crowd.open` opens it.

A folder is not trusted. Sizes in ``crowd.json`` are compared with the lengths of the files, and every code with its
vocabulary, before anything uses them: the kernels do not check codes. Digests are compared as well, unless the caller
opens the folder with ``verify=False``. What takes a pass over a file is done once per file and crowd object.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from wisecrowd.data.answer_type import AnswerType
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.crowd_slice import CrowdSlice, PairVotes, cut_tasks
from wisecrowd.data.pairs import Pairs
from wisecrowd.data.rows import are_codes, find_invalid_weight
from wisecrowd.data.vocabulary import as_vocabulary
from wisecrowd.errors import InputError, UsageError, preview
from wisecrowd.utils.files import atomic_path, write_json
from wisecrowd.utils.stored_files import FileSignature, StoredTable, load_json, refuse_damage, write_table
from wisecrowd.utils.text import count_noun

#: Version of the folder's layout.
VERSION = 2
#: Default number of votes per shard: the fixed cost per shard is negligible, and a shard is small beside memory.
VOTES_PER_SHARD = 2**24
#: Largest number of task ids, or of posterior probabilities, that is collected from all shards into one array.
MAX_COLLECTED_CELLS = 2**28
#: Largest number of tasks, or of votes, of a shard; a larger one in ``crowd.json`` is an error.
MAX_SIZE = 2**48
#: What to do about a damaged folder.
ADVICE = "Shard the votes again"
#: Types of the number of votes of a task: the smallest that holds the largest number.
_COUNT_TYPES = [np.uint8, np.uint16, np.uint32, np.uint64]


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
    """Votes in the files of a shard, mapped into memory and checked on first access.

    Parameters
    ----------
    crowd : ShardedCrowd
        Crowd that the shard belongs to.
    info : ShardInfo
        The shard.
    """

    has_checked_codes = True

    def __init__(self, crowd: ShardedCrowd, info: ShardInfo) -> None:
        self._crowd, self._info = crowd, info
        self.has_class_order = crowd.is_ordered

    def prefetch(self) -> None:
        """Ask the operating system to read the votes from disk, without waiting for them."""
        self._votes_file.advise("MADV_WILLNEED")

    @cached_property
    def tasks(self) -> pd.Index:
        """Task ids."""
        return pd.Index(self._columns.task.to_pandas())

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
        counts = self._columns.n_votes
        offset = np.zeros(len(counts) + 1, dtype=np.int64)
        np.cumsum(counts, dtype=np.int64, out=offset[1:])
        return offset

    @cached_property
    def pairs(self) -> Pairs:
        """Pairs of worker and label of the crowd, and the pair of each vote."""
        return self._crowd.pairs.with_votes(self._columns.pair)

    @property
    def weight(self) -> NDArray[np.float64] | None:
        """Weight of each vote; None when every vote counts once."""
        return self._columns.weight

    @cached_property
    def _votes_file(self) -> StoredTable:
        return StoredTable(self._crowd.folder / "shards" / f"{self._info.name}.votes.arrow", ADVICE)

    @cached_property
    def _columns(self) -> _ShardColumns:
        """Columns of both files, checked against sizes, codes and digest."""
        crowd, info, votes = self._crowd, self._info, self._votes_file
        tasks = StoredTable(crowd.folder / "shards" / f"{info.name}.tasks.arrow", ADVICE)
        columns = _ShardColumns(
            votes.read_numbers("pair", [np.int32]),
            votes.read_numbers("weight", [np.float64]) if crowd.is_weighted else None,
            tasks.read_column("task"),
            tasks.read_numbers("n_votes", _COUNT_TYPES),
        )
        for table, size in ((votes, info.n_votes), (tasks, info.n_tasks)):
            if len(table) != size:
                raise InputError(f"{table.path} has {len(table):,} rows, and crowd.json says {size:,}. {ADVICE}")
        signatures = votes.signature, tasks.signature
        if crowd.checked_shards.get(info.name) != signatures:
            votes.validate()
            tasks.validate()
            problem = columns.find_problem(len(crowd.pairs))
            if problem is not None:
                raise InputError(f"{votes.path} is damaged: {problem}. {ADVICE}")
            if crowd.verify and columns.compute_digest() != info.sha256:
                raise InputError(
                    f"shard {info.name} of {crowd.folder} was changed after it was written: its SHA-256 is not the one in "
                    f"crowd.json. {ADVICE}, or open it without verification: Crowd.open(folder, verify=False), or "
                    "--no-verify"
                )
            crowd.checked_shards[info.name] = signatures
        return columns


class _ShardColumns(NamedTuple):
    """Columns of the files of a shard."""

    pair: NDArray[np.int32]
    weight: NDArray[np.float64] | None
    task: pa.Array
    n_votes: NDArray[Any]

    def find_problem(self, n_pairs: int) -> str | None:
        """Return why the columns are no votes over a number of pairs, or None if they are."""
        if not are_codes(self.pair, n_pairs):
            row = int(np.flatnonzero((self.pair < 0) | (self.pair >= n_pairs))[0])
            return f"vote {row:,} has the pair {self.pair[row]}, and pairs lie in 0…{n_pairs - 1}"
        n_votes = len(self.pair)
        if self.n_votes.max(initial=0) > n_votes or int(self.n_votes.sum(dtype=np.uint64)) != n_votes:
            return f"its tasks do not have {n_votes:,} votes together"
        return None if self.weight is None else find_invalid_weight(self.weight)

    def compute_digest(self) -> str:
        """Return the SHA-256 of the contents, which does not depend on the layout of the files."""
        sha = hashlib.sha256()
        for name, column in self._asdict().items():
            if column is not None:
                _update_digest(sha, name, column)
        return sha.hexdigest()


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
    Crowd(2 votes: 1 task x 3 workers, 2 classes, 2.0 votes/task)
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
    verify : bool, default=True
        Whether files are compared with their digests when they are first read.
    is_ordered : bool, default=False
        Whether the classes are ordered, from lowest to highest.
    checked_shards : dict
        Signatures of the files that were checked, by the name of the shard.

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
    verify: bool = True
    is_ordered: bool = False
    checked_shards: dict[str, tuple[FileSignature, ...]] = field(default_factory=dict, repr=False)

    is_numeric = False
    has_times = False

    @property
    def answer_type(self) -> AnswerType:
        """Type of the labels: "categorical" or "ordinal"."""
        return "ordinal" if self.is_ordered else "categorical"

    @property
    def classes(self) -> pd.Index:
        """Classes, including unused ones."""
        return self._tables.classes

    @property
    def workers(self) -> pd.Index | None:
        """Worker ids; None when votes have no worker ids."""
        return self._tables.workers

    @property
    def pairs(self) -> Pairs:
        """Pairs of worker and label that occur; the pair of each vote is in its shard."""
        return self._tables.pairs

    @cached_property
    def _tables(self) -> _CrowdTables:
        """Vocabularies and pairs, checked against each other and against the digest of the crowd."""
        names = ["classes", *(["workers"] if self.has_workers else []), "pairs"]
        tables = {name: StoredTable(self.folder / f"{name}.arrow", ADVICE) for name in names}
        for table in tables.values():
            table.validate()
        ids = {name: tables[name].read_column("value") for name in names[:-1]}
        pair_worker, pair_label = (tables["pairs"].read_numbers(name, [np.int32]) for name in ("worker", "label"))
        sha256 = compute_crowd_digest(
            ids["classes"], ids.get("workers"), pair_worker, pair_label, self.shard_infos, ordered=self.is_ordered
        )
        if self.verify and sha256 != self.digest:
            raise InputError(
                f"{self.folder} was changed after it was written: the SHA-256 of its vocabularies, pairs and shards is not "
                f"the one in crowd.json. {ADVICE}, or open it without verification: Crowd.open(folder, verify=False), or "
                "--no-verify"
            )
        index = {}
        for name, column in ids.items():
            with refuse_damage(tables[name].path, ADVICE):
                index[name] = as_vocabulary(pd.Index(column.to_pandas()), name)
        workers = index.get("workers")
        n_workers = 1 if workers is None else len(workers)
        pairs = Pairs(pair_worker, pair_label, np.empty(0, dtype=np.int32), n_workers)
        problem = pairs.find_problem(len(index["classes"]))
        if problem is not None:
            raise InputError(f"{tables['pairs'].path} is damaged: {problem}. {ADVICE}")
        return _CrowdTables(index["classes"], workers, pairs)

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
            ordered=self.is_ordered,
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
            task, None, label, tasks=self.tasks, workers=None, classes=self.classes, weight=counts[task, label],
            ordered=self.is_ordered,
        )  # fmt: skip

    def __len__(self) -> int:
        return self.n_tasks

    def __reduce__(self) -> tuple[Any, ...]:  # another process maps the same files
        return open_shards, (self.folder, self.verify)

    def __repr__(self) -> str:
        workers = ", no worker ids" if self.workers is None else f" x {count_noun(len(self.workers), 'worker')}"
        return (
            f"ShardedCrowd({count_noun(self.n_votes, 'vote')}: {count_noun(self.n_tasks, 'task')}{workers}, "
            f"{count_noun(self.n_classes, 'class')}, in {count_noun(self.n_shards, 'shard')})"
        )


class _CrowdTables(NamedTuple):
    """Vocabularies and pairs of a crowd."""

    classes: pd.Index
    workers: pd.Index | None
    pairs: Pairs


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


def open_shards(folder: str | os.PathLike[str], verify: bool = True) -> ShardedCrowd:
    """Open a folder of shards; see `Crowd.open`.

    Parameters
    ----------
    folder : path-like
        Folder of shards.
    verify : bool, default=True
        Whether to compare files with their SHA-256 digests when they are first read. Sizes and codes are always checked.

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
    content = load_json(path / "crowd.json", ADVICE)
    with refuse_damage(path / "crowd.json", ADVICE):
        if content["version"] != VERSION:
            raise InputError(
                f"{path} has layout version {preview([content['version']])}, but this wisecrowd reads version {VERSION}. "
                f"{ADVICE}"
            )
        crowd = _parse_crowd(path, content, verify)
    _check_files(crowd)
    return crowd


def load_shard_info(path: Path) -> ShardInfo:
    """Read the description of a shard, which `write_shard` writes last.

    Parameters
    ----------
    path : Path
        JSON file.

    Returns
    -------
    ShardInfo
        Sizes and digest.

    Raises
    ------
    InputError
        If the file is damaged.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> info = write_shard(folder, 0, ["t1", "t2"], np.array([1, 2]), np.array([0, 0, 1], dtype=np.int32))
    >>> load_shard_info(folder / "shards" / "000000.json") == info
    True
    """
    content = load_json(path, ADVICE)
    with refuse_damage(path, ADVICE):
        return _parse_info(content)


def _parse_info(content: Any) -> ShardInfo:
    """Return the description of a shard from its JSON form."""
    if not (
        isinstance(content, dict)
        and set(content) == set(ShardInfo._fields)
        and isinstance(content["name"], str)
        and re.fullmatch(r"\d{6,12}", content["name"], re.ASCII)  # part of a path
        and _is_size(content["n_tasks"])
        and _is_size(content["n_votes"])
        and _is_digest(content["sha256"])
    ):
        raise ValueError(f"not a shard: {preview([content])}")
    return ShardInfo(**content)


def _parse_crowd(folder: Path, content: dict[str, Any], verify: bool) -> ShardedCrowd:
    """Return the crowd that ``crowd.json`` describes."""
    if not isinstance(content["shards"], list):
        raise ValueError("shards is not a list")
    infos = tuple(_parse_info(info) for info in content["shards"])
    if len({info.name for info in infos}) != len(infos):
        raise ValueError("a shard is listed twice")
    for name in ("n_tasks", "n_votes"):
        total = sum(getattr(info, name) for info in infos)
        if content[name] != total:
            raise ValueError(f"{name} is {preview([content[name]])}, and the shards have {total} together")
    flags = {"ordered": content.get("ordered", False)} | {name: content[name] for name in ("weighted", "has_workers")}
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise ValueError(f"{name} is {preview([value])}")
    if not _is_digest(content["sha256"]):
        raise ValueError(f"sha256 is {preview([content['sha256']])}")
    return ShardedCrowd(
        folder, infos, flags["weighted"], flags["has_workers"], content["sha256"], bool(verify), flags["ordered"]
    )


def _check_files(crowd: ShardedCrowd) -> None:
    """Raise if a file is absent or shorter than its contents, before anything is allocated for them."""
    names = ["classes.arrow", "pairs.arrow", *(["workers.arrow"] if crowd.has_workers else [])]
    absent = [name for name in names if not (crowd.folder / name).is_file()]
    if absent:
        raise InputError(f"{crowd.folder} lacks {preview(absent)}. {ADVICE}")
    shards, bytes_per_vote = crowd.folder / "shards", 12 if crowd.is_weighted else 4
    incomplete = []
    for info in crowd.shard_infos:
        sizes = {"votes": bytes_per_vote * info.n_votes, "tasks": info.n_tasks}
        try:
            is_complete = all((shards / f"{info.name}.{kind}.arrow").stat().st_size >= sizes[kind] for kind in sizes)
        except OSError:
            is_complete = False
        if not is_complete:
            incomplete.append(info.name)
    if incomplete:
        raise InputError(
            f"{crowd.folder} lacks {len(incomplete):,} of its shards, or their files are too short: {preview(incomplete)}. "
            f"{ADVICE}"
        )


def _is_size(value: object) -> bool:
    """Return whether a value of JSON is a possible number of rows."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_SIZE


def _is_digest(value: object) -> bool:
    """Return whether a value of JSON is a SHA-256."""
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None


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
    ids = tasks if isinstance(tasks, pa.Array) else pa.array(tasks)
    columns = _ShardColumns(
        np.asarray(pair, dtype=np.int32),
        None if weight is None else np.asarray(weight, dtype=np.float64),
        ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids,
        counts.astype(count_type),
    )
    votes = {"pair": columns.pair} | ({} if columns.weight is None else {"weight": columns.weight})
    _write_arrow(path / f"{name}.votes.arrow", votes)
    _write_arrow(path / f"{name}.tasks.arrow", {"task": columns.task, "n_votes": columns.n_votes})
    info = ShardInfo(name, len(counts), len(pair), columns.compute_digest())
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
    ordered: bool = False,
) -> ShardedCrowd:
    """Complete a folder of shards: write its classes, workers and pairs, then ``crowd.json``.

    A pair is a combination of worker and label that occurs in the votes; votes refer to pairs by their number. ``crowd.json`` is
    written last, so that a folder without this file is known to be incomplete.

    Parameters
    ----------
    folder : path-like
        Folder of shards.
    infos : iterable of ShardInfo
        The shards in their order.
    classes, workers : Index
        Names of the classes and ids of the workers. ``workers`` is None if votes have no worker ids.
    pair_worker, pair_label : ndarray of shape (n_pairs,)
        Worker and label of each pair, as positions in ``workers`` and ``classes``.
    weighted : bool
        Whether the votes in the shards have weights.
    ordered : bool, default=False
        Whether the classes are ordered, from lowest to highest.

    Returns
    -------
    ShardedCrowd
        The crowd in the folder.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> pair_worker, pair_label = np.array([[0, 1], [1, 1]], dtype=np.int32)   # ann says yes, bob says yes
    >>> info = write_shard(folder, 0, ["t1"], np.array([2]), np.array([0, 1], dtype=np.int32))   # both vote on t1
    >>> finish_shards(folder, [info], classes=pd.Index(["no", "yes"]), workers=pd.Index(["ann", "bob"]),
    ...               pair_worker=pair_worker, pair_label=pair_label, weighted=False).load().to_frame()
      task worker label
    0   t1    ann   yes
    1   t1    bob   yes
    """
    path, shard_infos = Path(folder), list(infos)
    class_ids, worker_ids = pa.array(classes), None if workers is None else pa.array(workers)
    _write_arrow(path / "pairs.arrow", {"worker": pair_worker, "label": pair_label})
    _write_arrow(path / "classes.arrow", {"value": class_ids})
    if worker_ids is not None:
        _write_arrow(path / "workers.arrow", {"value": worker_ids})
    sha256 = compute_crowd_digest(class_ids, worker_ids, pair_worker, pair_label, shard_infos, ordered=ordered)
    write_json(
        path / "crowd.json",
        {
            "version": VERSION,
            "n_tasks": sum(info.n_tasks for info in shard_infos),
            "n_votes": sum(info.n_votes for info in shard_infos),
            "weighted": weighted,
            "has_workers": workers is not None,
            **({"ordered": True} if ordered else {}),
            "sha256": sha256,
            "shards": [info._asdict() for info in shard_infos],
        },
    )
    return open_shards(path)


def compute_crowd_digest(
    classes: pa.Array,
    workers: pa.Array | None,
    pair_worker: NDArray[np.int32],
    pair_label: NDArray[np.int32],
    infos: Iterable[ShardInfo],
    *,
    ordered: bool = False,
) -> str:
    """Compute the digest of a crowd in shards from its vocabularies, its pairs and the digests of its shards.

    Parameters
    ----------
    classes, workers : pyarrow.Array
        Vocabularies; ``workers`` is None when votes have no worker ids.
    pair_worker, pair_label : ndarray of shape (n_pairs,)
        Worker and class code of each pair.
    infos : iterable of ShardInfo
        The shards in their order.
    ordered : bool, default=False
        Whether the classes are ordered.

    Returns
    -------
    str
        SHA-256 in hexadecimal digits.

    Examples
    --------
    >>> code = np.zeros(1, dtype=np.int32)
    >>> cat, dog = (compute_crowd_digest(pa.array([name]), None, code, code, []) for name in ("cat", "dog"))
    >>> len(cat), cat == dog
    (64, False)
    """
    sha = hashlib.sha256()
    columns = {"class": classes, "worker": workers, "pair_worker": pair_worker, "pair_label": pair_label}
    for name, column in columns.items():
        if column is not None:
            _update_digest(sha, name, column)
    for info in infos:
        sha.update(f"{info.name} {info.n_tasks} {info.n_votes} {info.sha256}\n".encode())
    if ordered:
        sha.update(b"ordered")
    return sha.hexdigest()


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
        ordered=crowd.is_ordered,
    )


def _write_arrow(path: Path, columns: dict[str, Any]) -> None:
    with atomic_path(path) as partial_path:
        write_table(partial_path, columns)


def _update_digest(sha: Any, name: str, column: pa.Array | NDArray[Any]) -> None:
    """Add the name, the type and the values of a column to a digest; neither offsets nor padding of its buffers count."""
    values = column if isinstance(column, pa.Array) else pa.array(column)
    sha.update(f"{name} {values.type} {len(values)}\n".encode())
    if len(values) == 0:
        return
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        _, bounds, text = values.buffers()
        offset_type = np.int32 if pa.types.is_string(values.type) else np.int64
        bound = np.frombuffer(bounds, offset_type)[values.offset : values.offset + len(values) + 1]
        sha.update(bound - bound[0])
        sha.update(b"" if text is None else text[int(bound[0]) : int(bound[-1])])
    else:
        sha.update(np.ascontiguousarray(values.to_numpy(zero_copy_only=False)).view(np.uint8))
