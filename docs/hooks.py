"""Pages that nobody has to remember to write: the API, one for each public module, and the published measurements."""

from __future__ import annotations

import pkgutil
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

import wisecrowd

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"


def _modules() -> list[str]:
    found = pkgutil.walk_packages(wisecrowd.__path__, "wisecrowd.")
    return ["wisecrowd", *sorted(module.name for module in found if "._" not in module.name)]


def _pages() -> dict[str, dict[str, str]]:
    """Section -> address -> text; mkdocstrings fills the pages of modules from their docstrings."""
    return {
        "Benchmarks": {f"benchmarks/{path.name}": path.read_text("utf-8") for path in sorted(RESULTS.glob("*.md"))},
        "API": {f"api/{module}.md": f"# {module}\n\n::: {module}\n" for module in _modules()},
    }


def on_config(config: MkDocsConfig) -> None:
    """Put the pages into the navigation, after those that people wrote."""
    config.nav = [*(config.nav or []), *({section: list(pages)} for section, pages in _pages().items() if pages)]


def on_files(files: Files, *, config: MkDocsConfig) -> None:
    """Add the pages themselves."""
    for pages in _pages().values():
        for address, text in pages.items():
            files.append(File.generated(config, address, content=text))
