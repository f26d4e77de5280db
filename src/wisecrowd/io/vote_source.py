"""Reading and writing of votes in files of any format."""

from __future__ import annotations

import logging
import os
import shlex
import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pandas as pd

from wisecrowd.data.crowd import Crowd, Missing, Vocabulary
from wisecrowd.data.rows import Duplicates
from wisecrowd.errors import DataWarning, InputError, UsageError, preview
from wisecrowd.io.compressed_files import limit_unpacked
from wisecrowd.io.formats import FORMATS, Format, find_format
from wisecrowd.io.problems import check_file_name, convert_errors, display_name, prefix_errors
from wisecrowd.io.source_files import fetch_source
from wisecrowd.io.tables.matched_columns import VoteNames, choose_truth_columns
from wisecrowd.io.tables.numeric_labels import find_suspect_numbers
from wisecrowd.io.tables.similar_ids import describe_similar_ids
from wisecrowd.io.tables.spellings import match_spellings
from wisecrowd.io.tables.text_labels import are_texts
from wisecrowd.io.validation.mistake_checks import check_mistakes
from wisecrowd.io.vote_table import ReadOptions, ReadVotes, RowCounts, TruthTable, VoteTable

if TYPE_CHECKING:
    from wisecrowd.io.tools.exported_answers import ExportedAnswers

log = logging.getLogger("wisecrowd.io")

#: Number of repeated votes up to which no column is suspected to be wrong.
MAX_REPEATED_ROWS = 10


@dataclass(frozen=True)
class VoteSource:
    """File or folder of votes together with its format, which is detected once.

    Every function that reads votes takes a `VoteSource` in place of a path.

    Parameters
    ----------
    path : Path
        File or folder.
    format : Format
        Its format.

    Examples
    --------
    >>> _ = Path("votes.csv").write_text("task,worker,label,gold\\n1,ann,cat,cat\\n1,bob,dog,cat\\n")
    >>> source = VoteSource.detect("votes.csv")
    >>> source.format.name
    'csv'
    >>> source.read_votes()
    Crowd(2 votes: 1 task x 2 workers, 2 classes, 2.0 votes/task)
    >>> source.read_truth().to_dict()
    {'1': 'cat'}
    """

    path: Path
    format: Format

    @classmethod
    def detect(cls, path: SourceLike, format: str | None = None) -> VoteSource:
        """Detect the format of a file or folder.

        Parameters
        ----------
        path : path-like or VoteSource
            File or folder. A `VoteSource` is returned unchanged.
        format : str, optional
            Name of the format. Without it, content and file name decide.

        Returns
        -------
        VoteSource
            The path and its format.

        Raises
        ------
        InputError
            If the path does not exist or its format is not recognised.
        UsageError
            If no format has that name.
        """
        if isinstance(path, VoteSource):
            return path
        file = fetch_source(path)
        return cls(file, find_format(file, format))

    @property
    def name(self) -> str:
        """Name of the file for messages; that of the original if the file is a copy of another input."""
        return display_name(self.path)

    def read_table(self, options: ReadOptions | None = None) -> VoteTable:
        """Read the votes without validating them.

        Parameters
        ----------
        options : ReadOptions, optional
            Names of columns, and the question to read.

        Returns
        -------
        VoteTable
            The rows of the file.
        """
        options = options or ReadOptions()
        with limit_unpacked(options.max_unpacked), convert_errors():
            votes = self.format.reader.read_votes(self.path, options)
            return votes.unify_spellings(options) if options.normalise else votes

    def read_votes(self, options: ReadOptions | None = None) -> Crowd:
        """Read and validate the votes.

        Parameters
        ----------
        options : ReadOptions, optional
            Names of columns, vocabularies and rules.

        Returns
        -------
        Crowd
            The votes.
        """
        return self.read_counted(options).crowd

    def read_counted(self, options: ReadOptions | None = None) -> ReadVotes:
        """Read and validate the votes, and count the rows that the rules of reading removed or changed.

        Parameters
        ----------
        options : ReadOptions, optional
            Names of columns, vocabularies and rules.

        Returns
        -------
        ReadVotes
            The votes and the counts.
        """
        options = options or ReadOptions()
        with limit_unpacked(options.max_unpacked), prefix_errors(self.path):
            if options.question is not None and not self.format.is_tool:
                raise UsageError(_refuse_question(self.format))
            votes = self.read_table(options)
            for note in (*votes.notes, *votes.replacements):
                log.info("%s: %s", self.name, note)
            crowd, counts = votes.to_counted_crowd(options)
            self._report_dropped(counts)
        classes_are_given = votes.classes is not None or options.classes is not None
        # Ids that the user lists, or that a dataset folder has, are meant to be different.
        ids_are_given = self.format.name == "folder"
        vocabularies = {
            "label": None if classes_are_given else crowd.classes,
            "task id": None if ids_are_given or options.tasks is not None else crowd.tasks,
            "worker id": None if ids_are_given or options.workers is not None else crowd.workers,
        }
        for sentence in describe_similar_ids(vocabularies):
            warnings.warn(
                f"{self.name}: {sentence}; if they mean the same, use normalise=True (--normalise); "
                f"see wisecrowd check {shlex.quote(self.name)}",
                DataWarning,
                stacklevel=4,
            )
        for finding in check_mistakes(crowd, votes, classes_listed=classes_are_given):
            if finding.severity == "warning":
                warnings.warn(f"{self.name}: {finding.message}. {finding.fix}", DataWarning, stacklevel=4)
        if crowd.classes is not None and not crowd.is_ordered and not classes_are_given:
            suspects = find_suspect_numbers(crowd.classes)
            if len(suspects):
                warnings.warn(
                    f"{self.name}: the labels are numbers, and each of the {len(suspects):,} is a class of its own "
                    f"({preview(suspects)}); if they measure something, use numeric=True (--numeric); if they are names, "
                    "list them as classes= (--classes)",
                    DataWarning,
                    stacklevel=4,
                )
            elif are_texts(crowd.classes, len(crowd.classes), crowd.n_votes):
                question = [] if options.question is None else ["--question", options.question]
                advice = shlex.join(["wisecrowd", "aggregate", self.name, *question, "-m", "rover"])
                if not self.format.is_tool:
                    advice = "rename the column of labels to text, and see docs/texts.md for the commands"
                warnings.warn(
                    f"{self.name}: the labels look like texts: {len(crowd.classes):,} of {crowd.n_votes:,} are different, and most "
                    f"have several words ({preview(crowd.classes)}), but each is a class of its own; if they are texts, such as "
                    f"captions: {advice}; if they are names of classes, list them as classes= (--classes)",
                    DataWarning,
                    stacklevel=4,
                )
        return ReadVotes(crowd, counts)

    def _report_dropped(self, counts: RowCounts) -> None:
        """Log how many rows the rules for missing values and repeated votes dropped, and warn if most are repeated votes."""
        if sentence := counts.describe_dropped():
            log.info("%s: %s", self.name, sentence)
        if counts.n_repeated > max(counts.n_complete / 2, MAX_REPEATED_ROWS):
            warnings.warn(
                f"{self.name}: {counts.n_repeated:,} of {counts.n_complete:,} rows were dropped because the same worker has "
                "another vote on the task; check that the columns of tasks and workers are right (--task, --worker), or see "
                f"wisecrowd check {shlex.quote(self.name)}",
                DataWarning,
                stacklevel=5,
            )

    def read_truth(
        self,
        *,
        task: str | None = None,
        truth: str | None = None,
        numeric: bool = False,
        question: str | None = None,
        match: Crowd | None = None,
        vote_names: VoteNames | None = None,
    ) -> pd.Series[Any]:
        """Read the truth.

        Parameters
        ----------
        task, truth : str, optional
            Names of columns.
        numeric : bool, default=False
            Read the truth as numbers.
        question : str, optional
            Question of a labelling tool's export.
        match : Crowd, optional
            Votes whose spelling of tasks and classes the truth takes.
        vote_names : VoteNames, optional
            Tasks and classes of the votes, by which columns are recognised whose names say nothing.

        Returns
        -------
        Series
            Truth by task.
        """
        if vote_names is None and match is not None:
            vote_names = VoteNames(match.tasks, match.classes)
        with prefix_errors(self.path):
            if vote_names is not None and question is None:
                task, truth = self._match_truth_columns(task, truth, vote_names)
            table = self._read_truth_table(task, truth, question)
            if table is None:
                raise InputError(self._describe_no_truth(question))
            true_labels = table["truth"] if match is None else _match_truth(table["truth"], match)
            return _parse_truth_numbers(true_labels) if numeric else true_labels

    def _match_truth_columns(
        self, task: str | None, truth: str | None, vote_names: VoteNames
    ) -> tuple[str | None, str | None]:
        """Return the columns of task and truth of a table; other sources have no columns."""
        reader = self.format.reader
        if reader.read_names is None or reader.read_columns is None:
            return task, truth
        columns = choose_truth_columns(
            reader.read_names(self.path), partial(reader.read_columns, self.path), vote_names, task=task, truth=truth
        )
        return columns["task"], columns["truth"]

    def _describe_no_truth(self, question: str | None) -> str:
        """Return an error about data without truth, or without truth of a question while others have it."""
        advice = "give a file with a task and a truth column"
        if question is None:
            return f"this {self.format.name} data holds no truth; {advice}"
        from wisecrowd.io.tools.question_votes import select_truth

        export = self.read_export()
        others = [name for name in export.questions if select_truth(export, name) is not None]
        known = f", only of {preview(others, 6)}" if others else ""
        return f"this {self.format.name} data holds no truth of the question {preview([question])}{known}; {advice}"

    def _read_truth_table(self, task: str | None, truth: str | None, question: str | None) -> TruthTable | None:
        if question is None:
            read = self.format.reader.read_truth
            return None if read is None else read(self.path, task, truth)
        from wisecrowd.io.tools.question_votes import select_truth

        return select_truth(self.read_export(), question)

    def read_export(self) -> ExportedAnswers:
        """Read all answers in the export of a labelling tool.

        Returns
        -------
        ExportedAnswers
            Answers by question.

        Raises
        ------
        UsageError
            If the format is not the export of a labelling tool.
        """
        read = self.format.reader.read_export
        if read is None:
            raise UsageError(_refuse_question(self.format))
        with convert_errors():
            export = read(self.path)
        export.issue_warnings(self.name)
        return export


#: A path, or a path whose format is known.
SourceLike: TypeAlias = str | os.PathLike[str] | VoteSource


def read(
    path: SourceLike,
    *,
    format: str | None = None,
    task: str | None = None,
    worker: str | Literal[False] | None = None,
    label: str | None = None,
    weight: str | None = None,
    time: str | Literal[False] | None = None,
    tasks: Vocabulary = None,
    workers: Vocabulary = None,
    classes: Vocabulary = None,
    numeric: bool = False,
    ordered: bool = False,
    duplicates: Duplicates = "error",
    missing: Missing = "error",
    normalise: bool = False,
    question: str | None = None,
    max_unpacked: int | str | None = None,
) -> Crowd:
    """Read votes from a file or folder.

    Parameters
    ----------
    path : path-like or VoteSource
        File or folder, ``"-"`` for standard input, or an address in remote storage such as ``"s3://bucket/votes.csv"`` (see
        :func:`wisecrowd.io.source_files.fetch_source`).
    format : str, optional
        Name of the format (see `wisecrowd.io.FORMATS`). Without it, content and file name decide.
    task, label, weight : str, optional
        Columns of a table. Without them, names that other tools use are recognised.
    worker : str or False, optional
        Column of worker ids. False reads votes without worker ids.
    time : str or False, optional
        Column of timestamps. False leaves the time out.
    tasks, workers, classes : sequence, optional
        Vocabularies in their order. They may contain ids without votes.
    numeric : bool, default=False
        Read labels as numbers.
    ordered : bool, default=False
        Read classes as ordered, such as the stars of a rating. Numbers are sorted by size; names need ``classes``, from lowest
        to highest.
    duplicates : {"error", "first", "last", "distinct", "keep"}, default="error"
        Rule for repeated votes of a worker on a task (see :meth:`wisecrowd.Crowd.from_frame`).
    missing : {"error", "drop"}, default="error"
        Rule for rows with an empty cell.
    normalise : bool, default=False
        Unify ids and labels that differ only by case, space, Unicode form, invisible characters or number form (``1`` and
        ``1.0``). All take the one in ``tasks``, ``workers`` or ``classes``, else the shortest form of a whole number or the most
        frequent spelling.
    question : str, optional
        Question to read from the export of a labelling tool (see :func:`wisecrowd.io.tools.projects.read_project` for
        reading all of them).
    max_unpacked : int or str, optional
        Size that a compressed file may unpack to, such as ``"16GB"``. By default, a file may unpack to 50 times its size and
        to a quarter of the free memory, so that a small hostile file cannot fill the memory.

    Returns
    -------
    Crowd
        The votes.

    Raises
    ------
    InputError
        If the file cannot be read or its votes are not valid.

    Examples
    --------
    >>> _ = Path("votes.csv").write_text("question,worker,answer\\n1,ann,cat\\n1,bob,dog\\n2,ann,cat\\n")
    >>> read("votes.csv")
    Crowd(3 votes: 2 tasks x 2 workers, 2 classes, 1.5 votes/task)
    """
    _check_is_path(path, "Convert a dataframe with Crowd.from_frame(df)")
    options = ReadOptions(
        task=task,
        worker=worker,
        label=label,
        weight=weight,
        time=time,
        tasks=tasks,
        workers=workers,
        classes=classes,
        numeric=numeric,
        ordered=ordered,
        duplicates=duplicates,
        missing=missing,
        normalise=normalise,
        question=question,
        max_unpacked=max_unpacked,
    )
    with limit_unpacked(max_unpacked):
        return VoteSource.detect(path, format).read_votes(options)


def read_truth(
    path: SourceLike,
    *,
    format: str | None = None,
    task: str | None = None,
    truth: str | None = None,
    numeric: bool = False,
    question: str | None = None,
    match: Crowd | None = None,
    max_unpacked: int | str | None = None,
) -> pd.Series[Any]:
    """Read the truth (gold labels) by task.

    Parameters
    ----------
    path : path-like or VoteSource
        Table with a task and a truth column, or any file or folder that holds the truth beside the votes. The truth of a
        labelling tool's export are the answers marked as correct.
    format : str, optional
        Name of the format. Without it, content and file name decide.
    task, truth : str, optional
        Columns of a table. Without them, names such as ``truth``, ``gold``, ``true_label`` and ``label`` are recognised.
    numeric : bool, default=False
        Read the truth as numbers.
    question : str, optional
        Question of a labelling tool's export.
    match : Crowd, optional
        Votes that were read with ``normalise=True``. Tasks and classes that differ from theirs only by case, space, Unicode
        form, invisible characters or number form take the spelling of the votes.
    max_unpacked : int or str, optional
        Size that a compressed file may unpack to, as for :func:`wisecrowd.read`.

    Returns
    -------
    Series
        Truth by task.

    Raises
    ------
    InputError
        If the file holds no truth, or several for one task.

    Examples
    --------
    >>> _ = Path("gold.csv").write_text("task,gold\\nt1,cat\\nt2,dog\\n")
    >>> read_truth("gold.csv").to_dict()
    {'t1': 'cat', 't2': 'dog'}
    """
    _check_is_path(path, "Pass truth in memory directly, as a Series by task")
    with limit_unpacked(max_unpacked):
        source = VoteSource.detect(path, format)
        return source.read_truth(task=task, truth=truth, numeric=numeric, question=question, match=match)


def write(crowd: Crowd, path: str | os.PathLike[str], *, format: str | None = None) -> None:
    """Write votes to a file or dataset folder. The file appears complete or not at all.

    A table holds votes only. A folder also keeps tasks without votes and classes without votes.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    path : path-like
        File to write. A path without a suffix becomes a dataset folder.
    format : str, optional
        Name of the format. Without it, the suffix decides.

    Raises
    ------
    UsageError
        If the suffix does not imply a format that wisecrowd writes.

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat")])
    >>> write(crowd, "votes.parquet")
    >>> read("votes.parquet") == crowd
    True
    """
    if not isinstance(crowd, Crowd):
        raise UsageError(
            f"only a Crowd can be written; got {type(crowd).__name__}. Save a fitted method with its own save(path)"
        )
    target = Path(path)
    check_file_name(target)
    writable = [entry for entry in FORMATS.values() if entry.is_writable]
    if format is not None:
        chosen = find_format(target, format)
    else:
        by_name = [entry for entry in writable if entry.matches_name(target)]
        if target.suffix and not by_name:
            raise UsageError(
                f"the name of {target} does not imply a format; end it in .csv, .tsv, .jsonl or .parquet, or name the format: "
                'format="csv" (--format csv)'
            )
        chosen = by_name[0] if by_name else FORMATS["folder"]
    write_votes = chosen.reader.write_votes
    if write_votes is None:
        names = ", ".join(entry.name for entry in writable)
        raise UsageError(
            f'wisecrowd can read the format {chosen.name} but not write it; choose another, format="csv" (--format csv). '
            f"Formats that can be written are {names}"
        )
    write_votes(crowd, target)


def _refuse_question(format: Format) -> str:
    return f"question= (--question) applies to exports of labelling tools only; this is {format.description}"


def _match_truth(truth: pd.Series[Any], crowd: Crowd) -> pd.Series[Any]:
    """Return the truth in the spelling of a crowd."""
    values = pd.Index(truth)
    if crowd.classes is not None:
        values = match_spellings(values, crowd.classes)
    frame = pd.DataFrame({"task": match_spellings(truth.index, crowd.tasks), "truth": values}).drop_duplicates()
    repeated = frame["task"].duplicated()
    if repeated.any():
        raise InputError(
            f"spellings of the same task have more than one truth, for example {preview(frame['task'][repeated].unique())}; "
            "keep one for each"
        )
    return frame.set_index("task")["truth"]


def _parse_truth_numbers(truth: pd.Series[Any]) -> pd.Series[Any]:
    values = pd.to_numeric(truth, errors="coerce").astype(float)
    invalid = truth[values.isna()]
    if len(invalid):
        raise InputError(
            f"the truth must be numbers; got {preview(invalid[:1])} for the task {preview(invalid.index[:1])}"
        )
    return values


def _check_is_path(path: object, advice: str) -> None:
    if not isinstance(path, str | os.PathLike | VoteSource):
        raise UsageError(f"expected the path of a file or folder; got {type(path).__name__}. {advice}")
