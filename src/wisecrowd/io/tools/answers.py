"""From the answers that a labelling tool tells to votes: of one question, of one kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa

from wisecrowd.errors import UsageError, did_you_mean, some
from wisecrowd.io.formats import Format, Options, Truth, Votes
from wisecrowd.io.problems import EmptyInput
from wisecrowd.io.tools.gathering import Asked, Gathering

#: How an answer that chose nothing is written among the classes of a joint crowd.
NOTHING = "∅"
#: Before the name of a machine that is called like a person.
MACHINE = "machine"


def tool_format(
    name: str,
    about: str,
    gather: Callable[[Path], Gathering],
    sniff: Callable[[Path], bool],
    table: Callable[[Path], Format] | None = None,
) -> Format:
    """The format of a tool's exports; ``table`` says how to read them when somebody names the columns of a plain table.

    >>> form = tool_format("mine", "my own tool", lambda path: Gathering(), lambda path: False)
    >>> form.read(Path("votes.mine"), Options())
    Traceback (most recent call last):
        ...
    wisecrowd.io.problems.EmptyInput: votes.mine: there is no question with an answer that votes can be made of: ...
    """

    def votes(path: Path, options: Options) -> Votes:
        if not options.names_columns:
            return votes_of(gather(path), options)
        if table is None:
            raise UsageError(
                f"columns of a table were named, but this is {about}; say which question to read instead: "
                "question=NAME (--question NAME)"
            )
        return table(path).votes(path, options)

    def truth(path: Path, task: str | None, name: str | None) -> Truth | None:
        if table is not None and (task or name):
            read = table(path).truth
            return None if read is None else read(path, task, name)
        return truth_of(gather(path))

    # Names tell nothing: exports are called like any other file.
    return Format(name=name, about=about, patterns=(), votes=votes, sniff=sniff, truth=truth, project=gather)


def votes_of(gathered: Gathering, options: Options) -> Votes:
    """The votes of one question, as other formats give theirs; ``question=`` chooses, and may name an option, too.

    >>> gathered = Gathering()
    >>> gathered.question("animal").answer("t1", "ann", ["cat"])
    >>> votes_of(gathered, Options()).table.to_pylist()
    [{'task': 't1', 'worker': 'ann', 'label': 'cat'}]
    """
    if not gathered.asked:
        raise EmptyInput(nothing(gathered))
    name, option = _chosen_or_option(gathered.asked, options.question)
    asked = gathered.asked[name]
    if option is not None:
        asked = _of_option(asked, option)
    names = names_of(asked)
    rows = rows_of_votes(asked)
    notes = [f"read the answers to {name!r}"] if options.question is None else []
    notes += gathered.notes
    machines = sorted({names[row] for row in rows if asked.machine[row]})
    if machines:
        notes.append(f"machines vote, too: {some(machines)}")
    left_out = left_out_of(asked, gathered, rows)
    if left_out:
        notes.append(f"left out {counts(left_out)}")
    votes = votes_from(asked, names, rows)
    unwanted = [name for name, column in (("worker", options.worker), ("time", options.time)) if column is False]
    kept = votes.table.select([name for name in votes.table.column_names if name not in unwanted])
    return replace(votes, table=kept, notes=tuple(notes))


def truth_of(gathered: Gathering, question: str | None = None) -> Truth | None:
    """What the tool marks as right, as other formats give the truth.

    >>> gathered = Gathering()
    >>> gathered.question("animal").gold("t1", ["cat"])
    >>> truth_of(gathered).to_dict()
    {'truth': {'t1': 'cat'}}
    """
    if not gathered.asked:
        return None
    name, option = _chosen_or_option(gathered.asked, question)
    asked = gathered.asked[name]
    known = truth_from(asked if option is None else _of_option(asked, option))
    return None if known is None else known.rename("truth").to_frame()


def written_set(options: tuple[str, ...]) -> str:
    """A set of options as one text.

    >>> written_set(("a", "b")), written_set(()), written_set(("a|b",))
    ('a|b', '∅', 'a\\\\|b')
    """
    if not options:
        return NOTHING
    escaped = [option.replace("\\", "\\\\").replace("|", "\\|") for option in options]
    return "\\" + NOTHING if escaped == [NOTHING] else "|".join(escaped)


def set_of(text: str) -> tuple[str, ...]:
    """The options in such a text.

    >>> set_of("a|b"), set_of("∅"), set_of("a\\\\|b")
    (('a', 'b'), (), ('a|b',))
    """
    if text == NOTHING:
        return ()
    parts, escaped = [""], False
    for letter in text:
        if escaped or letter not in "\\|":
            parts[-1] += letter
            escaped = False
        elif letter == "|":
            parts.append("")
        else:
            escaped = True
    return tuple(parts)


# ---------------------------------------------------------------------- one question


def chosen(questions: Mapping[str, Any], name: str | None) -> str:
    if name is None:
        if len(questions) == 1:
            return next(iter(questions))
        raise UsageError(
            f"there are several questions: {some(questions, 12)}; say which: "
            f'question="{next(iter(questions))}" (--question {next(iter(questions))})'
        )
    if name not in questions:
        raise UsageError(
            f"there is no question {name!r}; there {'is' if len(questions) == 1 else 'are'} {some(questions, 12)}."
            f"{did_you_mean(name, questions)}"
        )
    return name


def _chosen_or_option(asked: Mapping[str, Asked], wanted: str | None) -> tuple[str, str | None]:
    """A question, and perhaps an option of it: "topics=sports" asks who said that sports is one of the topics."""
    name, equals, option = (wanted or "").partition("=")
    if wanted in asked or not equals or name not in asked:
        return chosen(asked, wanted), None
    if kind_of(asked[name]) != "multiple":
        raise UsageError(f"{name!r} is no multiple-choice question; say question={name!r} (--question {name})")
    known = known_options(asked[name])
    if option not in known:
        raise UsageError(f"{name!r} has no option {option!r}; it has {some(known, 12)}.{did_you_mean(option, known)}")
    return name, option


def _of_option(asked: Asked, option: str) -> Asked:
    def decided(said: tuple[str, ...]) -> tuple[str, ...]:
        return ("yes",) if option in said else ("no",)

    return replace(
        asked,
        said=[decided(said) for said in asked.said],
        options={"no": None, "yes": None},
        truth={task: decided(said) for task, said in asked.truth.items() if said},
        consensus={},
        multiple=False,
    )


def nothing(gathered: Gathering) -> str:
    """What to say of an export in which there are no votes."""
    wanted = "there is no question with an answer that votes can be made of: a choice, a rating or a number was wanted"
    return f"{wanted}; left out {counts(gathered.left_out)}" if gathered.left_out else wanted


def counts(left_out: Mapping[str, int]) -> str:
    """What was left out, and how much of it."""
    return ", ".join(f"{why} ({n:,})" for why, n in left_out.items())


def kind_of(asked: Asked) -> Literal["single", "multiple", "number"]:
    if asked.number:
        return "number"
    if asked.multiple:
        return "multiple"
    told = (asked.said, asked.truth.values(), (said for said, _ in asked.consensus.values()))
    return "multiple" if any(len(said) > 1 for answers in told for said in answers) else "single"


def known_options(asked: Asked) -> list[str]:
    """The options of a question: as the tool lists them, then whatever else was chosen."""
    chosen = {option for said in (*asked.said, *asked.truth.values()) for option in said}
    return [*asked.options, *sorted(chosen - asked.options.keys())]


def names_of(asked: Asked) -> list[str]:
    """The worker of each answer: a machine that is called like a person goes by another name."""
    people = {worker for worker, machine in zip(asked.worker, asked.machine, strict=True) if not machine}

    def named(worker: str) -> str:
        while worker in people:
            worker = f"{MACHINE}:{worker}"
        return worker

    return [named(worker) if machine else worker for worker, machine in zip(asked.worker, asked.machine, strict=True)]


def rows_of_votes(asked: Asked) -> list[int]:
    """Which answers are votes: in the order of time where it is known, so that a first and a last answer are what they say."""
    wanted = range(len(asked.task))
    rows = list(wanted) if kind_of(asked) == "multiple" else [row for row in wanted if len(asked.said[row]) == 1]
    time = np.array([asked.time[row] for row in rows])
    if len(rows) and not np.isnan(time).any():
        rows = [rows[place] for place in np.argsort(time, kind="stable")]
    return rows


def left_out_of(asked: Asked, gathered: Gathering, rows: list[int]) -> dict[str, int]:
    total = Counter(gathered.left_out) + asked.left_out
    total["empty"] += len(asked.task) - len(rows)
    return {why: n for why, n in total.items() if n}


def votes_from(asked: Asked, names: list[str], rows: list[int]) -> Votes:
    kind = kind_of(asked)
    said = [asked.said[row] for row in rows]
    columns: dict[str, Any] = {
        "task": pa.array([asked.task[row] for row in rows], pa.string()),
        "worker": pa.array([names[row] for row in rows], pa.string()),
    }
    if kind == "number":
        columns["label"] = pa.array([float(value) for (value,) in said], pa.float64())
    else:
        columns["label"] = pa.array([written_set(one) if kind == "multiple" else one[0] for one in said], pa.string())
    time = np.array([asked.time[row] for row in rows], dtype=np.float64)
    if len(time) and not np.isnan(time).all():
        columns["time"] = pa.array(time, from_pandas=True)
    classes = known_options(asked) if kind == "single" and asked.options else None
    return Votes(table=pa.table(columns), classes=classes, numeric=kind == "number")


def truth_from(asked: Asked) -> pd.Series[Any] | None:
    kind = kind_of(asked)
    told = {task: written_set(said) if kind == "multiple" else said[0] for task, said in asked.truth.items() if said}
    if not told:
        return None
    series = pd.Series(told, name="truth").rename_axis("task")
    return series.astype(float) if kind == "number" else series
