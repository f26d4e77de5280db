"""Texts that a spreadsheet would take for formulas, and run: kept exact unless somebody asks for harmless ones."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from wisecrowd.cli._console import warn

if TYPE_CHECKING:
    import pyarrow as pa

#: How a formula begins: also after a tab or a line end, and in the wide letters of East Asian keyboards. A sign that nothing
#: follows is a label like any other.
_BEGINS = r"[=+\-@\t\r\n＝＋－＠](?s:.)"
#: What begins like a formula but is a number, which a spreadsheet shows as it is.
_NUMBER = r"\A[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\z"


class Guard:
    """Looks at every text that goes into a file of separated values; ``on`` puts an apostrophe before the dangerous ones.

    One that stands behind an apostrophe already gets another, so that taking one away from each gives back what was there.
    """

    def __init__(self, *, on: bool) -> None:
        self.on = on
        self._found: dict[str, int] = {}
        self._examples: dict[str, None] = {}

    def table(self, table: pa.Table, name: str) -> pa.Table:
        """The table as it is to be written to the file ``name``, with its column names."""
        import pyarrow as pa

        columns = [self.texts(column, name) for column in table.columns]
        names = self.texts(pa.chunked_array([table.column_names], pa.string()), name).to_pylist()
        return pa.table(columns, names=names)

    def texts(self, column: Any, name: str) -> Any:
        """An Arrow array as it is to be written to the file ``name``; what is no text is what it is."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            return column
        risky = _may_run(column)
        if self.on:
            quoted = pc.or_kleene(risky, pc.match_substring_regex(column, rf"\A'+{_BEGINS}"))
            apostrophe, nothing = (pa.scalar(text, column.type) for text in ("'", ""))
            return pc.if_else(quoted, pc.binary_join_element_wise(apostrophe, column, nothing), column)
        if n := pc.sum(risky).as_py():
            self._found[name] = self._found.get(name, 0) + n
            self._examples |= dict.fromkeys(column.filter(risky)[:4].to_pylist())
        return column

    def warn(self) -> None:
        """Say once what a spreadsheet would run, if there is anything."""
        from wisecrowd.errors import some
        from wisecrowd.utils.text import count_noun

        if self._found:
            warn(
                f"{count_noun(sum(self._found.values()), 'text')} in {', '.join(sorted(self._found))} "
                f"may be run as formulas by a spreadsheet ({some(self._examples)}); for files that are safe to open in one, "
                "add --spreadsheet, which puts an apostrophe before each"
            )


def unguarded(text: Any) -> Any:
    """What was there before a guard that is on saw it; see `Guard`."""
    return text[1:] if isinstance(text, str) and re.match(rf"'+{_BEGINS}", text) else text


def _may_run(column: Any) -> Any:
    import pyarrow.compute as pc

    begins = pc.match_substring_regex(column, rf"\A{_BEGINS}")
    return pc.and_kleene(begins, pc.invert(pc.match_substring_regex(column, _NUMBER)))
