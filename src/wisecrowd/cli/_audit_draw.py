"""Draw of an audit: its identity, which travels with the checks, and the files that a person filled in."""

from __future__ import annotations

import hashlib
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wisecrowd.cli._reading import GoldReading

if TYPE_CHECKING:
    import pandas as pd

    from wisecrowd.data.crowd import Crowd

#: Tasks to check, and the columns beside their ids. The column draw identifies votes, method and gold of the draw.
CHECKS = "checks.csv"
COLUMNS = ("truth", "stratum", "weight", "draw")
#: Parts of the identity of a draw and their length in hexadecimal digits.
PARTS = ("other votes, or votes read with other options", "another method or other parameters", "other gold")
PART_LENGTH = 8


def identify_draw(crowd: Crowd, unfitted: Any, gold: pd.Series | None) -> str:
    """Return a text that is equal for equal votes, methods and gold.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    unfitted : Aggregator
        Method with its parameters.
    gold : Series or None
        Known truth of some tasks.

    Returns
    -------
    str
        Digests of the votes, the method and the gold, separated by hyphens.

    Examples
    --------
    >>> from wisecrowd import Crowd, MajorityVote
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat")])
    >>> [len(part) for part in identify_draw(crowd, MajorityVote(), None).split("-")]
    [8, 8, 8]
    """
    parameters = {"n_jobs": 1, "engine": "local"}  # the same labels, computed elsewhere
    known = {name: value for name, value in parameters.items() if hasattr(unfitted, name)}
    method = repr(type(unfitted)(**unfitted.get_params(deep=False) | known))
    truth = [] if gold is None else sorted(f"{task}\t{label}" for task, label in gold.astype(str).items())
    digests = (crowd.digest, *(hashlib.sha256(text.encode()).hexdigest() for text in (method, "\n".join(truth))))
    return "-".join(digest[:PART_LENGTH] for digest in digests)


def check_draw(path: Path, reading: GoldReading, draw: str, command: str, tasks: pd.Index) -> None:
    """Raise an error if checks were drawn from other votes, for another method or with other gold.

    Parameters
    ----------
    path : Path
        Table of checks. One that no draw made has no column ``draw`` and passes.
    reading : GoldReading
        Options by which the checks are read.
    draw : str
        Identity of the votes, the method and the gold of this run.
    command : str
        Command line of the draw if it is known, else empty.
    tasks : Index
        Tasks of the votes.
    """
    from wisecrowd.cli._truth_files import read_column
    from wisecrowd.errors import InputError

    column = read_column(path, reading, "draw", tasks=tasks)
    names = set() if column is None else {str(name).strip() for name in column.dropna()} - {""}
    for name in sorted(names - {draw}):
        parts = name.split("-")
        if len(parts) != len(PARTS):
            raise InputError(
                f"{path}: the column draw contains {name!r}; expected the text that wisecrowd audit wrote. Restore it"
            )
        differences = [part for part, there, here in zip(PARTS, parts, draw.split("-"), strict=True) if there != here]
        known = f"; the command of the draw was: {command}" if command else ""
        raise InputError(
            f"{path}: these tasks were drawn with {' and '.join(differences)}, so their weights do not fit. Give the "
            f"votes and options of the draw{known}. If the votes have changed since, draw again; the checks remain useful as gold: "
            f"wisecrowd aggregate VOTES --gold {shlex.quote(str(path))}"
        )


def find_draw_command(path: Path) -> str:
    """Return the command line that drew the checks of a file, from the record beside it; empty if there is none."""
    import json

    from wisecrowd.cli._outputs import RECORD

    try:
        record = json.loads((path.parent / RECORD).read_text(encoding="utf-8"))
        words = record["command"]["draw"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return words if isinstance(words, str) else ""


def count_drawn(path: Path, reading: GoldReading, draw: str, tasks: pd.Index) -> int:
    """Return the number of tasks of a draw: rows of the table of checks, or more if the record beside it has more.

    Parameters
    ----------
    path : Path
        Table of checks.
    reading : GoldReading
        Options by which the checks are read.
    draw : str
        Identity of the draw.
    tasks : Index
        Tasks of the votes.

    Returns
    -------
    int
        Number of tasks; 0 if no draw made the table.
    """
    import json

    from wisecrowd.cli._outputs import RECORD
    from wisecrowd.cli._truth_files import read_column

    column = read_column(path, reading, "draw", tasks=tasks)
    n_rows = 0 if column is None else int((column.astype(str).str.strip() == draw).sum())
    if not n_rows or path.name != CHECKS:  # the record is that of the file that the draw wrote
        return n_rows
    try:
        n_recorded = json.loads((path.parent / RECORD).read_text(encoding="utf-8"))["summary"]["drawn"]
    except (OSError, ValueError, KeyError, TypeError):
        return n_rows
    return max(n_rows, n_recorded) if isinstance(n_recorded, int) else n_rows


def refuse_filled_checks(folder: Path, words: list[str], checked: Path | None, check_columns: list[str]) -> None:
    """Raise an error if a folder has checks that a person filled in, which a draw would overwrite.

    Parameters
    ----------
    folder : Path
        Folder of the results.
    words : list of str
        Command line that reads the same votes by the same method.
    checked : Path or None
        Checks that the command evaluates.
    check_columns : list of str
        Options that name columns of these checks.
    """
    from wisecrowd.errors import UsageError
    from wisecrowd.utils.text import count_noun

    path = folder / CHECKS
    if not path.exists():
        return
    n_filled = _count_filled(path)
    if n_filled == 0:
        return
    what = (
        "contents that cannot be read" if n_filled is None else f"{count_noun(n_filled, 'task')} with a truth filled in"
    )
    other = folder.with_name(f"{folder.name}-2")
    source = ["--checked", str(path)] if checked is None else [*check_columns, "--checked", str(checked)]
    raise UsageError(
        f"{path} has {what}, which a new draw would overwrite. To draw further tasks beside them: "
        f"{shlex.join([*words, *source, '--size', 'N', '-o', str(other)])}. To evaluate them: "
        f"{shlex.join([*words, *source, '-o', 'audited'])}. To start over, choose another folder with -o"
    )


def _count_filled(path: Path) -> int | None:
    """Return the number of rows with a truth; None if the file cannot be read as a table of checks."""
    from wisecrowd import io
    from wisecrowd.errors import WisecrowdError

    try:
        truth = io.read_truth(path, truth="truth")
    except WisecrowdError:
        return None if path.stat().st_size else 0
    return int((truth.notna() & (truth.astype(str).str.strip() != "")).sum())


def combine_checks(
    sample: pd.DataFrame, checks: pd.Series | None, weight: pd.Series | None, stratum: pd.Series | None, draw: str
) -> pd.DataFrame:
    """Return the table of checks: earlier ones with their truth, followed by the tasks that were drawn now.

    Each draw estimates the errors of all tasks: the earlier one by its weights, and the new one together with the earlier checks,
    which are known. The weights are the mean of both estimates, weighted by the numbers of checks.

    Parameters
    ----------
    sample : DataFrame
        Tasks that were drawn now, with stratum and weight.
    checks : Series or None
        Truth of tasks that were checked before.
    weight, stratum : Series or None
        Their weights and strata; equal weights if there are none.
    draw : str
        Identity of the draw.

    Returns
    -------
    DataFrame
        Columns truth, stratum, weight and draw by task.

    Examples
    --------
    >>> import pandas as pd
    >>> new = pd.DataFrame({"stratum": [0], "weight": [8.0]}, index=pd.Index(["t3"], name="task"))
    >>> combine_checks(new, pd.Series({"t1": "cat", "t2": "dog"}), None, None, "x")["weight"].round(2).to_dict()
    {'t1': 3.67, 't2': 3.67, 't3': 2.67}
    """
    import pandas as pd

    drawn = sample.assign(truth="", draw=draw, stratum=sample["stratum"].astype("Int64"))
    if checks is None:
        return drawn[list(COLUMNS)]
    n_tasks, share = float(sample["weight"].sum()) + len(checks), len(checks) / (len(checks) + len(sample))
    earlier_weight = (
        pd.Series(n_tasks / len(checks), index=checks.index) if weight is None else weight.reindex(checks.index)
    )
    earlier_stratum = pd.Series(pd.NA, index=checks.index) if stratum is None else stratum.reindex(checks.index)
    earlier = pd.DataFrame({
        "truth": checks.astype(str), "stratum": earlier_stratum.astype("Int64"),
        "weight": share * earlier_weight * n_tasks / float(earlier_weight.sum()) + (1 - share), "draw": draw,
    })  # fmt: skip
    later = drawn.assign(weight=drawn["weight"] * (1 - share))
    return pd.concat([earlier, later[list(COLUMNS)]]).rename_axis("task")
