"""Protection against texts that a spreadsheet would run as formulas."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from wisecrowd.cli._console import warn

if TYPE_CHECKING:
    import pyarrow as pa

#: Beginning of a formula, including full-width signs and a leading tab or line end. A sign alone is an ordinary label.
_BEGINS = r"[=+\-@\t\r\n＝＋－＠](?s:.)"
#: Numbers begin like a formula but are harmless.
_NUMBER = r"\A[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\z"


class Guard:
    """Filter for texts in CSV and TSV files that counts formulas or, if ``on``, prefixes them with an apostrophe.

    A formula that already has apostrophes gets one more, so that removing one restores every text.
    """

    def __init__(self, *, on: bool) -> None:
        self.on = on
        self._n_formulas: dict[str, int] = {}
        self._examples: dict[str, None] = {}

    def table(self, table: pa.Table, name: str) -> pa.Table:
        """Return a table, with its column names, as it is written to the file ``name``.

        Parameters
        ----------
        table : Table
            Table.
        name : str
            Name of the file.

        Returns
        -------
        Table
        """
        import pyarrow as pa

        columns = [self.texts(column, name) for column in table.columns]
        names = self.texts(pa.chunked_array([table.column_names], pa.string()), name).to_pylist()
        return pa.table(columns, names=names)

    def texts(self, column: Any, name: str) -> Any:
        """Return an Arrow array as it is written to the file ``name``; only texts change.

        Parameters
        ----------
        column : object
            Arrow array.
        name : str
            Name of the file.

        Returns
        -------
        object
        """
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
            self._n_formulas[name] = self._n_formulas.get(name, 0) + n
            self._examples |= dict.fromkeys(column.filter(risky)[:4].to_pylist())
        return column

    def warn(self) -> None:
        """Warn once about texts that a spreadsheet would run as formulas."""
        from wisecrowd.errors import preview
        from wisecrowd.utils.text import count_noun

        if self._n_formulas:
            n_texts = sum(self._n_formulas.values())
            warn(
                f"{count_noun(n_texts, 'text')} in {', '.join(sorted(self._n_formulas))} "
                f"{'looks like a spreadsheet formula' if n_texts == 1 else 'look like spreadsheet formulas'} "
                f"({preview(self._examples)}); add --spreadsheet to write files that are safe to open in a spreadsheet"
            )


def unguarded(text: Any) -> Any:
    """Return the original of a text that a `Guard` changed."""
    return text[1:] if isinstance(text, str) and re.match(rf"'+{_BEGINS}", text) else text


def _may_run(column: Any) -> Any:
    import pyarrow.compute as pc

    begins = pc.match_substring_regex(column, rf"\A{_BEGINS}")
    return pc.and_kleene(begins, pc.invert(pc.match_substring_regex(column, _NUMBER)))
