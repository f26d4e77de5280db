"""What the export of a labelling tool tells, answer by answer, before anything is made of it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from wisecrowd.errors import InputError, some

#: Numbers from here on are milliseconds: as seconds since 1970 they would be thousands of years.
_MILLISECONDS = 1e11
#: Predictions that begin so were written by wisecrowd, and are no votes of anybody.
OWN = "wisecrowd"
#: Keys under which wisecrowd tells a tool something about a task, to find it again when the task comes back.
OWN_TASK, OWN_PRIORITY, OWN_LABEL, OWN_CONFIDENCE = (
    f"wisecrowd_{what}" for what in ("task", "priority", "label", "confidence")
)


@dataclass(eq=False)
class Asked:
    """All answers to one question; lists of one length, a place for each answer."""

    name: str
    task: list[str] = field(default_factory=list)
    worker: list[str] = field(default_factory=list)
    said: list[tuple[str, ...]] = field(default_factory=list)
    time: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    score: list[float] = field(default_factory=list)
    machine: list[bool] = field(default_factory=list)
    #: Whether the tool says that several options may be chosen, or that a number was asked for.
    multiple: bool = False
    number: bool = False
    #: Options that the tool lists, also those that nobody chose.
    options: dict[str, None] = field(default_factory=dict)
    truth: dict[str, tuple[str, ...]] = field(default_factory=dict)
    #: What wisecrowd itself said of a task before, and how sure it was.
    consensus: dict[str, tuple[tuple[str, ...], float]] = field(default_factory=dict)
    #: How the tool calls the question, for whoever writes answers back into it.
    control: dict[str, str] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)

    def answer(
        self,
        task: str,
        worker: str,
        said: Iterable[Any],
        *,
        time: object = None,
        seconds: object = None,
        machine: bool = False,
        score: object = None,
    ) -> None:
        """Somebody, or some model, said something of a task."""
        self.task.append(task)
        self.worker.append(worker)
        self.said.append(options_of(said))
        self.time.append(moment(time))
        self.seconds.append(duration(seconds))
        self.machine.append(machine)
        self.score.append(number(score))

    def gold(self, task: str, said: Iterable[Any]) -> None:
        """The tool marks an answer as the right one; where it marks several that differ, none is taken."""
        options = options_of(said)
        if self.truth.setdefault(task, options) != options:
            self.left_out["contradictory gold"] += 1
            self.truth[task] = ()

    def suggested(self, task: str, model: str, said: Iterable[Any], score: object = None) -> None:
        """A model said something; what wisecrowd said itself is kept apart, for it would count its own echo."""
        if model.startswith(OWN):
            self.consensus[task] = (options_of(said), number(score))
        else:
            self.answer(task, model, said, machine=True, score=score)


@dataclass(eq=False)
class Gathering:
    """All questions of an export, and what is known of its tasks."""

    asked: dict[str, Asked] = field(default_factory=dict)
    #: What the tool holds of each task, as it wrote it.
    tasks: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    #: What concerns no one question: whole tasks that were skipped, boxes, spans.
    left_out: Counter[str] = field(default_factory=Counter)
    #: Worker -> vendor, channel or model, where the tool tells.
    groups: dict[str, str] = field(default_factory=dict)
    #: What whoever reads the export should know of it.
    notes: list[str] = field(default_factory=list)

    def question(self, name: str) -> Asked:
        """The question of that name, which is made when it is heard of first."""
        if name not in self.asked:
            self.asked[name] = Asked(name)
        return self.asked[name]


def identity(value: object, what: str, where: str = "") -> str:
    """An id as text: tools write 7 here and "7" there, and mean the same.

    >>> identity(7, "task"), identity("007", "task")
    ('7', '007')
    """
    if isinstance(value, str) and value:
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    at = f" ({where})" if where else ""
    raise InputError(f"the {what} needs an id, a text or a whole number; got {some([value])}{at}")


def family(model: str) -> str:
    """The model behind a name that says more, such as the prompt: what stands before the first of ``: / @ # |``.

    Whoever takes models for one family that are not does little harm (see `wisecrowd.Panel`).

    >>> family("gpt-4o:prompt-2"), family("llama/3-8b"), family("bert-1")
    ('gpt-4o', 'llama', 'bert-1')
    """
    return re.split("[:/@#|]", model, maxsplit=1)[0].strip() or model


def options_of(said: Iterable[Any]) -> tuple[str, ...]:
    """What was chosen, each once and in one order, so that equal answers are equal."""
    return tuple(sorted({spelled(option) for option in said}))


def spelled(value: object) -> str:
    """An answer as text: true and 1 as JSON has them, and 4.0 as 4.

    >>> spelled(True), spelled(4.0), spelled("four")
    ('true', '4', 'four')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return str(int(value)) if value.is_integer() else repr(value)
    raise InputError(f"an answer in words or a number was wanted; got {some([value])}")


def number(value: object) -> float:
    """A number that somebody may have told; NaN otherwise.

    >>> number("0.5"), number(None)
    (0.5, nan)
    """
    try:
        found = float(value)  # type: ignore[arg-type]  # what is no number raises
    except (TypeError, ValueError, OverflowError):
        return math.nan
    return found if math.isfinite(found) else math.nan


def duration(value: object) -> float:
    """Seconds that an answer took; NaN when that is not told, or cannot be."""
    found = number(value)
    return found if found >= 0 else math.nan


def moment(value: object) -> float:
    """When something was, in seconds since 1970; NaN when that is not told in a way that can be read.

    >>> moment("2024-05-31T14:00:00Z"), moment(1717164000000)
    (1717164000.0, 1717164000.0)
    """
    if value is None or isinstance(value, bool):
        return math.nan
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            return math.nan
    if isinstance(value, datetime):
        try:
            found = (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
        except (OverflowError, ValueError):
            return math.nan
    else:
        found = number(value)
        found = found / 1e3 if abs(found) >= _MILLISECONDS else found
    # Nobody labelled anything thousands of years from now.
    return found if abs(found) < _MILLISECONDS else math.nan
