"""Results of checking votes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import pandas as pd

from wisecrowd.utils.text import count_noun

Severity: TypeAlias = Literal["error", "warning", "note"]
_WORST_FIRST: tuple[Severity, ...] = ("error", "warning", "note")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One problem or observation.

    Parameters
    ----------
    name : str
        Name of the problem, such as ``"duplicate-votes"``.
    severity : {"error", "warning", "note"}
        Severity.
    count : int
        Number of occurrences.
    message : str
        Description.
    examples : tuple, default=()
        First occurrences.
    fix : str, default=""
        Advice.
    options : dict of str to object, optional
        Arguments of :func:`wisecrowd.read` that resolve the problem.

    Examples
    --------
    >>> print(Finding(name="single-class", severity="warning", count=1, message="every vote is 'cat'"))
    warning  single-class: every vote is 'cat'
    """

    name: str
    severity: Severity
    count: int
    message: str
    examples: tuple[Any, ...] = ()
    fix: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        text = f"{self.severity:7}  {self.name}: {self.message}"
        return f"{text}\n{'':9}{self.fix}" if self.fix else text


@dataclass(frozen=True, kw_only=True)
class ValidationReport:
    """All findings about some votes, the most severe first.

    Parameters
    ----------
    source : str
        Path of the votes, or ``"votes"``.
    summary : str
        Description of the valid votes. Empty if there are none.
    findings : tuple of Finding
        Findings.

    Examples
    --------
    >>> from wisecrowd import check_votes
    >>> report = check_votes({"task": [1, 2], "worker": ["ann", "ann"], "label": ["cat", "dog"]})
    >>> report.ok, [finding.name for finding in report.warnings]
    (True, ['single-worker', 'one-vote-tasks'])
    """

    source: str
    summary: str
    findings: tuple[Finding, ...]

    def __post_init__(self) -> None:
        ordered = sorted(self.findings, key=lambda finding: _WORST_FIRST.index(finding.severity))
        object.__setattr__(self, "findings", tuple(ordered))

    @property
    def ok(self) -> bool:
        """True if there are no errors, so that the votes can be used as they are."""
        return not self.errors

    @property
    def errors(self) -> list[Finding]:
        """Problems that prevent a result or would silently change it."""
        return self._select("error")

    @property
    def warnings(self) -> list[Finding]:
        """Problems that make the result less certain."""
        return self._select("warning")

    @property
    def notes(self) -> list[Finding]:
        """Other observations."""
        return self._select("note")

    def _select(self, severity: Severity) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity == severity]

    def to_frame(self) -> pd.DataFrame:
        """Return the findings as a table.

        Returns
        -------
        DataFrame
            One row per finding.

        Examples
        --------
        >>> from wisecrowd import check_votes
        >>> check_votes({"task": [1], "worker": ["ann"], "label": ["cat"]}).to_frame()["name"].tolist()
        ['single-worker', 'one-vote-workers', 'one-vote-tasks', 'single-class']
        """
        columns = ["severity", "name", "count", "message", "examples", "fix"]
        rows = [[getattr(finding, column) for column in columns] for finding in self.findings]
        return pd.DataFrame(rows, columns=columns)

    def __str__(self) -> str:
        counts = {severity: len(self._select(severity)) for severity in _WORST_FIRST}
        overview = ", ".join(count_noun(n, severity) for severity, n in counts.items() if n) or "no problems found"
        title = f"{self.source}: {self.summary}" if self.summary else self.source
        return "\n".join([title, overview, *map(str, self.findings)])
