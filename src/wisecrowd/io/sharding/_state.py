"""How far a folder of shards has come, so that an interrupted run goes on: its plan, its progress, a lock, a full disk."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from wisecrowd.errors import InputError, UsageError, some
from wisecrowd.io.sharding._inputs import Source
from wisecrowd.utils.files import read_json, write_json

SCRATCH, PROGRESS, INPUTS, LOCK = ".sharding", "progress.json", "inputs.json", "lock"
#: Rules for repeats under which pairs of worker and label may be left without a vote; shards are then not final at once.
DROPPING, RAW = ("first", "last"), "raw"
#: What a finished folder holds, in the order in which it goes: without the first, nothing looks whole.
MADE = ("crowd.json", "shards", INPUTS, "classes.parquet", "workers.parquet", "pairs.arrow")
_FULL = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True)
class Progress:
    """What is done: ``portions`` of files are divided into buckets, the vocabularies are known or not.

    >>> Progress({"inputs": []}).portions
    0
    """

    plan: dict[str, Any]
    portions: int = 0
    rows: int = 0
    votes: int = 0
    weighted: bool = False
    whole: bool = True
    vocabularies: bool = False
    #: Votes in each bucket; those without any become no shard.
    buckets: list[int] = field(default_factory=list)

    def write(self, folder: Path) -> Progress:
        """Note it."""
        write_json(folder / SCRATCH / PROGRESS, asdict(self))
        return self


def plan_of(sources: Sequence[Source], options: dict[str, Any], engine: str) -> dict[str, Any]:
    """All that the shards follow from: files as they are now, options, and whose hash function it is.

    >>> plan_of([], {"missing": "error"}, "DuckDB 2.0.0")
    {'inputs': [], 'options': {'missing': 'error'}, 'engine': 'DuckDB 2.0.0'}
    """
    inputs = [{"path": str(one.path.resolve()), "size": one.size, "changed": one.changed} for one in sources]
    return {"inputs": inputs, "options": options, "engine": engine}


def differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What a run would do otherwise than the one before it; an option that was "error" and refused nothing may change.

    >>> differences(plan_of([], {"missing": "drop"}, "1"), plan_of([], {"missing": "error"}, "1"))
    ["missing was 'drop' and is 'error'"]
    """
    known, given = ({one["path"]: one for one in plan["inputs"]} for plan in (before, now))
    found = [f"{path} is not among the files any more" for path in known if path not in given]
    found += [f"{path} is new" for path in given if path not in known]
    found += [f"{path} has changed" for path in given if path in known and known[path] != given[path]]
    if not found and list(known) != list(given):
        found.append("the files come in another order")
    for name, value in now["options"].items():
        was = before["options"].get(name)
        if was != value and not (name in ("duplicates", "missing") and was == "error"):
            found.append(f"{name} was {was!r} and is {value!r}")
    if before["engine"] != now["engine"]:
        found.append(f"{before['engine']} began it, and this is {now['engine']}")
    return found


def resume(folder: Path, plan: dict[str, Any]) -> Progress | None:
    """How far the same work has come; None when it is done already. Other work in the same folder is refused.

    >>> resume(Path("crowd"), {"inputs": [], "options": {}, "engine": ""}).portions
    0
    """
    record = folder / SCRATCH / PROGRESS
    if (folder / "crowd.json").exists():
        differs = ["it was not made of files"]
        if (folder / INPUTS).exists():
            differs = differences(read_json(folder / INPUTS), plan)
        if not differs:
            return None
        raise UsageError(
            f"{folder} holds a whole crowd already, and not this one: {'; '.join(_few(differs))}. Choose another folder, or "
            "replace what is there: fresh=True (--fresh)"
        )
    if not record.exists():
        return Progress(plan)
    try:
        done = Progress(**read_json(record))
        differs = differences(done.plan, plan)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InputError(f"{record} is not as wisecrowd writes it; begin anew: fresh=True (--fresh)") from None
    if differs:
        raise UsageError(
            f"{folder} was begun otherwise: {'; '.join(_few(differs))}. Give the same files and options to go on, or begin "
            "anew: fresh=True (--fresh), or another folder"
        )
    if done.plan == plan:
        return done
    # A rule for repeats was given after they had been refused: shards that had none are as final as the others will be.
    raw = folder / SCRATCH / RAW / "shards"
    if plan["options"]["duplicates"] in DROPPING and (folder / "shards").exists() and not raw.exists():
        raw.parent.mkdir(exist_ok=True)
        (folder / "shards").rename(raw)
    return replace(done, plan=plan).write(folder)


def _few(reasons: list[str], limit: int = 3) -> list[str]:
    return reasons if len(reasons) <= limit else [*reasons[:limit], f"and {len(reasons) - limit:,} more"]


def prepare(folder: Path) -> None:
    """Have a folder for shards; one that holds something else is refused.

    >>> prepare(Path("crowd"))
    >>> [path.name for path in Path("crowd").iterdir()]
    ['.sharding']
    """
    if folder.exists():
        if not folder.is_dir():
            raise UsageError(f"{folder} is a file; shards are written to a folder")
        there = {path.name for path in folder.iterdir()}
        if there and not there & {"crowd.json", SCRATCH}:
            raise UsageError(
                f"{folder} exists and holds something else ({some(sorted(there))}); choose another folder for the shards"
            )
    (folder / SCRATCH).mkdir(parents=True, exist_ok=True)


def clear(folder: Path) -> None:
    """Remove what earlier runs made, and nothing else; the lock stays.

    >>> prepare(Path("crowd"))
    >>> clear(Path("crowd"))
    """
    for name in MADE:
        remove(folder / name)
    for path in (folder / SCRATCH).iterdir():
        if path.name != LOCK:
            remove(path)


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there.

    >>> remove(Path("nothing"))
    """
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def sweep(folder: Path) -> None:
    """Remove what a killed run left half-written: files that never got their name.

    >>> sweep(Path("nowhere"))
    """
    own = [f".{Path(name).stem}-*" for name in MADE]
    left = [path for pattern in own for path in folder.glob(pattern)]
    for place in (folder / "shards", folder / SCRATCH, folder / SCRATCH / RAW / "shards"):
        left += place.glob(".*-*")
    for path in left:
        if path.is_file():
            path.unlink()


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep a second run away from the same folder; the lock ends with the program, however that ends.

    >>> prepare(Path("crowd"))
    >>> with locked(Path("crowd")):
    ...     pass
    """
    try:
        import fcntl
    except ImportError:  # a system without such locks
        yield
        return
    with (folder / SCRATCH / LOCK).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):  # a file system that knows no locks
                yield
                return
            raise UsageError(f"another run is writing to {folder}; wait for it, or choose another folder") from None
        yield


@contextlib.contextmanager
def told_plainly(folder: Path, needed: int) -> Iterator[None]:
    """Say what to do about a full disk, or too little memory for the engine.

    >>> with told_plainly(Path("."), 10**9):
    ...     raise OSError(errno.ENOSPC, "No space left on device")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: the disk of . is full: about 1.0 GB are needed, and ... are free. What was done is kept: ...
    """
    try:
        yield
    except Exception as error:
        from_engine = type(error).__module__.endswith("duckdb")
        text = str(error)
        full = isinstance(error, OSError) and error.errno in _FULL
        if full or (
            (from_engine or isinstance(error, OSError)) and ("No space left" in text or "max_temp_dir" in text)
        ):
            raise InputError(
                f"the disk of {folder} is full: about {_size(needed)} are needed, and {_size(_free(folder))} are free. "
                "What was done is kept: make room, and give the same command again to go on"
            ) from None
        if from_engine and type(error).__name__ == "OutOfMemoryException":
            raise InputError(
                'the memory does not suffice; allow more with memory="8GB" (--memory 8GB), or fewer threads with n_jobs=1 '
                f"(--jobs 1), and give the same command again to go on. The engine says: {text.splitlines()[0][:200]}"
            ) from None
        if from_engine and type(error).__name__ == "IOException":
            raise InputError(f"{folder} cannot be written: {text[:300]}") from None
        raise


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:.1f} MB"


def _free(folder: Path) -> int:
    return shutil.disk_usage(folder).free


def free_memory() -> int:
    """Bytes of memory that nobody uses, as far as the system tells.

    >>> free_memory() > 2**20
    True
    """
    found = []
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
        found.append(1024 * int(next(line for line in lines if line.startswith("MemAvailable")).split()[1]))
    with contextlib.suppress(OSError, ValueError):  # a container may have less than its machine
        group = Path("/sys/fs/cgroup")
        limit, used = ((group / name).read_text(encoding="utf-8") for name in ("memory.max", "memory.current"))
        found.append(max(int(limit) - int(used), 2**28))
    with contextlib.suppress(OSError, ValueError, AttributeError):
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(found, default=2**32)
