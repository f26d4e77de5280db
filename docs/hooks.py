"""Generated pages: the API reference, one page per public module, and the benchmark results.

The figures of the gallery are drawn by the code on its page.
"""

from __future__ import annotations

import pkgutil
from pathlib import Path

import pictures
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import wisecrowd

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
GALLERY = "gallery.md"


def _modules() -> list[str]:
    modules = pkgutil.walk_packages(wisecrowd.__path__, "wisecrowd.")
    return ["wisecrowd", *sorted(module.name for module in modules if "._" not in module.name)]


def _pages() -> dict[str, dict[str, str]]:
    """Return the text of generated pages by section and path; mkdocstrings renders the docstrings."""
    return {
        "Benchmarks": {f"benchmarks/{path.name}": path.read_text("utf-8") for path in sorted(RESULTS.glob("*.md"))},
        "API": {f"api/{module}.md": f"# {module}\n\n::: {module}\n" for module in _modules()},
    }


def on_config(config: MkDocsConfig) -> None:
    """Append the generated pages to the navigation."""
    config.nav = [*(config.nav or []), *({section: list(pages)} for section, pages in _pages().items() if pages)]


def on_files(files: Files, *, config: MkDocsConfig) -> None:
    """Add the generated pages and the figures of the gallery."""
    for pages in _pages().values():
        for address, text in pages.items():
            files.append(File.generated(config, address, content=text))
    for address, picture in _pictures(config).items():
        files.append(File.generated(config, address, content=picture))


def on_page_markdown(markdown: str, *, page: Page, files: Files, **_: object) -> str:
    """Insert the figures of the gallery below their code."""
    if page.file.src_uri != GALLERY:
        return markdown
    drawn = {block.name for block in pictures.blocks(markdown) if files.get_file_from_path(_first(block.name))}
    return pictures.illustrated(markdown, drawn)


def _pictures(config: MkDocsConfig) -> dict[str, str]:
    import matplotlib

    matplotlib.use("agg")  # do not open windows
    page = (Path(config.docs_dir) / GALLERY).read_text("utf-8")
    return {
        pictures.address(name, theme): picture
        for theme in pictures.THEMES
        for name, picture in pictures.run(page, theme).items()
    }


def _first(name: str) -> str:
    return pictures.address(name, pictures.THEMES[0])
