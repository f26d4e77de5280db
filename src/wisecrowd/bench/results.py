"""What has been run so far: a journal that loses nothing, and the Parquet file that it becomes."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from wisecrowd.bench.cells import DECLINED, OK, TOO_SLOW, Cell, Row
from wisecrowd.errors import InputError, UsageError
from wisecrowd.utils.files import atomic_path

#: Columns of figures begin with this, so that a figure may have any name.
FIGURE = "figure."


class Results:
    """The rows of one benchmark in a folder, by (entry, data, seed).

    While a benchmark runs, every row is appended to ``<name>.jsonl`` and on the disk before the next is waited for; when
    it ends, in whichever way, the rows go to ``<name>.parquet`` and the journal goes away. After a crash or a kill the
    next run finds the journal.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.table = folder / f"{name}.parquet"
        self.journal = folder / f"{name}.jsonl"
        self.markdown = folder / f"{name}.md"
        self.rows = self._read()

    def _read(self) -> dict[tuple[str, str, int], Row]:
        return {_key(row): row for row in [*_read_table(self.table), *_read_journal(self.journal)]}

    def settled(self, cell: Cell, time_limit: float | None) -> bool:
        """Whether nothing new can be expected of running a cell: it was run, and nothing has changed since."""
        row = self.rows.get(cell.key)
        if row is None or row["digest"] != cell.digest:
            return False
        if row["status"] == TOO_SLOW:
            return time_limit is not None and time_limit <= row["seconds"]
        return row["status"] in (OK, DECLINED)

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Rows may be added inside the block; when it ends, they are in the table."""
        self.journal.parent.mkdir(parents=True, exist_ok=True)
        with self.journal.open("ab") as file:
            _lock(file.fileno(), self.journal)
            self._file = file
            self.rows = self._read()  # another run may have ended since
            if file.tell() and not self.journal.read_bytes().endswith(b"\n"):
                file.write(b"\n")  # whoever wrote the last line was killed over it
            try:
                yield
            finally:
                self._compact()

    def add(self, row: Row) -> None:
        """Keep a row, come what may."""
        self.rows[_key(row)] = row
        self._file.write(json.dumps(row, allow_nan=False).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def drop(self, unwanted: Iterable[tuple[str, str, int]]) -> None:
        """Forget rows."""
        for key in unwanted:
            self.rows.pop(key, None)

    def _compact(self) -> None:
        if self.rows:
            with atomic_path(self.table) as partial:
                _frame(self.rows.values()).to_parquet(partial, index=False)
        self.journal.unlink(missing_ok=True)


def _frame(rows: Iterable[Row]) -> pd.DataFrame:
    flat = [
        {key: value for key, value in row.items() if key != "figures"}
        | {f"{FIGURE}{name}": value for name, value in row.get("figures", {}).items()}
        for row in rows
    ]
    frame = pd.DataFrame(flat).convert_dtypes()
    figures = sorted(name for name in frame.columns if name.startswith(FIGURE))
    others = [name for name in frame.columns if not name.startswith(FIGURE)]
    frame = frame.astype(dict.fromkeys([*figures, "seconds"], "float64"))
    return frame[[*others[:4], *figures, *others[4:]]].sort_values(["data", "entry", "seed"], ignore_index=True)


def _read_table(path: Path) -> list[Row]:
    if not path.is_file():
        return []
    try:
        frame = pd.read_parquet(path)
        records = frame.astype(object).where(frame.notna(), None).to_dict("records")
        return [_row({str(key): value for key, value in record.items()}) for record in records]
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{path} holds no benchmark results ({error}); move it away, and run again") from None


def _row(record: dict[str, Any]) -> Row:
    figures = {
        key.removeprefix(FIGURE): value
        for key, value in record.items()
        if key.startswith(FIGURE) and value is not None
    }  # fmt: skip
    row = {key: value for key, value in record.items() if not key.startswith(FIGURE) and value is not None}
    return row | {"figures": figures} if row["status"] == OK else row


def _read_journal(path: Path) -> list[Row]:
    if not path.is_file():
        return []
    rows = []
    for line in path.read_bytes().splitlines():
        # A line that a crash cut short is a cell that was not finished.
        with contextlib.suppress(ValueError):
            rows.append(json.loads(line))
    return rows


def _key(row: Row) -> tuple[str, str, int]:
    return row["entry"], row["data"], int(row["seed"])


def _lock(handle: int, path: Path) -> None:
    """Refuse to write where another process writes; the lock goes with the process, even if that is killed."""
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_gone = os.fstat(handle).st_nlink == 0  # the other run has just ended, and removed it
    except OSError:
        is_gone = True
    if is_gone:
        raise UsageError(f"another run is writing {path}; wait for it, or choose another folder with -o")
