"""``wisecrowd datasets``: published crowds, here or to be downloaded."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from wisecrowd.cli._console import shortened, show, show_facts, table

app = typer.Typer(no_args_is_help=False)

Name = Annotated[str, typer.Argument(metavar="NAME", show_default=False, help="A name from: wisecrowd datasets")]


@app.callback(invoke_without_command=True)
def datasets(context: typer.Context) -> None:
    """List the datasets that can be used by name; fetch one, or show what is in it.

    Datasets are folders in the folders that the variable WISECROWD_DATA lists, or were downloaded:

      wisecrowd datasets
      wisecrowd datasets fetch labelme
      wisecrowd datasets show labelme
      wisecrowd aggregate labelme --score labelme

    A dataset's name can stand wherever a command takes votes or truth.
    """
    if context.invoked_subcommand is None:
        _list()


@app.command()
def fetch(name: Name) -> None:
    """Download a dataset from where its authors published it, check it, and keep it.

    Example:

      wisecrowd datasets fetch labelme

    Once it is there, its name is enough: wisecrowd check labelme
    """
    from wisecrowd.io.datasets import fetch_dataset

    _check_known(name)
    fetched = fetch_dataset(name)
    show_facts([("Fetched", repr(fetched)), ("Where", str(fetched.folder))])


@app.command(name="show")
def show_one(name: Name) -> None:
    """Show what a dataset holds, where it comes from, and whom to cite.

    Example:

      wisecrowd datasets show labelme

    All its parts in Python: wisecrowd.load_dataset("labelme")
    """
    from pathlib import Path

    from wisecrowd.cli._reading import located
    from wisecrowd.cli._summary import size
    from wisecrowd.io.datasets import load_dataset
    from wisecrowd.utils.text import count_noun

    where = located(Path(name))
    if not where.exists():
        _check_known(name)
    found = load_dataset(where)
    rows = [("Name", found.name), ("Votes", size(found.crowd))]
    if found.crowd.classes is not None:
        rows.append(("Classes", ", ".join(map(shortened, found.meta.get("class_names", found.crowd.classes)))))
    if found.truth is not None:
        rows.append(("Truth", count_noun(len(found.truth), "task")))
    if found.splits is not None:
        rows.append(("Splits", ", ".join(f"{split} {n:,}" for split, n in found.splits.value_counts().items())))
    if found.features is not None:
        rows.append(
            (
                "Features",
                f"{count_noun(found.features.shape[1], 'number')} for each of {count_noun(len(found.features), 'task')}",
            )
        )
    if found.texts is not None:
        rows.append(("Texts", count_noun(len(found.texts), "task")))
    for key in ("source", "citation", "licence"):
        if found.meta.get(key):
            rows.append((key.capitalize(), _plain(found.meta[key])))
    show_facts([*rows, ("Where", str(found.folder))])


def _check_known(name: str) -> None:
    """Refuse a name that no dataset has, whatever was to be done with it."""
    from wisecrowd.errors import InputError, did_you_mean
    from wisecrowd.io.datasets import list_datasets

    known = list_datasets().index
    if name not in known:
        raise InputError(
            f"there is no dataset {name!r}; wisecrowd datasets lists those there are, and the variable WISECROWD_DATA "
            f"names the folders to look in.{did_you_mean(name, known)}"
        )


def _list() -> None:
    from wisecrowd.io.datasets import list_datasets

    known = list_datasets()
    columns = ["tasks", "workers", "labels", "classes", "gold"]
    rows = [
        (name, *("" if count is None else f"{count:,}" for count in counts))
        for name, *counts in known[columns].astype(object).where(known[columns].notna(), None).itertuples()
    ]
    show(table(["name", *columns], rows))
    absent = known.index[~known["downloaded"].astype(bool)]
    show()
    if len(absent):
        show(f"To be downloaded first: {', '.join(absent)}. For example: wisecrowd datasets fetch {absent[0]}")
    show("More about one of them: wisecrowd datasets show NAME")


def _plain(value: Any) -> str:
    """What a dataset tells about itself may have parts; their values say enough."""
    if isinstance(value, dict):
        return ", ".join(map(_plain, value.values()))
    return "; ".join(map(_plain, value)) if isinstance(value, list) else str(value)
