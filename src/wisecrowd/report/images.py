"""Images of tasks, read from a folder or a table of paths."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd

from wisecrowd.errors import InputError, preview
from wisecrowd.report.task_media import read_task_column

#: Accepted names of the column with paths, in order of preference.
PATH_COLUMNS = ("image", "path", "file", "image_path", "file_path", "filename", "file_name")
#: Suffixes of files in a folder that may be images. The first bytes of a file decide whether it is one.
SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp")


def read_images(path: str | os.PathLike[str], *, task: str | None = None, image: str | None = None) -> pd.Series:
    """Return the path of the image of each task.

    The name of a file in a folder is the task id, with or without its suffix. Paths in a table are relative to the folder of
    the table and must stay inside it: a table from somebody else must not put private images on a page that is passed on. No
    image is read, and the files need not exist.

    Parameters
    ----------
    path : path-like
        Folder of images, or table with the columns task and image.
    task : str, default=None
        Name of the column with task ids.
    image : str, default=None
        Name of the column with paths.

    Returns
    -------
    Series
        Path by task.

    Raises
    ------
    InputError
        If there are no images, or a path leads out of the folder of the table.

    Examples
    --------
    >>> _ = Path("tasks.csv").write_text("task,image\\nt1,photos/cat.jpg\\n")
    >>> read_images("tasks.csv").map(lambda path: path.name).to_dict()
    {'t1': 'cat.jpg'}
    """
    source = Path(path)
    if source.is_dir():
        return _read_folder(source)
    names = read_task_column(source, "image", PATH_COLUMNS, task=task, column=image).dropna()
    folder = os.path.abspath(source.parent)
    # Links are followed because they belong to the user; only the text of the table is checked.
    paths = names.map(lambda name: Path(os.path.abspath(os.path.join(folder, str(name)))))
    outside = names[[not file.is_relative_to(folder) for file in paths]]
    if len(outside):
        raise InputError(
            f"{source}: paths of images must stay inside the folder of the table; got {preview(outside)}. "
            "Put the table beside or above the images, and write paths relative to it"
        )
    return paths


def _read_folder(folder: Path) -> pd.Series:
    files = sorted(
        file for file in folder.iterdir() if file.suffix.lower() in SUFFIXES and not file.name.startswith(".")
    )
    if not files:
        raise InputError(
            f"{folder}: no file ends in {', '.join(SUFFIXES)}. Convert the images to one of these formats; SVG can contain "
            "scripts and is never shown"
        )
    by_stem = pd.Series(files, index=pd.Index([file.stem for file in files], name="task"), dtype=object, name="image")
    # With t1.png and t1.jpg, the id t1 is ambiguous, but both full names are not.
    unique_stems = by_stem[~by_stem.index.duplicated(keep=False)]
    by_name = pd.Series(files, index=[file.name for file in files], dtype=object)
    paths = pd.concat([unique_stems, by_name])
    return paths[~paths.index.duplicated()].rename("image").rename_axis("task")
