"""Griffe extension that fences doctests, because Markdown reads ``>>>`` as a nested quotation."""

from __future__ import annotations

import re
from typing import Any

import griffe

# A doctest ends at the next empty line.
EXAMPLE = re.compile(r"^( *)>>> .*(?:\n(?! *$).*)*", re.MULTILINE)


class DoctestFences(griffe.Extension):
    """Extension that fences every doctest before the docstring is rendered."""

    def on_instance(self, *, obj: griffe.Object | griffe.Alias, **_: Any) -> None:
        """Rewrite the docstring of one module, class, function or attribute."""
        if obj.docstring:
            # The numpydoc parser renders the section Examples itself.
            before, heading, examples = obj.docstring.value.partition("\nExamples\n---")
            obj.docstring.value = EXAMPLE.sub(r"\1```pycon\n\g<0>\n\1```", before) + heading + examples
