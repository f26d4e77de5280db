from __future__ import annotations

import csv
import gzip
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import wisecrowd as wc
from wisecrowd.errors import InputError
from wisecrowd.io.tables import csv_records as records


def opened_on(text: str, separator: str) -> int | None:
    """The line of the quotation mark that is never closed, found letter by letter."""
    state, line, began = "start", 1, None
    for letter in text:
        if state == "quoted":
            state = "closing" if letter == '"' else "quoted"
        elif state == "closing" and letter == '"':
            state = "quoted"
        elif letter in ("\n", separator):
            state = "start"
        elif state == "start" and letter == '"':
            state, began = "quoted", line
        else:
            state = "plain"
        line += letter == "\n"
    return began if state == "quoted" else None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(text=st.text(alphabet='a",;\n', min_size=1, max_size=14), chunk=st.sampled_from([1, 2, 3, 1 << 24]))
def test_exactly_the_open_quotes_are_refused(tmp_path: Path, text: str, chunk: int) -> None:
    path = tmp_path / "v.csv"
    path.write_text(text)
    line = opened_on(text, ",")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "_CHUNK_BYTES", chunk)
        if line is None:
            records.check_quotes_closed(path, ",")
        else:
            with pytest.raises(InputError, match=f"on line {line} is never closed"):
                records.check_quotes_closed(path, ",")


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_the_line_of_the_open_quote_is_told(tmp_path: Path, mark: str, end: str) -> None:
    content = mark + end.join(['"task",worker,label', '1,ann,"cat ""x"""', '1,bob,"dog', "2,ann,cat", "2,bob,dog", ""])
    path = tmp_path / "votes.csv.gz"
    path.write_bytes(gzip.compress(content.encode()))
    with pytest.raises(InputError, match=r"votes\.csv\.gz: the quotation mark on line 3 is never closed"):
        wc.read(path)
    with pytest.raises(InputError, match="line 3 is never closed"):
        wc.read_truth(path)


def test_lines_of_records(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_text('\n\na,b\n1,"x\n\ny"\n\n2,z\n')
    assert records.find_record_lines(path, ",", [0, 1, 2]) == [3, 4, 8]
    assert records.find_record_lines(path, ",", [3]) is None


def test_values_too_long_for_the_parser_hide_the_line(tmp_path: Path) -> None:
    path = tmp_path / "v.csv"
    path.write_text(f"a,b\n1,{'x' * 2000}\n2,y\n")
    limit = csv.field_size_limit(1000)
    try:
        assert records.find_record_lines(path, ",", [2]) is None
    finally:
        csv.field_size_limit(limit)
    assert records.find_record_lines(path, ",", [2]) == [3]
