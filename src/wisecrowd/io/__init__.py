"""Reading and writing of votes in files. Each format has its own module, which is imported when it is needed."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

#: Public name -> module below `wisecrowd.io` that defines it.
_HOME = {
    "FORMATS": "formats",
    "Format": "formats",
    "Project": "tools.projects",
    "Question": "tools.projects",
    "ReadOptions": "vote_table",
    "VoteSource": "vote_source",
    "find_format": "formats",
    "read": "vote_source",
    "read_project": "tools.projects",
    "read_truth": "vote_source",
    "write": "vote_source",
}
__all__ = [
    "FORMATS", "Format", "Project", "Question", "ReadOptions", "VoteSource", "find_format", "read", "read_project", "read_truth",
    "write",
]  # fmt: skip

if TYPE_CHECKING:
    from wisecrowd.io.formats import FORMATS as FORMATS
    from wisecrowd.io.formats import Format as Format
    from wisecrowd.io.formats import find_format as find_format
    from wisecrowd.io.tools.projects import Project as Project
    from wisecrowd.io.tools.projects import Question as Question
    from wisecrowd.io.tools.projects import read_project as read_project
    from wisecrowd.io.vote_source import VoteSource as VoteSource
    from wisecrowd.io.vote_source import read as read
    from wisecrowd.io.vote_source import read_truth as read_truth
    from wisecrowd.io.vote_source import write as write
    from wisecrowd.io.vote_table import ReadOptions as ReadOptions


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'wisecrowd.io' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"wisecrowd.io.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
