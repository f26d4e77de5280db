"""State of a folder of shards: the plan, the progress, the lock, and errors about memory and disk space."""

from __future__ import annotations

import contextlib
import errno
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from wisecrowd.errors import InputError, UsageError, preview
from wisecrowd.io.sharding._input_files import InputFile
from wisecrowd.utils.files import remove_stale_files, write_json
from wisecrowd.utils.stored_files import load_json, refuse_damage

SCRATCH, PROGRESS, INPUTS, LOCK = ".sharding", "progress.json", "inputs.json", "lock"
#: Rules that drop votes, so that (worker, label) pairs may be left without a vote.
DROPPING_RULES = ("first", "last")
#: Folder in the scratch folder for shards that may still contain unused pairs.
RAW = "raw"
#: Files of a finished folder in the order of deletion. Without the first one, nothing looks finished.
OUTPUTS = ("crowd.json", "shards", INPUTS, "classes.arrow", "workers.arrow", "pairs.arrow")
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True)
class Progress:
    """Progress of sharding.

    Parameters
    ----------
    plan : dict
        Plan of `build_plan`.
    n_portions : int, default=0
        Number of portions of files that are in buckets.
    n_rows, n_votes : int, default=0
        Number of rows and votes in these portions.
    is_weighted : bool, default=False
        Whether some weight differs from 1.
    has_integer_tasks : bool, default=True
        Whether all task ids are whole numbers, if they are numbers.
    has_vocabularies : bool, default=False
        Whether the vocabularies are built.
    bucket_votes : list of int
        Number of votes in each bucket. Empty buckets become no shards.

    Examples
    --------
    >>> Progress({"inputs": []}).n_portions
    0
    """

    plan: dict[str, Any]
    n_portions: int = 0
    n_rows: int = 0
    n_votes: int = 0
    is_weighted: bool = False
    has_integer_tasks: bool = True
    has_vocabularies: bool = False
    bucket_votes: list[int] = field(default_factory=list)

    def save(self, folder: Path) -> None:
        """Write the progress to the scratch folder.

        Parameters
        ----------
        folder : Path
            Folder of shards.
        """
        write_json(folder / SCRATCH / PROGRESS, asdict(self))


def build_plan(files: Sequence[InputFile], options: dict[str, Any], engine: str) -> dict[str, Any]:
    """Build the plan, which determines the shards.

    Parameters
    ----------
    files : sequence of InputFile
        Files, identified by path, size and time of change.
    options : dict
        Columns and rules.
    engine : str
        Engine and its version, whose hash function assigns tasks to buckets.

    Returns
    -------
    dict
        Plan.

    Examples
    --------
    >>> build_plan([], {"missing": "error"}, "DuckDB 2.0.0")
    {'inputs': [], 'options': {'missing': 'error'}, 'engine': 'DuckDB 2.0.0'}
    """
    inputs = [{"path": str(file.path.resolve()), "size": file.n_bytes, "changed": file.modified} for file in files]
    return {"inputs": inputs, "options": options, "engine": engine}


def compare_plans(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return the differences of two plans. A rule that was "error" and raised no error may change.

    Parameters
    ----------
    old, new : dict
        Plans.

    Returns
    -------
    list of str
        Descriptions for a message.

    Examples
    --------
    >>> compare_plans(build_plan([], {"missing": "drop"}, "1"), build_plan([], {"missing": "error"}, "1"))
    ["missing was 'drop' and is 'error'"]
    """
    old_inputs, new_inputs = ({entry["path"]: entry for entry in plan["inputs"]} for plan in (old, new))
    differences = [f"{path} is not among the files any more" for path in old_inputs if path not in new_inputs]
    differences += [f"{path} is new" for path in new_inputs if path not in old_inputs]
    differences += [f"{path} has changed" for path, entry in new_inputs.items() if old_inputs.get(path, entry) != entry]
    if not differences and list(old_inputs) != list(new_inputs):
        differences.append("the files are in another order")
    for name, value in new["options"].items():
        old_value = old["options"].get(name)
        if old_value != value and not (name in ("duplicates", "missing") and old_value == "error"):
            differences.append(f"{name} was {old_value!r} and is {value!r}")
    if old["engine"] != new["engine"]:
        differences.append(f"{old['engine']} began it, and this is {new['engine']}")
    return differences


def load_progress(folder: Path, plan: dict[str, Any]) -> Progress | None:
    """Load the progress of an earlier run with the same plan.

    Parameters
    ----------
    folder : Path
        Folder of shards.
    plan : dict
        Plan of this run.

    Returns
    -------
    Progress or None
        Progress. None if the folder is finished.

    Raises
    ------
    UsageError
        If the earlier run had another plan.

    Examples
    --------
    >>> load_progress(Path("crowd"), {"inputs": [], "options": {}, "engine": ""}).n_portions
    0
    """
    record = folder / SCRATCH / PROGRESS
    if (folder / "crowd.json").exists():
        differences = ["it was not made of files"]
        if (folder / INPUTS).exists():
            advice = "Choose another folder, or replace it: fresh=True (--fresh)"
            with refuse_damage(folder / INPUTS, advice):
                differences = compare_plans(load_json(folder / INPUTS, advice), plan)
        if not differences:
            return None
        raise UsageError(
            f"{folder} holds another crowd already: {'; '.join(_shorten(differences))}. Choose another folder, or replace it: "
            "fresh=True (--fresh)"
        )
    if not record.exists():
        return Progress(plan)
    with refuse_damage(record, "Start again: fresh=True (--fresh)"):
        progress = _parse_progress(load_json(record, "Start again: fresh=True (--fresh)"))
        differences = compare_plans(progress.plan, plan)
    if differences:
        raise UsageError(
            f"{folder} was begun with other inputs: {'; '.join(_shorten(differences))}. Give the same files and options to go "
            "on, or start again: fresh=True (--fresh), or another folder"
        )
    if progress.plan == plan:
        return progress
    # The rule for repeated votes was given after they had raised an error. Shards without repeats are final like the others.
    raw = folder / SCRATCH / RAW / "shards"
    if plan["options"]["duplicates"] in DROPPING_RULES and (folder / "shards").exists() and not raw.exists():
        raw.parent.mkdir(exist_ok=True)
        (folder / "shards").rename(raw)
    progress = replace(progress, plan=plan)
    progress.save(folder)
    return progress


def _parse_progress(content: dict[str, Any]) -> Progress:
    """Return the progress from its JSON form."""
    progress = Progress(**content)
    for name, default in asdict(Progress({})).items():
        value = getattr(progress, name)
        if type(value) is not type(default) or (isinstance(value, int) and value < 0):
            raise ValueError(f"{name} is {preview([value])}")
    if not all(type(n_votes) is int and n_votes >= 0 for n_votes in progress.bucket_votes):
        raise ValueError("bucket_votes holds something other than numbers")
    return progress


def _shorten(reasons: list[str], limit: int = 3) -> list[str]:
    return reasons if len(reasons) <= limit else [*reasons[:limit], f"and {len(reasons) - limit:,} more"]


def prepare_folder(folder: Path) -> None:
    """Create the folder for shards.

    Parameters
    ----------
    folder : Path
        Folder of shards.

    Raises
    ------
    UsageError
        If the folder holds something else.

    Examples
    --------
    >>> prepare_folder(Path("crowd"))
    >>> [path.name for path in Path("crowd").iterdir()]
    ['.sharding']
    """
    if folder.exists():
        if not folder.is_dir():
            raise UsageError(f"{folder} is a file; shards are written to a folder")
        names = {path.name for path in folder.iterdir()}
        if names and not names & {"crowd.json", SCRATCH}:
            raise UsageError(
                f"{folder} exists and holds something else ({preview(sorted(names))}); choose another folder for the shards"
            )
    (folder / SCRATCH).mkdir(parents=True, exist_ok=True)


def clear_folder(folder: Path) -> None:
    """Remove the files of earlier runs, but not the lock.

    Parameters
    ----------
    folder : Path
        Folder of shards.

    Examples
    --------
    >>> prepare_folder(Path("crowd"))
    >>> clear_folder(Path("crowd"))
    """
    for name in OUTPUTS:
        remove(folder / name)
    for path in (folder / SCRATCH).iterdir():
        if path.name != LOCK:
            remove(path)


def remove(path: Path) -> None:
    """Remove a file or a folder if it exists.

    Parameters
    ----------
    path : Path
        File or folder.

    Examples
    --------
    >>> remove(Path("nothing"))
    """
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def remove_partial_files(folder: Path) -> None:
    """Remove temporary files of a run that was killed.

    Parameters
    ----------
    folder : Path
        Folder of shards.

    Examples
    --------
    >>> remove_partial_files(Path("nowhere"))
    """
    for subfolder in (folder, folder / "shards", folder / SCRATCH, folder / SCRATCH / RAW / "shards"):
        remove_stale_files(subfolder)


@contextlib.contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock a folder against a second run. The lock ends with the process.

    Parameters
    ----------
    folder : Path
        Folder of shards.

    Raises
    ------
    UsageError
        If another run holds the lock.

    Examples
    --------
    >>> prepare_folder(Path("crowd"))
    >>> with lock_folder(Path("crowd")):
    ...     pass
    """
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    with (folder / SCRATCH / LOCK).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):  # the file system does not support locks
                yield
                return
            raise UsageError(f"another run is writing to {folder}; wait for it, or choose another folder") from None
        yield


@contextlib.contextmanager
def explain_resource_errors(folder: Path, needed_bytes: int) -> Iterator[None]:
    """Replace errors about disk space and memory by errors with advice.

    Parameters
    ----------
    folder : Path
        Folder of shards.
    needed_bytes : int
        Estimate of the disk space that sharding needs.

    Raises
    ------
    InputError
        If the disk is full, the memory limit is too low, or the folder cannot be written.

    Examples
    --------
    >>> with explain_resource_errors(Path("."), 10**9):
    ...     raise OSError(errno.ENOSPC, "No space left on device")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.InputError: the disk of . is full: about 1.0 GB are needed, and ... are free. Finished work is kept: ...
    """
    try:
        yield
    except Exception as error:
        is_engine_error = type(error).__module__.endswith("duckdb")
        text = str(error)
        mentions_disk = "No space left" in text or "max_temp_dir" in text
        is_disk_full = isinstance(error, OSError) and error.errno in _DISK_FULL
        if is_disk_full or ((is_engine_error or isinstance(error, OSError)) and mentions_disk):
            free_bytes = shutil.disk_usage(folder).free
            raise InputError(
                f"the disk of {folder} is full: about {_format_size(needed_bytes)} are needed, and {_format_size(free_bytes)} "
                "are free. Finished work is kept: make room, and repeat the same command to go on"
            ) from None
        if is_engine_error and type(error).__name__ == "OutOfMemoryException":
            raise InputError(
                'the memory limit is too low; raise it with memory="8GB" (--memory 8GB), or use fewer threads with n_jobs=1 '
                f"(--jobs 1), and repeat the same command to go on. DuckDB reports: {text.splitlines()[0][:200]}"
            ) from None
        if is_engine_error and type(error).__name__ == "IOException":
            raise InputError(f"{folder} cannot be written: {text[:300]}") from None
        raise


def _format_size(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:.1f} MB"
