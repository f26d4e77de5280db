"""What an examination finds, and how it reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import pandas as pd

from wisecrowd.utils.text import count_noun

Severity: TypeAlias = Literal["error", "warning", "note"]
_WORST_FIRST: tuple[Severity, ...] = ("error", "warning", "note")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that was found: its name, how bad it is, how often, where for example, and what to do.

    >>> print(Finding(name="single-class", severity="warning", count=1, message="every vote is 'cat'"))
    warning  single-class: every vote is 'cat'
    """

    name: str
    severity: Severity
    count: int
    message: str
    examples: tuple[Any, ...] = ()
    fix: str = ""

    def __str__(self) -> str:
        told = f"{self.severity:7}  {self.name}: {self.message}"
        return f"{told}\n{'':9}{self.fix}" if self.fix else told


@dataclass(frozen=True, kw_only=True)
class Examination:
    """All findings about some votes, the worst first.

    >>> from wisecrowd import examine
    >>> examination = examine({"task": [1, 2], "worker": ["ann", "ann"], "label": ["cat", "dog"]})
    >>> examination.ok, [finding.name for finding in examination.warnings]
    (True, ['single-worker', 'one-vote-tasks'])
    """

    source: str
    #: What the usable votes look like; empty when there are none.
    summary: str
    findings: tuple[Finding, ...]

    def __post_init__(self) -> None:
        ordered = sorted(self.findings, key=lambda finding: _WORST_FIRST.index(finding.severity))
        object.__setattr__(self, "findings", tuple(ordered))

    @property
    def ok(self) -> bool:
        """Whether the votes can be used as they are."""
        return not self.errors

    @property
    def errors(self) -> list[Finding]:
        """What would change the answer without a word, or prevents one."""
        return self._of("error")

    @property
    def warnings(self) -> list[Finding]:
        """What makes the answer less sure."""
        return self._of("warning")

    @property
    def notes(self) -> list[Finding]:
        """What is good to know."""
        return self._of("note")

    def _of(self, severity: Severity) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity == severity]

    def to_frame(self) -> pd.DataFrame:
        """The findings as a table.

        >>> from wisecrowd import examine
        >>> examine({"task": [1], "worker": ["ann"], "label": ["cat"]}).to_frame()["name"].tolist()
        ['single-worker', 'one-vote-workers', 'one-vote-tasks', 'single-class']
        """
        columns = ["severity", "name", "count", "message", "examples", "fix"]
        rows = [[getattr(finding, column) for column in columns] for finding in self.findings]
        return pd.DataFrame(rows, columns=columns)

    def __str__(self) -> str:
        counts = {word: len(self._of(word)) for word in _WORST_FIRST}
        told = ", ".join(count_noun(n, word) for word, n in counts.items() if n) or "nothing to report"
        about = f"{self.source}: {self.summary}" if self.summary else self.source
        return "\n".join([about, told, *map(str, self.findings)])
