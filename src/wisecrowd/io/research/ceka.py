"""CEKA: ``name.response.txt`` (worker, task, label), ``name.gold.txt`` (task, label), ``name.arff`` or ``name.arffx``.

Zhang, Sheng, Nicholson and Wu (2015), CEKA: a tool for mining the wisdom of crowds, JMLR 16.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from wisecrowd.errors import InputError
from wisecrowd.io.formats import Format, Options, Truth, Votes
from wisecrowd.io.research.arff import read_arff
from wisecrowd.io.tables import text as _text
from wisecrowd.io.tables.votes_table import truth_frame

_RESPONSE, _GOLD = ".response.txt", ".gold.txt"


def _votes(path: Path, options: Options) -> Votes:  # noqa: ARG001
    votes = _words(_response(path), ("worker", "task", "label"))
    truth = _truth(path)
    known = set() if truth is None else set(truth["truth"])
    return Votes(table=votes, classes=_in_order(known | set(votes["label"].unique().to_pylist())))


def _truth(path: Path, task: str | None = None, truth: str | None = None) -> Truth | None:  # noqa: ARG001
    """The gold file, or else the class attribute of the features."""
    file = path if path.name.endswith(_GOLD) else _beside(path, _GOLD)
    if file is not None:
        return truth_frame(_words(file, ("task", "truth")), "task", "truth", None)
    attributes = _attributes(path)
    name = None if attributes is None else _class_of(attributes)
    return None if attributes is None or name is None else attributes[[name]].set_axis(["truth"], axis=1)


def _features(path: Path) -> pd.DataFrame | None:
    attributes = _attributes(path)
    return None if attributes is None else attributes.drop(columns=[name for name in [_class_of(attributes)] if name])


def _attributes(path: Path) -> pd.DataFrame | None:
    file = _beside(path, ".arffx") or _beside(path, ".arff")
    return None if file is None else read_arff(file)


def _class_of(attributes: pd.DataFrame) -> str | None:
    return next((name for name in attributes.columns if name.casefold() == "class"), None)


def _response(path: Path) -> Path:
    file = path if path.name.endswith(_RESPONSE) else _beside(path, _RESPONSE)
    if file is None:
        raise InputError(f"there is no file NAME{_RESPONSE} here; the votes were wanted in one")
    return file


def _beside(path: Path, suffix: str) -> Path | None:
    """The file of the same dataset with another suffix: the same name in a folder of many, or the only one."""
    folder = path if path.is_dir() else path.parent
    if not path.is_dir():
        stem = next((path.name.removesuffix(end) for end in (_RESPONSE, _GOLD) if path.name.endswith(end)), path.stem)
        if (folder / f"{stem}{suffix}").is_file():
            return folder / f"{stem}{suffix}"
    found = sorted(folder.glob(f"*{suffix}"))
    if path.is_dir() and len(found) > 1 and suffix == _RESPONSE:
        raise InputError(f"there are {len(found)} datasets here; name the {_RESPONSE} file of the one you want")
    return found[0] if len(found) == 1 else None


def _words(path: Path, names: tuple[str, ...]) -> pa.Table:
    """Lines of words, as text."""
    lines = pc.utf8_trim_whitespace(pa.array(_text.whole_lines(path)))
    words = pc.utf8_split_whitespace(lines)
    blank = pc.equal(lines, "")
    bad = pc.indices_nonzero(pc.and_(pc.invert(blank), pc.not_equal(pc.list_value_length(words), len(names))))
    if len(bad):
        line = bad[0].as_py()
        wanted = f"{len(names)} words were wanted: {' '.join(names)}"
        raise InputError(f"{path.name}: line {line + 1} is {lines[line].as_py()[:80]!r}; {wanted}")
    cells = pc.list_flatten(words.filter(pc.invert(blank))).to_numpy(zero_copy_only=False).reshape(-1, len(names))
    return pa.table({name: pa.array(cells[:, place], pa.string()) for place, name in enumerate(names)})


def _in_order(labels: set[str]) -> list[str]:
    """CEKA's classes are the integers from 0, which as text would sort 10 before 2."""
    return sorted(labels, key=int) if all(label.isdecimal() for label in labels) else sorted(labels)


def _sniff(path: Path) -> bool:
    return (
        path.name.endswith((_RESPONSE, _GOLD)) if path.is_file() else path.is_dir() and any(path.glob(f"*{_RESPONSE}"))
    )


CEKA = Format(
    name="ceka",
    about="CEKA's NAME.response.txt with NAME.gold.txt and NAME.arff or NAME.arffx beside it",
    patterns=("*.response.txt", "*.gold.txt"),
    votes=_votes,
    sniff=_sniff,
    truth=_truth,
    features=_features,
)
