"""CEKA: ``name.response.txt`` (worker, task, label), ``name.gold.txt`` (task, label), ``name.arff`` or ``name.arffx``.

References
----------
J. Zhang, V. S. Sheng, B. A. Nicholson and X. Wu (2015). CEKA: a tool for mining the wisdom of crowds. JMLR 16.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from wisecrowd.errors import InputError
from wisecrowd.io.formats import FormatReader
from wisecrowd.io.research.arff import read_arff
from wisecrowd.io.tables.text_files import read_lines
from wisecrowd.io.tables.vote_columns import build_truth
from wisecrowd.io.vote_table import ReadOptions, TruthTable, VoteTable

_RESPONSE, _GOLD = ".response.txt", ".gold.txt"
#: Digits of the longest class that is sorted as a number.
_MAX_DIGITS = 18


def _read_votes(path: Path, options: ReadOptions) -> VoteTable:  # noqa: ARG001
    votes = _read_words(_find_response_file(path), ("worker", "task", "label"))
    truth = _read_truth(path)
    gold_labels = set() if truth is None else set(truth["truth"])
    return VoteTable(table=votes, classes=_sort_classes(gold_labels | set(votes["label"].unique().to_pylist())))


def _read_truth(path: Path, task: str | None = None, truth: str | None = None) -> TruthTable | None:  # noqa: ARG001
    """Read the gold file, or else the class attribute of the features."""
    file = path if path.name.endswith(_GOLD) else _find_sibling(path, _GOLD)
    if file is not None:
        return build_truth(_read_words(file, ("task", "truth")), "task", "truth", None)
    attributes = _read_attributes(path)
    name = None if attributes is None else _find_class_attribute(attributes)
    return None if attributes is None or name is None else attributes[[name]].set_axis(["truth"], axis=1)


def _read_features(path: Path) -> pd.DataFrame | None:
    attributes = _read_attributes(path)
    if attributes is None:
        return None
    return attributes.drop(columns=[name for name in [_find_class_attribute(attributes)] if name])


def _read_attributes(path: Path) -> pd.DataFrame | None:
    file = _find_sibling(path, ".arffx") or _find_sibling(path, ".arff")
    return None if file is None else read_arff(file)


def _find_class_attribute(attributes: pd.DataFrame) -> str | None:
    return next((name for name in attributes.columns if name.casefold() == "class"), None)


def _find_response_file(path: Path) -> Path:
    file = path if path.name.endswith(_RESPONSE) else _find_sibling(path, _RESPONSE)
    if file is None:
        raise InputError(f"there is no file NAME{_RESPONSE} with the votes here")
    return file


def _find_sibling(path: Path, suffix: str) -> Path | None:
    """Return the file of the same dataset with another suffix: the one of the same name, or the only one."""
    folder = path if path.is_dir() else path.parent
    if not path.is_dir():
        stem = next((path.name.removesuffix(end) for end in (_RESPONSE, _GOLD) if path.name.endswith(end)), path.stem)
        if (folder / f"{stem}{suffix}").is_file():
            return folder / f"{stem}{suffix}"
    files = sorted(folder.glob(f"*{suffix}"))
    if path.is_dir() and len(files) > 1 and suffix == _RESPONSE:
        raise InputError(f"there are {len(files)} datasets here; name the {_RESPONSE} file of the one you want")
    return files[0] if len(files) == 1 else None


def _read_words(path: Path, names: tuple[str, ...]) -> pa.Table:
    """Read lines of words as columns of text."""
    lines = pc.utf8_trim_whitespace(pa.array(read_lines(path)))
    words = pc.utf8_split_whitespace(lines)
    blank = pc.equal(lines, "")
    invalid = pc.indices_nonzero(pc.and_(pc.invert(blank), pc.not_equal(pc.list_value_length(words), len(names))))
    if len(invalid):
        line = invalid[0].as_py()
        expected = f"expected {len(names)} words: {' '.join(names)}"
        raise InputError(f"{path.name}: line {line + 1} is {lines[line].as_py()[:80]!r}; {expected}")
    cells = pc.list_flatten(words.filter(pc.invert(blank))).to_numpy(zero_copy_only=False).reshape(-1, len(names))
    return pa.table({name: pa.array(cells[:, column], pa.string()) for column, name in enumerate(names)})


def _sort_classes(labels: set[str]) -> list[str]:
    """Sort classes. CEKA's classes are the integers from 0, so 2 precedes 10."""
    is_integer = all(label.isdecimal() and len(label) <= _MAX_DIGITS for label in labels)
    return sorted(labels, key=int) if is_integer else sorted(labels)


def _detect(path: Path) -> bool:
    if path.is_file():
        return path.name.endswith((_RESPONSE, _GOLD))
    return path.is_dir() and any(path.glob(f"*{_RESPONSE}"))


CEKA = FormatReader(read_votes=_read_votes, detect=_detect, read_truth=_read_truth, read_features=_read_features)
