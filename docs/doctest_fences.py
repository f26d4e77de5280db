"""Show the examples of docstrings as code: Markdown would take ``>>>`` for a quotation of a quotation."""

from __future__ import annotations

import re
from typing import Any

import griffe

# An example runs from its first prompt to the next empty line, as doctest reads it.
EXAMPLE = re.compile(r"^( *)>>> .*(?:\n(?! *$).*)*", re.MULTILINE)


class DoctestFences(griffe.Extension):
    """Put a fence around every example before the docstring is rendered."""

    def on_instance(self, *, obj: griffe.Object | griffe.Alias, **_: Any) -> None:
        """Rewrite the docstring of one module, class, function or attribute."""
        if obj.docstring:
            obj.docstring.value = EXAMPLE.sub(r"\1```pycon\n\g<0>\n\1```", obj.docstring.value)
