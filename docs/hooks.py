"""Write the API reference while the site is built: a page for each public module, so that none is forgotten."""

from __future__ import annotations

import pkgutil

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import wisecrowd


def _modules() -> list[str]:
    found = pkgutil.walk_packages(wisecrowd.__path__, "wisecrowd.")
    return ["wisecrowd", *sorted(module.name for module in found if "._" not in module.name)]


def on_config(config: MkDocsConfig) -> None:
    """Put the pages into the navigation, after those that people wrote."""
    pages = [{module: f"api/{module}.md"} for module in _modules()]
    config.nav = [*(config.nav or []), {"API": pages}]


def on_files(files: Files, *, config: MkDocsConfig) -> None:
    """Add the pages themselves; mkdocstrings fills them from the docstrings."""
    for module in _modules():
        files.append(File.generated(config, f"api/{module}.md", content=f"# {module}\n\n::: {module}\n"))
