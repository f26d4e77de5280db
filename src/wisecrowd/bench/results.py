"""Storage of results: a journal while a benchmark runs, and a Parquet file afterwards."""

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

#: Prefix of the columns with figures, so that a figure may have any name.
FIGURE_PREFIX = "figure."


class Results:
    """Stored rows of one benchmark by (entry, data, seed).

    While a benchmark runs, every row is appended to the journal ``<name>.jsonl`` and flushed to disk. At the end, also
    after an exception, the rows are written to ``<name>.parquet`` and the journal is removed. After a crash the next run
    reads the journal.

    Parameters
    ----------
    folder : Path
        Folder of the results.
    name : str
        Name of the benchmark.

    Attributes
    ----------
    table, journal, markdown : Path
        Files of the benchmark.
    rows : dict of (str, str, int) to dict
        Rows by (entry, data, seed).
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.table = folder / f"{name}.parquet"
        self.journal = folder / f"{name}.jsonl"
        self.markdown = folder / f"{name}.md"
        self.rows = self._read()

    def _read(self) -> dict[tuple[str, str, int], Row]:
        """Read the rows of the table and of the journal."""
        return {_key(row): row for row in [*_read_table(self.table), *_read_journal(self.journal)]}

    def is_settled(self, cell: Cell, time_limit: float | None) -> bool:
        """Return whether a cell has a final result that is still valid.

        Parameters
        ----------
        cell : Cell
            Cell of the benchmark.
        time_limit : float or None
            Time limit of the new run. A cell that was too slow runs again if the limit is longer than before.

        Returns
        -------
        bool
        """
        row = self.rows.get(cell.key)
        if row is None or row["digest"] != cell.digest:
            return False
        if row["status"] == TOO_SLOW:
            return time_limit is not None and time_limit <= row["seconds"]
        return row["status"] in (OK, DECLINED)

    def has_row(self, cell: Cell) -> bool:
        """Return whether a cell has a stored row, which may be outdated.

        Parameters
        ----------
        cell : Cell
            Cell of the benchmark.

        Returns
        -------
        bool
        """
        return cell.key in self.rows

    @contextlib.contextmanager
    def open_journal(self) -> Iterator[None]:
        """Open the journal, so that rows can be added, and write the table at the end of the block."""
        self.journal.parent.mkdir(parents=True, exist_ok=True)
        with self.journal.open("ab") as file:
            _lock(file.fileno(), self.journal)
            self._file = file
            self.rows = self._read()  # another run may have added rows in the meantime
            if file.tell() and not self.journal.read_bytes().endswith(b"\n"):
                file.write(b"\n")  # the process was killed while it wrote the last line
            try:
                yield
            finally:
                self._compact()

    def add(self, row: Row) -> None:
        """Add a row and flush it to disk.

        Parameters
        ----------
        row : dict
            Row of a cell.
        """
        self.rows[_key(row)] = row
        self._file.write(json.dumps(row, allow_nan=False).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def drop(self, keys: Iterable[tuple[str, str, int]]) -> None:
        """Remove rows.

        Parameters
        ----------
        keys : iterable of (str, str, int)
            Entry, data and seed of the rows.
        """
        for key in keys:
            self.rows.pop(key, None)

    def _compact(self) -> None:
        """Write all rows to the table and remove the journal."""
        if self.rows:
            with atomic_path(self.table) as partial:
                _build_frame(self.rows.values()).to_parquet(partial, index=False)
        self.journal.unlink(missing_ok=True)


def _build_frame(rows: Iterable[Row]) -> pd.DataFrame:
    """Return rows as a table with one column per figure."""
    flat = [
        {key: value for key, value in row.items() if key != "figures"}
        | {f"{FIGURE_PREFIX}{name}": value for name, value in row.get("figures", {}).items()}
        for row in rows
    ]
    frame = pd.DataFrame(flat).convert_dtypes()
    figures = sorted(name for name in frame.columns if name.startswith(FIGURE_PREFIX))
    others = [name for name in frame.columns if not name.startswith(FIGURE_PREFIX)]
    frame = frame.astype(dict.fromkeys([*figures, "seconds"], "float64"))
    return frame[[*others[:4], *figures, *others[4:]]].sort_values(["data", "entry", "seed"], ignore_index=True)


def _read_table(path: Path) -> list[Row]:
    """Read the rows of a Parquet file, if there is one."""
    if not path.is_file():
        return []
    try:
        frame = pd.read_parquet(path)
        records = frame.astype(object).where(frame.notna(), None).to_dict("records")
        return [_parse_record({str(key): value for key, value in record.items()}) for record in records]
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{path} holds no benchmark results ({error}); move it away, and run again") from None


def _parse_record(record: dict[str, Any]) -> Row:
    """Return a record of the table as a row with a mapping of figures."""
    figures = {
        key.removeprefix(FIGURE_PREFIX): value
        for key, value in record.items()
        if key.startswith(FIGURE_PREFIX) and value is not None
    }  # fmt: skip
    row = {key: value for key, value in record.items() if not key.startswith(FIGURE_PREFIX) and value is not None}
    return row | {"figures": figures} if row["status"] == OK else row


def _read_journal(path: Path) -> list[Row]:
    """Read the rows of a journal, if there is one."""
    if not path.is_file():
        return []
    rows = []
    for line in path.read_bytes().splitlines():
        # The last line is incomplete if the process was killed; that cell runs again.
        with contextlib.suppress(ValueError):
            rows.append(json.loads(line))
    return rows


def _key(row: Row) -> tuple[str, str, int]:
    """Return the entry, the data and the seed of a row."""
    return row["entry"], row["data"], int(row["seed"])


def _lock(handle: int, path: Path) -> None:
    """Lock the journal, or raise `UsageError` if another process holds the lock; the lock ends with the process."""
    try:
        import fcntl
    except ImportError:  # Windows has no fcntl
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_removed = os.fstat(handle).st_nlink == 0  # the other run has just ended and removed the journal
    except OSError:
        is_removed = True
    if is_removed:
        raise UsageError(f"another run is writing {path}; wait for it, or choose another folder with -o")
