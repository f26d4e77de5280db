"""Options ``--texts``, ``--images`` and ``--encoder``: features from the contents of tasks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import pandas as pd

    from wisecrowd.data.crowd import Crowd
    from wisecrowd.encoders.feature_encoder import FeatureEncoder
    from wisecrowd.io.features import Features

TextsFile = Annotated[
    Path | None,
    typer.Option(
        "--texts",
        metavar="FILE",
        show_default=False,
        help="Texts of the tasks, in a table with the columns task and text; their words are the features.",
    ),
]
ImagesFolder = Annotated[
    Path | None,
    typer.Option(
        "--images",
        metavar="FOLDER",
        show_default=False,
        help="Images of the tasks, called by task id, or a table with the columns task and image; their colours and edges "
        "are the features.",
    ),
]
TextColumn = Annotated[
    str | None,
    typer.Option("--text-column", metavar="NAME", show_default=False, help="Column of the texts in --texts."),
]
EncoderName = Annotated[
    str | None,
    typer.Option(
        "--encoder",
        metavar="NAME",
        show_default=False,
        help="Pretrained encoder of the texts (sentence-transformers, transformers) or images (timm, torchvision): a model "
        "or folder on this machine. Nothing is downloaded.",
    ),
]


@dataclass(frozen=True)
class TaskContents:
    """Texts or paths of images, by task.

    Attributes
    ----------
    values : Series
        Text or path by task.
    content : {"text", "image"}
        Type of the values.
    """

    values: pd.Series
    content: str

    @property
    def ids(self) -> pd.Index:
        """Task ids."""
        return self.values.index

    def fit_encoder(self, crowd: Crowd, name: str | None) -> FeatureEncoder:
        """Return an encoder that is fitted to the tasks with votes.

        Parameters
        ----------
        crowd : Crowd
            Votes.
        name : str or None
            Name of a pretrained encoder; None for the default.

        Returns
        -------
        FeatureEncoder
        """
        from wisecrowd.data.vocabulary import match_id_type
        from wisecrowd.encoders.image_encoder import ImageEncoder
        from wisecrowd.encoders.pretrained_encoder import PretrainedEncoder
        from wisecrowd.encoders.text_encoder import TextEncoder
        from wisecrowd.errors import InputError, preview

        if name is not None:
            return PretrainedEncoder(name, "text" if self.content == "text" else "image")
        positions = self.values.index.get_indexer(match_id_type(crowd.tasks, self.values.index))
        absent = crowd.tasks[positions < 0]
        if len(absent):
            rest = (
                ""
                if len(absent) == crowd.n_tasks
                else ", or leave out the votes on these tasks: --features-missing drop"
            )
            raise InputError(
                f"no {self.content} for {len(absent):,} tasks, for example {preview(absent)}; there are {self.content}s of "
                f"{preview(self.values.index)}. Compare the ids in both{rest}"
            )
        training = self.values.iloc[positions]
        return TextEncoder().fit(training) if self.content == "text" else ImageEncoder().fit(training)

    def encode(self, encoder: FeatureEncoder) -> Features:
        """Return the features of all tasks.

        Parameters
        ----------
        encoder : FeatureEncoder
            Fitted encoder.

        Returns
        -------
        Features
        """
        from wisecrowd.io.features import Features

        return Features(self.values.index, encoder.transform(self.values))


def read_contents(
    texts: Path | None, images: Path | None, *, task: str | None, column: str | None, match: Crowd | None = None
) -> TaskContents:
    """Read texts, or the paths of images.

    Parameters
    ----------
    texts, images : Path or None
        One of the two options.
    task : str or None
        Column of task ids; a table without it is read by the usual names.
    column : str or None
        Column of texts.
    match : Crowd, optional
        Votes whose spelling of task ids is used.

    Returns
    -------
    TaskContents
    """
    from wisecrowd.cli._reading import resolve_path
    from wisecrowd.errors import InputError, preview
    from wisecrowd.io.problems import MissingColumn
    from wisecrowd.io.tables.spellings import match_spellings
    from wisecrowd.report.images import read_images
    from wisecrowd.report.texts import read_texts

    def read(task_column: str | None) -> pd.Series:
        if texts is not None:
            return read_texts(resolve_path(texts), task=task_column, text=column)
        assert images is not None
        return read_images(images, task=task_column)

    try:
        values = read(task)
    except MissingColumn:
        if task is None:
            raise
        values = read(None)
    if match is not None:
        values = values.set_axis(match_spellings(values.index, match.tasks))
    if not values.index.is_unique:
        repeated = values.index[values.index.duplicated()].unique()
        raise InputError(f"{texts or images}: several rows for {preview(repeated)}; keep one per task")
    return TaskContents(values, "text" if texts is not None else "image")


def check_sources(
    features: Path | None, texts: Path | None, images: Path | None, encoder: str | None, column: str | None
) -> None:
    """Raise an error if options about features contradict each other.

    Parameters
    ----------
    features, texts, images : Path or None
        Options of which at most one may be given.
    encoder : str or None
        Option ``--encoder``, which needs texts or images.
    column : str or None
        Option ``--text-column``, which needs texts.
    """
    from wisecrowd.errors import UsageError

    options = {"features": features, "--texts": texts, "--images": images}
    named = [name for name, value in options.items() if value is not None]
    if len(named) > 1:
        raise UsageError(f"{' and '.join(named)} exclude each other; choose one source of features")
    if encoder is not None and texts is None and images is None:
        raise UsageError("--encoder needs the contents of the tasks; add --texts FILE or --images FOLDER")
    if column is not None and texts is None:
        raise UsageError("--text-column names a column of --texts; add --texts FILE")
