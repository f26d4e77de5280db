"""Images of tasks in files, for people to see beside the votes."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd

from wisecrowd.errors import InputError, some
from wisecrowd.report.task_media import read_column

#: What the column with the paths may be called, in order of preference.
NAMES = ("image", "path", "file", "image_path", "file_path", "filename", "file_name")
#: How files in a folder end that are looked at. What they are, their first bytes tell.
SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp")


def read_images(path: str | os.PathLike[str], *, task: str | None = None, image: str | None = None) -> pd.Series:
    """Where the image of each task is: by the names of the files in a folder, or by a table with tasks and paths.

    Files in a folder are called as the tasks are, with or without their suffix. Paths in a table begin at the table's own
    folder, and none may lead out of it: whoever sends you a table could otherwise have images of yours put on a page that you
    pass on. Nothing is read yet, and files need not exist.

    >>> _ = Path("tasks.csv").write_text("task,image\\nt1,photos/cat.jpg\\n")
    >>> read_images("tasks.csv").map(lambda path: path.name).to_dict()
    {'t1': 'cat.jpg'}
    """
    place = Path(path)
    if place.is_dir():
        return _of_folder(place)
    found = read_column(place, "image", NAMES, task=task, column=image).dropna()
    home = os.path.abspath(place.parent)
    # Links are followed, as everywhere: they are the user's own. What a table says is checked as it is written.
    paths = found.map(lambda name: Path(os.path.abspath(os.path.join(home, str(name)))))
    outside = found[[not one.is_relative_to(home) for one in paths]]
    if len(outside):
        raise InputError(
            f"{place}: images are only read from the folder of the table and below it; this leads out of it: {some(outside)}. "
            "Put the table beside the images or above them, and write paths from there"
        )
    return paths


def _of_folder(place: Path) -> pd.Series:
    files = sorted(
        file for file in place.iterdir() if file.suffix.lower() in SUFFIXES and not file.name.startswith(".")
    )
    if not files:
        raise InputError(
            f"{place}: no file here ends in {', '.join(SUFFIXES)}. Other kinds are not shown; SVG never is, as it can run scripts"
        )
    by_stem = pd.Series(files, index=pd.Index([file.stem for file in files], name="task"), dtype=object, name="image")
    twice = by_stem[by_stem.index.duplicated(keep=False)]
    # t1.png and t1.jpg: a task may be called either way, but t1 itself is not clear.
    by_name = pd.Series(files, index=[file.name for file in files], dtype=object)
    both = pd.concat([by_stem[~by_stem.index.isin(twice.index)], by_name])
    return both[~both.index.duplicated()].rename("image").rename_axis("task")
