"""Atomic writing of files and folders: an interrupted run leaves no partial file behind.

Temporary files and folders lie next to their target and are locked while their process lives. The system releases the
lock when a process is killed. The next process that writes to the folder then removes what is left.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import re
import shutil
import stat
import tempfile
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from wisecrowd.errors import DiskFull, InputError, is_disk_full

#: Beginning of the names of temporary files and folders. Nothing else may be called so: it would be removed.
TEMPORARY_PREFIX = ".wisecrowd-"
#: Flag of Linux's renameat2 that exchanges two names in one step, and the descriptor that stands for the working folder.
_RENAME_EXCHANGE, _AT_FDCWD = 2, -100
#: Errors that mean that the system or the file system cannot exchange names.
_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM)
#: Folders that this process has searched for files of killed processes.
_searched_folders: set[str] = set()
#: Lock of the permissions that new files do not get, which all threads share.
_umask_lock = threading.Lock()


@contextlib.contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path that replaces ``path`` when the block ends without an error.

    Parameters
    ----------
    path : path-like
        File to write. Missing parent folders are created.

    Yields
    ------
    Path
        Temporary file in the same folder.

    Raises
    ------
    DiskFull
        If there is no room for the file.

    Examples
    --------
    >>> folder = Path(tempfile.mkdtemp())
    >>> with atomic_path(folder / "a.txt") as partial:
    ...     _ = partial.write_text("complete")
    >>> [file.name for file in folder.iterdir()]
    ['a.txt']
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    _search_once(target.parent)
    # The temporary file has the same suffix because writers such as numpy and pandas choose the format by it.
    partial, lock = _create_locked(target.parent, target.stem[:40], "".join(target.suffixes))
    try:
        with _name_full_disk(target):
            yield partial
            partial.chmod(0o666 & ~_get_umask())  # a temporary file is private; the result gets default permissions
            _sync(partial)
            partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
        _release(lock)


@contextlib.contextmanager
def atomic_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary folder that takes the place of ``path`` when the block ends without an error.

    A folder that exists is replaced in one step and removed afterwards: another process sees the old one or the new one.

    Parameters
    ----------
    path : path-like
        Folder to write. Missing parent folders are created.

    Yields
    ------
    Path
        Empty folder on the same disk.

    Raises
    ------
    DiskFull
        If there is no room for the files.

    Examples
    --------
    >>> folder = Path(tempfile.mkdtemp()) / "model"
    >>> for text in ("old", "new"):
    ...     with atomic_folder(folder) as partial:
    ...         _ = (partial / "a.txt").write_text(text)
    >>> (folder / "a.txt").read_text()
    'new'
    """
    target = Path(path)
    with _name_full_disk(target), TemporaryFolder(target.parent, target.name) as scratch:
        partial = scratch / "new"  # a temporary folder is private; this one gets default permissions
        partial.mkdir()
        yield partial
        _sync_tree(partial)
        replace_folder(partial, target)


@contextlib.contextmanager
def _name_full_disk(target: Path) -> Iterator[None]:
    """Name the target in the error for a full disk."""
    try:
        yield
    except OSError as error:
        if is_disk_full(error) and not isinstance(error, DiskFull):  # a nested DiskFull names its own file
            raise DiskFull(target) from error
        raise


class TemporaryFolder:
    """Folder that is removed with its object or, if the process is killed, by the next process that writes beside it.

    Parameters
    ----------
    parent : path-like
        Folder that contains it. It is created if necessary.
    name : str, default="folder"
        Part of its name, for people.

    Attributes
    ----------
    path : Path
        The folder.

    Examples
    --------
    >>> parent = Path(tempfile.mkdtemp())
    >>> with TemporaryFolder(parent) as folder:
    ...     _ = (folder / "a.txt").write_text("scratch")
    >>> list(parent.iterdir())
    []
    """

    def __init__(self, parent: str | os.PathLike[str], name: str = "folder") -> None:
        Path(parent).mkdir(parents=True, exist_ok=True)
        _search_once(Path(parent))
        self.path, lock = _create_locked(Path(parent), name[:40], None)
        self._finalizer = weakref.finalize(self, _remove_locked, self.path, lock)

    def close(self) -> None:
        """Remove the folder."""
        self._finalizer()

    def __enter__(self) -> Path:
        return self.path

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def remove_stale_files(folder: str | os.PathLike[str]) -> None:
    """Remove temporary files and folders of processes that were killed.

    Only names that begin with `TEMPORARY_PREFIX`, belong to this user and are locked by nobody are removed. Where the
    system cannot lock files, nothing is removed.

    Parameters
    ----------
    folder : path-like
        Folder to search, not its subfolders.

    Examples
    --------
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / f"{TEMPORARY_PREFIX}labels-x.csv").write_text("half")
    >>> remove_stale_files(folder)
    >>> list(folder.iterdir())
    []
    """
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(TEMPORARY_PREFIX):
                with contextlib.suppress(OSError):  # locked, removed in the meantime, or not ours
                    _remove_if_stale(Path(entry.path))


def replace_folder(source: Path, target: Path) -> None:
    """Put a folder in the place of another one in one step; another process sees either of them, never none.

    Parameters
    ----------
    source : Path
        New folder, on the same disk. Afterwards it does not exist, or is the folder that was replaced.
    target : Path
        Name of the folder. It need not exist.

    Examples
    --------
    >>> parent = Path(tempfile.mkdtemp())
    >>> for name in ("old", "new"):
    ...     (parent / name).mkdir()
    ...     _ = (parent / name / "a.txt").write_text(name)
    >>> replace_folder(parent / "new", parent / "old")
    >>> (parent / "old" / "a.txt").read_text()
    'new'
    """
    while True:
        with contextlib.suppress(FileExistsError), _ignore(errno.ENOTEMPTY):
            source.rename(target)  # the target does not exist, or is empty
            break
        with contextlib.suppress(FileNotFoundError):  # somebody removed the target in between
            try:
                _exchange(source, target)
            except OSError as error:
                if error.errno not in _UNSUPPORTED:
                    raise
                _replace_in_two_steps(source, target)
            break
    _sync(target.parent)
    _remove_replaced(target)


def get_replaced_path(target: Path) -> Path:
    """Return the name that a folder has while `replace_folder` replaces it in two steps.

    Parameters
    ----------
    target : Path
        Folder.

    Returns
    -------
    Path
        Folder that exists only where names cannot be exchanged, and only if the target does not exist.

    Examples
    --------
    >>> get_replaced_path(Path("results/model")).name
    '.model.replaced'
    """
    return target.with_name(f".{target.name}.replaced")


def _exchange(source: Path, target: Path) -> None:
    """Exchange two names in one step."""
    library = ctypes.CDLL(None, use_errno=True) if os.name == "posix" else None
    rename = getattr(library, "renameat2", None)
    if rename is None:  # not Linux
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if rename(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), _RENAME_EXCHANGE):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(target))


def _replace_in_two_steps(source: Path, target: Path) -> None:
    """Put a folder in the place of another one; in between, the old one has the name of `get_replaced_path`."""
    replaced = get_replaced_path(target)
    lock = _lock(target.parent)  # two processes that replace the folder take turns
    try:
        while source.exists():
            if target.exists():
                shutil.rmtree(replaced, ignore_errors=True)
                target.rename(replaced)
            with contextlib.suppress(FileExistsError), _ignore(errno.ENOTEMPTY):  # made by another process in between
                source.rename(target)
    finally:
        _release(lock)


def _remove_replaced(target: Path) -> None:
    """Remove the folder that was replaced in two steps, unless another process is between these steps."""
    replaced = get_replaced_path(target)
    if replaced.exists():
        lock = _lock(target.parent)
        try:
            if target.exists():
                shutil.rmtree(replaced, ignore_errors=True)
        finally:
            _release(lock)


@contextlib.contextmanager
def _ignore(number: int) -> Iterator[None]:
    """Ignore an error of the operating system."""
    try:
        yield
    except OSError as error:
        if error.errno != number:
            raise


# ---------------------------------------------------------------------- temporary files


def _create_locked(parent: Path, name: str, suffix: str | None) -> tuple[Path, int | None]:
    """Create a temporary file, or a folder if the suffix is None, and lock it."""
    while True:
        if suffix is None:
            path = Path(tempfile.mkdtemp(prefix=f"{TEMPORARY_PREFIX}{name}-", dir=parent))
        else:
            handle, path_name = tempfile.mkstemp(prefix=f"{TEMPORARY_PREFIX}{name}-", suffix=suffix, dir=parent)
            os.close(handle)
            path = Path(path_name)
        try:
            lock = _lock(path, wait=False)
        except (FileNotFoundError, BlockingIOError):
            continue  # another process found the file before it was locked, and removes it
        if lock is None or _is_same_file(lock, path):
            return path, lock
        _release(lock)


def _lock(path: Path, *, wait: bool = True) -> int | None:
    """Lock a file or a folder and return its descriptor; None where that is not supported."""
    try:
        import fcntl
    except ImportError:  # Windows
        return None
    flags = os.O_RDONLY if path.is_dir() else os.O_RDWR  # NFS locks files only if they are open for writing
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        os.close(descriptor)
        raise
    except OSError:  # the file system does not support locks
        os.close(descriptor)
        return None
    return descriptor


def _release(lock: int | None) -> None:
    """Release a lock."""
    if lock is not None:
        os.close(lock)


def _is_same_file(descriptor: int, path: Path) -> bool:
    """Return whether a path still names an open file."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def _remove_locked(path: Path, lock: int | None) -> None:
    """Remove a temporary folder and release its lock."""
    shutil.rmtree(path, ignore_errors=True)
    _release(lock)


def _search_once(folder: Path) -> None:
    """Remove temporary files of killed processes when this process writes to a folder for the first time."""
    name = os.path.abspath(folder)
    if name not in _searched_folders:
        _searched_folders.add(name)
        remove_stale_files(folder)


def _remove_if_stale(path: Path) -> None:
    """Remove a temporary file or folder of this user unless a process holds its lock."""
    status = path.lstat()
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)) or status.st_uid != os.getuid():
        return
    lock = _lock(path, wait=False)
    if lock is None:
        return
    try:
        if _is_same_file(lock, path):  # otherwise it was renamed to its target in the meantime
            if stat.S_ISDIR(status.st_mode):
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
    finally:
        _release(lock)


def _get_umask() -> int:
    """Return the permissions that new files do not get; the system tells them only in exchange for others."""
    with _umask_lock:
        umask = os.umask(0o077)
        os.umask(umask)
    return umask


def _sync(path: Path) -> None:
    """Wait until a file or a folder is on disk."""
    if path.is_dir() and os.name != "posix":  # Windows cannot open folders
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if not path.is_dir() or error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems sync files only
            raise
    finally:
        os.close(descriptor)


def _sync_tree(folder: Path) -> None:
    """Wait until the files of a folder and of its subfolders are on disk."""
    for root, _, names in os.walk(folder):
        for name in names:
            _sync(Path(root) / name)
        _sync(Path(root))


# ---------------------------------------------------------------------- text and JSON


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file atomically, in UTF-8.

    Parameters
    ----------
    path : path-like
        File to write.
    text : str
        Contents.

    Examples
    --------
    >>> path = Path(tempfile.mkdtemp()) / "note.txt"
    >>> write_text(path, "grüße")
    >>> path.read_text(encoding="utf-8")
    'grüße'
    """
    with atomic_path(path) as partial:
        partial.write_text(text, encoding="utf-8")


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write indented JSON atomically, in UTF-8.

    Parameters
    ----------
    path : path-like
        File to write.
    value : object
        Anything that JSON can represent; NaN is an error.

    Examples
    --------
    >>> path = Path(tempfile.mkdtemp()) / "run.json"
    >>> write_json(path, {"seed": 0})
    >>> read_json(path)
    {'seed': 0}
    """
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    # A lone surrogate, as in a file name of another encoding, is no UTF-8, but JSON can escape it.
    text = re.sub("[\ud800-\udfff]", lambda surrogate: json.dumps(surrogate.group())[1:-1], text)
    write_text(path, text + "\n")


def read_json(path: str | os.PathLike[str]) -> Any:
    """Read a JSON file in UTF-8.

    Parameters
    ----------
    path : path-like
        File to read.

    Returns
    -------
    object
        Contents.

    Raises
    ------
    InputError
        If the path names a folder, a pipe or a device.

    Examples
    --------
    >>> path = Path(tempfile.mkdtemp()) / "x.json"
    >>> write_json(path, [1, 2])
    >>> read_json(path)
    [1, 2]
    """
    file = Path(path)
    if not stat.S_ISREG(file.stat().st_mode):  # a device may have no end
        raise InputError(f"{file} is not a file, but a folder, a pipe or a device; replace it by a JSON file")
    return json.loads(file.read_text(encoding="utf-8"))
