from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from wisecrowd.errors import InputError
from wisecrowd.io.tables.json_text import is_json, parse_json, read_json_file


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1, 2", "line 3 is not JSON: it ends in the middle, at byte 5; export it again"),
        ('[{"a": "Grü', "line 3 is not JSON: it ends in the middle, at byte 12"),
        ('[{"a": tr', "line 3 is not JSON: it ends in the middle, at byte 9"),
        ("[1, 2 3]", "line 3 is not JSON: Expecting ',' delimiter"),
        ('[{"a": "b]', "line 3 is not JSON: Unterminated string"),
        ("", "line 3 is not JSON"),
        ("[" * 100_000, "line 3 is JSON with too many nested levels"),
        ('{"a":' * 100_000, "line 3 is JSON with too many nested levels"),
        ("[" + "9" * 5000 + "]", "line 3 holds an integer of thousands of digits; write it as text"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        parse_json(text, "line 3")
    assert len(str(caught.value)) < 300
    assert not is_json(text)


def test_values_are_kept() -> None:
    assert parse_json('[9007199254740993, 1.5, "7", 7, true, null]') == [9007199254740993, 1.5, "7", 7, True, None]


def test_files(tmp_path: Path) -> None:
    (tmp_path / "meta.json.gz").write_bytes(gzip.compress(b'\xef\xbb\xbf{"a": 1}'))
    assert read_json_file(tmp_path / "meta.json.gz") == {"a": 1}
    (tmp_path / "meta.json").write_bytes(b'{"a": "\xff"}')
    with pytest.raises(InputError, match=r"meta\.json: it is not in UTF-8"):
        read_json_file(tmp_path / "meta.json")
    (tmp_path / "meta.json").write_text("{oops")
    with pytest.raises(InputError, match=r"meta\.json: it is not JSON"):
        read_json_file(tmp_path / "meta.json")
