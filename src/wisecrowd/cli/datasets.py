"""``wisecrowd datasets``: list, download and show published datasets."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from wisecrowd.cli._console import shorten_id, show, show_facts, table

app = typer.Typer(no_args_is_help=False)

Name = Annotated[str, typer.Argument(metavar="NAME", show_default=False, help="Name from wisecrowd datasets.")]


@app.callback(invoke_without_command=True)
def datasets(context: typer.Context) -> None:
    """List, download and show datasets that can be used by name.

    Download a dataset with fetch. For datasets that you have already, one folder
    each, set the variable WISECROWD_DATA to the folder that contains them.

      wisecrowd datasets
      wisecrowd datasets fetch labelme
      wisecrowd datasets show labelme
      wisecrowd aggregate labelme --score labelme

    Every command that takes votes or truth accepts the name of a dataset.
    """
    if context.invoked_subcommand is None:
        _list()


@app.command()
def fetch(name: Name) -> None:
    """Download a dataset from its authors' site and verify it.

    Example:

      wisecrowd datasets fetch labelme

    Then use it by name: wisecrowd check labelme
    """
    from wisecrowd.io.datasets import fetch_dataset

    _check_known(name)
    fetched = fetch_dataset(name)
    show_facts([("Fetched", repr(fetched)), ("Where", str(fetched.folder))])


@app.command(name="show")
def show_one(name: Name) -> None:
    """Show the content, source and citation of a dataset.

    Example:

      wisecrowd datasets show labelme

    In Python: wisecrowd.load_dataset("labelme")
    """
    from pathlib import Path

    from wisecrowd.cli._reading import resolve_path
    from wisecrowd.cli._summary import describe_crowd
    from wisecrowd.io.datasets import load_dataset
    from wisecrowd.utils.text import count_noun

    where = resolve_path(Path(name))
    if not where.exists():
        _check_known(name)
    dataset = load_dataset(where)
    rows = [("Name", dataset.name), ("Votes", describe_crowd(dataset.crowd))]
    if dataset.crowd.classes is not None:
        rows.append(("Classes", ", ".join(map(shorten_id, dataset.meta.get("class_names", dataset.crowd.classes)))))
    if dataset.truth is not None:
        rows.append(("Truth", count_noun(len(dataset.truth), "task")))
    if dataset.splits is not None:
        rows.append(("Splits", ", ".join(f"{split} {n:,}" for split, n in dataset.splits.value_counts().items())))
    if dataset.features is not None:
        rows.append(
            (
                "Features",
                f"{count_noun(dataset.features.shape[1], 'number')} for each of {count_noun(len(dataset.features), 'task')}",
            )
        )
    if dataset.texts is not None:
        rows.append(("Texts", count_noun(len(dataset.texts), "task")))
    for key in ("source", "citation", "licence"):
        if dataset.meta.get(key):
            rows.append((key.capitalize(), _plain(dataset.meta[key])))
    show_facts([*rows, ("Where", str(dataset.folder))])


def _check_known(name: str) -> None:
    """Raise an error if no dataset has this name."""
    from wisecrowd.errors import InputError, suggest_name
    from wisecrowd.io.datasets import list_datasets

    dataset_names = list_datasets().index
    if name not in dataset_names:
        raise InputError(
            f"no dataset is called {name!r}. wisecrowd datasets lists all; the variable WISECROWD_DATA names the folders to "
            f"search.{suggest_name(name, dataset_names)}"
        )


def _list() -> None:
    from wisecrowd.io.datasets import list_datasets

    dataset_names = list_datasets()
    columns = ["tasks", "workers", "votes", "classes", "gold"]
    rows = [
        (name, *("" if count is None else f"{count:,}" for count in counts))
        for name, *counts in dataset_names[columns]
        .astype(object)
        .where(dataset_names[columns].notna(), None)
        .itertuples()
    ]
    show(table(["name", *columns], rows))
    absent = dataset_names.index[~dataset_names["downloaded"].astype(bool)]
    show()
    if len(absent):
        show(f"Not downloaded: {', '.join(absent)}. Download one with: wisecrowd datasets fetch {absent[0]}")
    show("Details: wisecrowd datasets show NAME")


def _plain(value: Any) -> str:
    """Return metadata of a dataset as text; of nested metadata, the values."""
    if isinstance(value, dict):
        return ", ".join(map(_plain, value.values()))
    return "; ".join(map(_plain, value)) if isinstance(value, list) else str(value)
