"""File formats: a table of all of them, and detection of the format of a file.

The table holds names and file patterns only. The module that reads a format is imported when a file may have that format,
so reading a CSV file does not import the readers of labelling tools.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from wisecrowd.data.sharded import is_shard_folder
from wisecrowd.errors import InputError, UsageError, preview, suggest_name
from wisecrowd.io.problems import EmptyInput, check_file_name, check_file_type, convert_errors, display_name
from wisecrowd.io.tables.text_files import peek_lines

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from wisecrowd.data.crowd import Crowd
    from wisecrowd.io.tools.exported_answers import ExportedAnswers
    from wisecrowd.io.vote_table import ReadOptions, TruthTable, VoteTable

#: Kinds of content by which most formats are ruled out without importing their readers.
ContentKind: TypeAlias = Literal["folder", "zip", "parquet", "text", "json"]

_SPREADSHEET = ("a spreadsheet", "save it as .xlsx, or its sheet as CSV in UTF-8")
_ARCHIVE = ("an archive", "unpack it first, and give the file or folder in it")
#: Suffixes of files that are not read: what such a file is, and what to do instead.
_UNREADABLE_SUFFIXES = dict.fromkeys((".xls", ".ods"), _SPREADSHEET) | dict.fromkeys(
    (".zip", ".7z", ".tar", ".tgz"), _ARCHIVE
)


@dataclass(frozen=True, kw_only=True)
class FormatReader:
    """Functions that read and write one format. None means that the format does not hold that kind of data.

    Parameters
    ----------
    read_votes : callable
        Function of a path and `ReadOptions` that returns a `VoteTable`.
    detect : callable
        Function of a path that returns whether the content can only be of this format, whatever the file is called.
    read_truth : callable, optional
        Function of a path and the names of the task and truth columns that returns the truth by task, or None.
    read_features, read_texts : callable, optional
        Function of a path that returns a table indexed by task, or None.
    read_meta : callable, optional
        Function of a path that returns the description of a dataset.
    write_votes : callable, optional
        Function of a crowd and a path.
    read_export : callable, optional
        Function of a path that returns all answers in the export of a labelling tool.
    read_names, read_columns : callable, optional
        Functions of a table's path, and of its path and some column names, that return the names of all columns, and the table of
        some columns. Other answers than single labels are read through them.
    """

    read_votes: Callable[[Path, ReadOptions], VoteTable]
    detect: Callable[[Path], bool]
    read_truth: Callable[[Path, str | None, str | None], TruthTable | None] | None = None
    read_features: Callable[[Path], pd.DataFrame | None] | None = None
    read_texts: Callable[[Path], pd.DataFrame | None] | None = None
    read_meta: Callable[[Path], dict[str, Any]] | None = None
    write_votes: Callable[[Crowd, Path], None] | None = None
    read_export: Callable[[Path], ExportedAnswers] | None = None
    read_names: Callable[[Path], list[str]] | None = None
    read_columns: Callable[[Path, Sequence[str]], pa.Table] | None = None


@dataclass(frozen=True, kw_only=True)
class Format:
    """File format, without the code that reads it.

    Parameters
    ----------
    name : str
        Name, as in ``format="csv"``.
    description : str
        Noun phrase for messages.
    location : str
        Module below `wisecrowd.io` and name of the `FormatReader` in it, as ``"tables.csv:CSV"``.
    kinds : tuple of {"folder", "zip", "parquet", "text", "json"}
        Kinds of content that may have this format.
    markers : tuple of str, default=()
        Strings of which one occurs at the beginning of every text file of this format.
    file_names : tuple of str, default=()
        Patterns of file names, for formats that are recognised by name and content together.
    patterns : tuple of str, default=()
        Patterns of file names that imply this format if the content does not tell.
    is_table : bool, default=False
        Whether a file is one table, of votes or of truth.
    is_tool : bool, default=False
        Whether the format is the export of a labelling tool, with one or several questions.
    is_writable : bool, default=False
        Whether wisecrowd writes the format.

    Examples
    --------
    >>> FORMATS["csv"].matches_name(Path("votes.csv.gz"))
    True
    """

    name: str
    description: str
    location: str
    kinds: tuple[ContentKind, ...] = ()
    markers: tuple[str, ...] = ()
    file_names: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    is_table: bool = False
    is_tool: bool = False
    is_writable: bool = False

    @property
    def reader(self) -> FormatReader:
        """Functions that read the format. The module is imported on first use."""
        module, _, name = self.location.partition(":")
        reader: FormatReader = getattr(importlib.import_module(f"wisecrowd.io.{module}"), name)
        return reader

    def matches_name(self, path: Path) -> bool:
        """Return whether a file name has a pattern of this format.

        Parameters
        ----------
        path : Path
            File name.

        Returns
        -------
        bool
            Whether one of the patterns matches, ignoring case.
        """
        return any(fnmatch(path.name.lower(), pattern) for pattern in self.patterns)

    def may_match_content(self, path: Path, kind: ContentKind | None, beginning: str) -> bool:
        """Return whether a file can have this format. False spares the import of the reader.

        Parameters
        ----------
        path : Path
            File or folder.
        kind : {"folder", "zip", "parquet", "text", "json"} or None
            Kind of its content.
        beginning : str
            First lines of a text file.

        Returns
        -------
        bool
            False if ``reader.detect`` returns False for this file.
        """
        if self.file_names and any(fnmatch(path.name, pattern) for pattern in self.file_names):
            return True
        if kind == "json" and "json" not in self.kinds:  # JSON is text, too
            kind = "text"
        if kind not in self.kinds:
            return False
        return kind != "text" or not self.markers or any(marker in beginning for marker in self.markers)


def _delimited(suffix: str) -> tuple[str, ...]:
    return tuple(f"*.{suffix}{compression}" for compression in ("", ".gz", ".bz2", ".zst"))


#: All formats by name, in the order in which detection tries them.
FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        entry.name: entry
        for entry in (
            Format(
                name="argilla",
                description="records of Argilla 2",
                location="tools.argilla:ARGILLA",
                kinds=("json", "parquet"),
                is_tool=True,
            ),
            Format(
                name="ceka",
                description="CEKA's NAME.response.txt with NAME.gold.txt and NAME.arff or NAME.arffx beside it",
                location="research.ceka:CEKA",
                kinds=("folder",),
                file_names=("*.response.txt", "*.gold.txt"),
                patterns=("*.response.txt", "*.gold.txt"),
            ),
            Format(
                name="csv",
                description="a table separated by commas, with a header line",
                location="tables.csv:CSV",
                kinds=("text",),
                patterns=_delimited("csv"),
                is_table=True,
                is_writable=True,
            ),
            Format(
                name="crowdflower",
                description="the full report of CrowdFlower",
                location="tools.crowdflower:CROWDFLOWER",
                kinds=("text",),
                markers=("_unit_id",),
                is_tool=True,
            ),
            Format(
                name="tsv",
                description="a table separated by tabs, with a header line",
                location="tables.csv:TSV",
                kinds=("text",),
                patterns=_delimited("tsv"),
                is_table=True,
                is_writable=True,
            ),
            Format(
                name="coco",
                description="boxes and keypoints in COCO JSON, with annotators",
                location="tools.coco:COCO",
                kinds=("folder", "json"),
                is_tool=True,
            ),
            Format(
                name="cvat",
                description="tags, boxes and points of images by CVAT, in XML",
                location="tools.cvat:CVAT",
                kinds=("folder", "zip", "text"),
                markers=("<annotations>",),
                is_tool=True,
            ),
            Format(
                name="folder",
                description="a dataset folder with annotations.parquet",
                location="dataset_folder:FOLDER",
                kinds=("folder",),
                is_writable=True,
            ),
            Format(
                name="doccano",
                description="an export of doccano, with a file for each annotator",
                location="tools.doccano:DOCCANO",
                kinds=("folder", "zip", "json"),
                is_tool=True,
            ),
            Format(
                name="jsonl",
                description="a JSON object per line",
                location="tables.json:JSONL",
                kinds=("json",),
                patterns=("*.jsonl", "*.ndjson", "*.jsonl.gz", "*.ndjson.gz", "*.jsonl.zst"),
                is_table=True,
                is_writable=True,
            ),
            Format(
                name="parquet",
                description="a table in Parquet",
                location="tables.parquet:PARQUET",
                kinds=("parquet",),
                patterns=("*.parquet", "*.pq"),
                is_table=True,
                is_writable=True,
            ),
            Format(
                name="excel",
                description="a workbook of Excel (.xlsx)",
                location="tables.excel:EXCEL",
                kinds=("zip",),
                patterns=("*.xlsx", "*.xlsm"),
                is_table=True,
            ),
            Format(
                name="hugging-face",
                description="a dataset with a row per task and lists of its workers and labels",
                location="tools.hugging_face:HUGGING_FACE",
                kinds=("json", "parquet"),
                is_tool=True,
            ),
            Format(
                name="json",
                description="a list of JSON objects",
                location="tables.json:JSON",
                kinds=("json",),
                patterns=("*.json", "*.json.gz"),
                is_table=True,
            ),
            Format(
                name="label-studio",
                description="an export of Label Studio in JSON",
                location="tools.label_studio:LABEL_STUDIO",
                kinds=("json",),
                is_tool=True,
            ),
            Format(
                name="label-studio-min",
                description="an export of Label Studio in JSON_MIN",
                location="tools.label_studio:LABEL_STUDIO_MIN",
                kinds=("json",),
                is_tool=True,
            ),
            Format(  # any table looks like a matrix, so this format is never detected
                name="mace",
                description="MACE's matrix in CSV without a header: a row per task, a column per worker",
                location="research.mace:MACE",
            ),
            Format(
                name="mturk",
                description="results of Mechanical Turk",
                location="tools.mturk:MTURK",
                kinds=("text",),
                markers=("HITId",),
                is_tool=True,
            ),
            Format(
                name="peerannot",
                description="peerannot's answers.json or answers.txt",
                location="research.peerannot:PEERANNOT",
                kinds=("folder",),
                file_names=("answers.json", "answers.txt"),
            ),
            Format(
                name="peerannot-inverted",
                description="the same with workers outside and tasks inside",
                location="research.peerannot:PEERANNOT_INVERTED",
                file_names=("answers_inversed.json",),
            ),
            Format(
                name="prodigy",
                description="annotations of Prodigy in JSON lines",
                location="tools.prodigy:PRODIGY",
                kinds=("json",),
                is_tool=True,
            ),
            Format(
                name="toloka",
                description="Toloka's table of assignments",
                location="tools.toloka:TOLOKA",
                kinds=("text",),
                markers=("OUTPUT:",),
                is_tool=True,
            ),
            Format(
                name="truth-inference",
                description="a folder with answer.csv or label.csv, and truth.csv",
                location="research.truth_inference:TRUTH_INFERENCE",
                kinds=("folder",),
            ),
            Format(  # a table of features looks alike, so this format is never detected
                name="wide",
                description="a table with a header, a row per task and a column per worker",
                location="tables.wide:WIDE",
            ),
        )
    }
)


def find_format(path: Path, name: str | None = None) -> Format:
    """Return the format of a file or folder.

    Parameters
    ----------
    path : Path
        File or folder. It need not exist if ``name`` is given.
    name : str, optional
        Name of the format. Without it, content and file name decide.

    Returns
    -------
    Format
        The format.

    Raises
    ------
    InputError
        If the path does not exist or its format is not recognised.
    UsageError
        If no format has that name.

    Examples
    --------
    >>> find_format(Path("votes.txt"), "tsv").description
    'a table separated by tabs, with a header line'
    """
    check_file_name(path)
    check_file_type(path)
    if name is not None:
        if name not in FORMATS:
            raise UsageError(
                f"there is no format {name!r}; the formats are {', '.join(FORMATS)}.{suggest_name(name, FORMATS)}"
            )
        if path.is_dir() and FORMATS[name].is_table:
            raise InputError(f"{path} is a folder, but {name} is the format of a file.{_describe_folder(path)}")
        return FORMATS[name]
    _check_exists(path)
    matches = _detect_by_content(path)
    if matches and matches[0].is_tool:
        return matches[0]
    if not matches and path.is_file() and path.suffix.lower() in _UNREADABLE_SUFFIXES:
        raise InputError(_describe_unreadable(path))
    if not matches and path.is_file():
        _check_is_no_archive(path)
    by_name = [entry for entry in FORMATS.values() if path.is_file() and entry.matches_name(path)]
    candidates = [entry for entry in matches if entry in by_name] + matches + by_name
    if candidates:
        return candidates[0]
    if path.is_dir():
        raise InputError(
            f"{path} is a folder, but not a dataset: it contains neither annotations.parquet nor files of another tool."
            f"{_describe_folder(path)}"
        )
    raise InputError(
        f"the format of {display_name(path)} is not recognised: neither its name nor its content fits any of {', '.join(FORMATS)}. "
        'Name the format, for example format="csv" (--format csv)'
    )


def _check_is_no_archive(path: Path) -> None:
    """Raise an error for a zip archive with the name of another format; a workbook is one, too, and its reader says so."""
    if find_content_kind(path, "") != "zip" or path.suffix.lower() == ".xlsx":
        return
    from wisecrowd.io.tables.archives import describe_unknown_zip, open_zip

    try:
        with open_zip(path) as archive:
            is_workbook = any(info.filename == "[Content_Types].xml" for info in archive.files)
    except InputError:
        return
    if not is_workbook:
        raise InputError(describe_unknown_zip(path))


def _check_exists(path: Path) -> None:
    """Raise an error unless a path is a file with content or a folder that is not sharded."""
    if not path.exists():
        siblings = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
        raise InputError(f"there is no file or folder {path}.{suggest_name(path.name, siblings)}")
    if is_shard_folder(path):
        raise InputError(f"{path} is a folder of shards; open it with Crowd.open, or run wisecrowd aggregate on it")
    if path.is_file() and path.stat().st_size == 0:
        raise EmptyInput(f"{display_name(path)} is empty; expected a file with a row per vote")


def _detect_by_content(path: Path) -> list[Format]:
    """Return the formats that the content fits.

    The export of a labelling tool is also a table or a list of objects. The tool is the better answer, so tools come first
    and the first one ends the search.
    """
    beginning = "".join(peek_lines(path))
    kind = find_content_kind(path, beginning)
    possible = [entry for entry in FORMATS.values() if entry.may_match_content(path, kind, beginning)]
    for entry in possible:
        if entry.is_tool and _fits(entry, path):
            return [entry]
    return [entry for entry in possible if not entry.is_tool and _fits(entry, path)]


def _fits(entry: Format, path: Path) -> bool:
    """Return whether the content can only be of a format. Damaged content is not; the reader reports why."""
    try:
        with convert_errors():
            return entry.reader.detect(path)
    except InputError:
        return False


def find_content_kind(path: Path, beginning: str) -> ContentKind | None:
    """Return the kind of content of a file or folder.

    Parameters
    ----------
    path : Path
        File or folder.
    beginning : str
        First lines of a text file, empty for anything else.

    Returns
    -------
    {"folder", "zip", "parquet", "text", "json"} or None
        Kind. None if no format has such content.

    Examples
    --------
    >>> find_content_kind(Path("votes.txt"), '{"task": "t1"}')
    'json'
    """
    if path.is_dir():
        return "folder"
    if beginning:
        return "json" if beginning.lstrip()[:1] in ("{", "[") else "text"
    if not path.is_file():  # opening a pipe would block
        return None
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError:  # the reader reports why
        return None
    kinds: dict[bytes, ContentKind] = {b"PK\x03\x04": "zip", b"PAR1": "parquet"}
    return kinds.get(magic)


def _describe_unreadable(path: Path) -> str:
    """Return the message for a file that wisecrowd does not read, such as a spreadsheet."""
    suffix = path.suffix.lower()
    if suffix == ".zip":
        from wisecrowd.io.tables.archives import describe_unknown_zip

        return describe_unknown_zip(path)
    noun, advice = _UNREADABLE_SUFFIXES[suffix]
    return f"{display_name(path)} is {noun}, which is not read; {advice}"


def _describe_folder(folder: Path) -> str:
    """List the content of a folder for a message, with a file to try."""
    names = sorted(entry.name + "/" * entry.is_dir() for entry in folder.iterdir())
    if not names:
        return " It is empty"
    tables = [name for name in names for entry in FORMATS.values() if entry.is_table and entry.matches_name(Path(name))]
    tables.sort(key=lambda name: not any(word in name for word in ("vote", "annotation", "label", "answer")))
    advice = f". Give the file with the votes, for example {folder / tables[0]}" if tables else ""
    return f" It contains {preview(names, 8)}{advice}"
