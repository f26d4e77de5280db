"""Decisions of reviewers: a journal that survives a kill, and the table of gold that is made from it.

Every decision, skip and undo is a line at the end of the journal, on disk before the reviewer sees the next task. The table has
the current decisions only and is replaced as a whole after every line.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import filelock

from wisecrowd.errors import InputError, UsageError
from wisecrowd.utils.files import write_text

#: First line of a journal.
HEADER = {"format": "wisecrowd review", "version": 1}
#: Column separators by the suffix of the table.
SEPARATORS = {".csv": ",", ".tsv": "\t"}
#: Columns of the table, before those that the tasks bring along.
COLUMNS = ("task", "truth", "reviewer", "time", "saw_votes", "note")


@dataclass(frozen=True)
class Decision:
    """Decision on a task.

    Attributes
    ----------
    task : str
        Task id.
    truth : str or None
        True class; None if the reviewer skipped the task.
    reviewer : str
        Name of the person.
    time : str
        Time in UTC, as ISO 8601.
    saw_votes : bool
        Whether the votes were on the page when the person decided.
    note : str
        Remark of the person.

    Examples
    --------
    >>> Decision("t1", None, "ann").is_skip
    True
    """

    task: str
    truth: str | None
    reviewer: str
    time: str = ""
    saw_votes: bool = False
    note: str = ""

    @property
    def is_skip(self) -> bool:
        """True if the task was left open."""
        return self.truth is None


class WrongQuestion(UsageError):
    """A table of decisions answers another question.

    Examples
    --------
    >>> issubclass(WrongQuestion, UsageError)
    True
    """


class DecisionLog:
    """Decisions of a review, stored in a table and the journal beside it.

    One process at a time may have a log open.

    Parameters
    ----------
    path : pathlib.Path
        Table to write, CSV or TSV. The journal is beside it, with the suffix ``.journal``.
    columns : mapping of str to mapping, default={}
        Further columns of the table, such as the weights of an audit, by name and task.
    initial : sequence of Decision, default=()
        Decisions with which a new log begins. A log that is resumed has its own.
    question : str, default=""
        Question that the decisions answer, if the votes are on several.

    Attributes
    ----------
    decisions : dict of str to Decision
        Last decision on each task, skips included.

    Raises
    ------
    InputError
        If the journal is damaged, or another process has it open.
    UsageError
        If the table has an unknown suffix, was not written by a review, answers another question, or was changed by another
        program.

    Examples
    --------
    >>> with DecisionLog(Path("checked.csv")) as log:
    ...     log.add(Decision("t1", "cat", "ann", time="2026-05-01T10:00:00+00:00"))
    ...     log.add(Decision("t2", "dog", "ann", time="2026-05-01T10:00:09+00:00"))
    ...     log.undo().task
    't2'
    >>> print(Path("checked.csv").read_text())
    task,truth,reviewer,time,saw_votes,note
    t1,cat,ann,2026-05-01T10:00:00+00:00,false,
    <BLANKLINE>
    """

    def __init__(
        self,
        path: Path,
        columns: Mapping[str, Mapping[str, Any]] | None = None,
        initial: Sequence[Decision] = (),
        question: str = "",
    ) -> None:
        if path.suffix not in SEPARATORS:
            raise UsageError(f"{path}: decisions are written as CSV or TSV; name a file that ends in .csv or .tsv")
        self.path, self.journal_path = path, path.with_name(f"{path.name}.journal")
        self.columns, self.question = columns or {}, question
        self.decisions: dict[str, Decision] = {}
        self._undoable: list[tuple[str, Decision | None]] = []  # task and what was known of it before
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = filelock.FileLock(f"{self.journal_path}.lock")
        try:
            self._lock.acquire(timeout=0)
        except filelock.Timeout:
            raise InputError(f"another wisecrowd review writes to {path}; stop it, or choose another file") from None
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror}; choose another file") from None
        self._journal: int | None = None
        try:
            self._open(initial)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> DecisionLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the files."""
        if self._journal is not None:
            os.close(self._journal)
            self._journal = None
        self._lock.release()

    # ------------------------------------------------------------------ changes

    def add(self, decision: Decision) -> None:
        """Store a decision; it is on disk when this returns.

        Parameters
        ----------
        decision : Decision
            Decision, which replaces an earlier one on the same task.
        """
        self._append(asdict(decision))
        self._apply(decision)
        self._write_table()

    def undo(self) -> Decision | None:
        """Take the last decision or skip back.

        Returns
        -------
        Decision or None
            The decision that was taken back; None if there is none.
        """
        if not self._undoable:
            return None
        self._append({"undo": True})
        decision = self._revert()
        self._write_table()
        return decision

    # ------------------------------------------------------------------ results

    @property
    def can_undo(self) -> bool:
        """True if there is a decision to take back."""
        return bool(self._undoable)

    @property
    def gold(self) -> dict[str, str]:
        """True class by task, in order of the decisions."""
        return {task: decision.truth for task, decision in self.decisions.items() if decision.truth is not None}

    def format_table(self) -> str:
        """Return the table of the decisions as text.

        Returns
        -------
        str
            Table with a header, one row per settled task.
        """
        file = io.StringIO()
        writer = csv.writer(file, delimiter=SEPARATORS[self.path.suffix], lineterminator="\n")
        writer.writerow([*COLUMNS, *self.columns])
        for decision in self.decisions.values():
            if not decision.is_skip:
                row = asdict(decision) | {"saw_votes": str(decision.saw_votes).lower()}
                more = (column.get(decision.task, "") for column in self.columns.values())
                writer.writerow([*(row[name] for name in COLUMNS), *more])
        return file.getvalue()

    # ------------------------------------------------------------------ files

    def _open(self, initial: Sequence[Decision]) -> None:
        is_new = not self.journal_path.exists()
        if is_new and self.path.exists():
            raise UsageError(
                f"{self.path} exists and was not written by wisecrowd review (no {self.journal_path.name} beside it); choose "
                "another file with -o"
            )
        if is_new:
            lines = [{**HEADER, "question": self.question}, *map(asdict, initial)]
            write_text(self.journal_path, "".join(f"{json.dumps(line)}\n" for line in lines))
        try:
            self._journal = os.open(self.journal_path, os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0))
        except OSError as error:
            raise InputError(f"{self.journal_path} cannot be opened: {error.strerror}; choose another file") from None
        self._replay()
        if is_new:
            self._undoable.clear()  # these are not decisions of this review
        self._write_table()

    def _replay(self) -> None:
        """Read the journal. A last line that is not complete was never acknowledged and is removed."""
        content = self.journal_path.read_bytes()
        complete = content[: content.rfind(b"\n") + 1]
        assert self._journal is not None
        os.ftruncate(self._journal, len(complete))
        lines, tables = complete.splitlines(), []
        for number, line in enumerate(lines):
            try:
                entry = json.loads(line)
                if number == 0:
                    self._check_header(entry)
                elif entry.get("undo"):
                    self._revert()
                else:
                    self._apply(_parse_decision(entry))
            except WrongQuestion:
                raise
            except (ValueError, TypeError, AttributeError, LookupError):
                raise InputError(
                    f"line {number + 1} of {self.journal_path} is not as wisecrowd review wrote it; restore the file, or choose "
                    "another one with -o"
                ) from None
            if number >= len(lines) - 2:  # a kill may have come before the table of the last line was written
                tables.append(self.format_table())
        written = self.path.read_text(encoding="utf-8", errors="replace") if self.path.exists() else ""
        if self.path.exists() and written not in tables:
            if written.partition("\n")[0] != self.format_table().partition("\n")[0] or "draw" in self.columns:
                raise UsageError(
                    f"{self.path} has decisions of a review with other tasks, or was changed by another program; give the --tasks "
                    "of that review, or choose another file with -o"
                )
            raise UsageError(
                f"{self.path} was changed by another program since the review wrote it; move it away to restore it from "
                f"{self.journal_path.name}, or choose another file with -o"
            )

    def _check_header(self, entry: dict[str, Any]) -> None:
        question = entry.pop("question")
        if entry != HEADER:
            raise ValueError("not the header of a review")
        if question != self.question:
            raise WrongQuestion(
                f"{self.path} has decisions on {_name_question(question)}, and this review is of "
                f"{_name_question(self.question)}; choose another file with -o"
            )

    def _append(self, entry: Mapping[str, Any]) -> None:
        assert self._journal is not None
        os.write(self._journal, f"{json.dumps(entry)}\n".encode())
        os.fsync(self._journal)

    def _apply(self, decision: Decision) -> None:
        before = self.decisions.pop(decision.task, None)
        self.decisions[decision.task] = decision
        self._undoable.append((decision.task, before))

    def _revert(self) -> Decision:
        task, before = self._undoable.pop()
        decision = self.decisions.pop(task)
        if before is not None:
            self.decisions[task] = before
        return decision

    def _write_table(self) -> None:
        write_text(self.path, self.format_table())


def current_time() -> str:
    """Return the time in UTC to the second, as ISO 8601.

    Returns
    -------
    str
        Time.

    Examples
    --------
    >>> current_time()[-6:]
    '+00:00'
    """
    return datetime.now(UTC).isoformat(timespec="seconds")


def _name_question(question: object) -> str:
    return f"the question {str(question)[:100]!r}" if question else "votes on one question"


def _parse_decision(entry: Any) -> Decision:
    texts = [entry[name] for name in ("task", "reviewer", "time", "note")]
    truth, saw_votes = entry["truth"], entry["saw_votes"]
    if not all(isinstance(text, str) for text in texts) or not isinstance(truth, str | None):
        raise ValueError("a field is no text")
    return Decision(texts[0], truth, texts[1], texts[2], bool(saw_votes), texts[3])
