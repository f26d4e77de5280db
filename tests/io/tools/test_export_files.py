"""JSON and delimited text of labelling tools."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import Any

import pytest

from wisecrowd.errors import InputError
from wisecrowd.io.problems import EmptyInput
from wisecrowd.io.tools.export_files import (
    get_objects,
    get_part,
    iter_rows,
    parse_first_object,
    parse_json,
    parse_objects,
    peek_header,
    peek_object,
    peek_text,
    read_objects,
    read_text,
)


class TestJson:
    @pytest.mark.parametrize("text", ["[1,", "{'a': 1}", "nope", ""])
    def test_other_text_is_refused_with_its_place(self, text: str) -> None:
        with pytest.raises(InputError, match="line 7 is not JSON"):
            parse_json(text, "line 7")

    def test_hostile_json_is_refused(self) -> None:
        with pytest.raises(InputError, match="nested"):
            parse_json("[" * 100_000)
        with pytest.raises(InputError, match="thousands of digits"):
            parse_json("9" * 10_000)

    @pytest.mark.parametrize(
        "text",
        [
            '[{"id": 1}, {"id": 2}]',
            '{"id": 1}\n{"id": 2}\n',
            ' \n[\n{"id": 1},\n{"id": 2}\n]',
            '{"id": 1}\n\n{"id": 2}',
        ],
    )
    def test_lists_and_lines_are_the_same(self, text: str) -> None:
        assert parse_objects(text, "tasks") == [{"id": 1}, {"id": 2}]

    def test_one_object_over_several_lines(self) -> None:
        assert parse_objects('{\n "id": 1\n}', "tasks") == [{"id": 1}]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ('[{"id": 1}, 5]', "entry 2 is not a JSON object: 5; expected tasks"),
            ('{"id": 1}\n7', "line 2 is not a JSON object"),
        ],
    )
    def test_other_entries_are_refused_with_their_place(self, text: str, message: str) -> None:
        with pytest.raises(InputError, match=message):
            parse_objects(text, "tasks")

    @pytest.mark.parametrize("text", ["", "[]", "\n\n"])
    def test_no_entries(self, text: str) -> None:
        with pytest.raises(EmptyInput, match="expected tasks"):
            parse_objects(text, "tasks")

    def test_parts_of_a_record(self) -> None:
        record = {"data": {"a": 1}, "list": [{"b": 2}], "null": None, "mixed": [{}, 3]}
        assert get_part(record, "data", dict, "task 1") == {"a": 1}
        assert get_part(record, "null", dict, "task 1") == {}
        assert get_part(record, "absent", list, "task 1") == []
        assert get_objects(record, "list", "task 1") == [{"b": 2}]
        with pytest.raises(InputError, match="'data' of task 1 should be a list"):
            get_part(record, "data", list, "task 1")
        with pytest.raises(InputError, match="'mixed' of task 1 should hold objects; got 3"):
            get_objects(record, "mixed", "task 1")


class TestFiles:
    def test_text_is_decompressed_and_has_no_byte_order_mark(self, tmp_path: Path) -> None:
        path = tmp_path / "export.json.gz"
        path.write_bytes(gzip.compress('\ufeff[{"é": 1}]'.encode()))
        assert read_text(path) == '[{"é": 1}]'
        assert read_objects(path, "tasks") == [{"é": 1}]

    def test_a_changed_file_is_looked_at_again(self, tmp_path: Path) -> None:
        path = tmp_path / "export.json"
        path.write_text('[{"id": 1}]')
        assert peek_object(path) == {"id": 1}
        path.write_text('[{"other": 1}]')
        assert peek_object(path) == {"other": 1}
        assert peek_object(tmp_path) == {}

    def test_first_characters(self, tmp_path: Path) -> None:
        path = tmp_path / "annotations.xml"
        path.write_text("\n  <annotations>" + "x" * 5000)
        assert peek_text(path).startswith("<annotations>")
        assert len(peek_text(path)) == 1000


class TestFirstObject:
    @pytest.mark.parametrize(
        ("text", "expected"), [("[1]", {}), ("text", {}), ("", {}), ('{"a": [1]} tail', {"a": [1]})]
    )
    def test_whole_objects(self, text: str, expected: dict[str, Any]) -> None:
        assert parse_first_object(text) == expected

    def test_the_keys_of_an_object_that_is_cut_off(self) -> None:
        assert set(parse_first_object('[{"id": 1, "annotations": [{"result": "long te')) == {
            "id",
            "annotations",
            "result",
        }


def rows(folder: Path, text: str, separator: str = ",", **options: Any) -> list[tuple[int, dict[str, str]]]:
    path = folder / "export.csv"
    path.write_text(text, encoding="utf-8", newline="")
    return list(iter_rows(path, separator, **options))


class TestRows:
    def test_cells_by_column_with_their_line(self, tmp_path: Path) -> None:
        assert rows(tmp_path, 'a,b\n1,"two\nlines"\n\n3,4\n') == [
            (2, {"a": "1", "b": "two\nlines"}),
            (5, {"a": "3", "b": "4"}),
        ]
        assert rows(tmp_path, "a\tb\r\n1\t2\r\n", "\t") == [(2, {"a": "1", "b": "2"})]

    def test_optional_columns_may_be_missing_at_the_end(self, tmp_path: Path) -> None:
        assert rows(tmp_path, "a,b,c\n1,2\n", optional_columns=("c",)) == [(2, {"a": "1", "b": "2", "c": ""})]
        with pytest.raises(InputError, match="line 2 has 1 columns, not 3"):
            rows(tmp_path, "a,b,c\n1\n", optional_columns=("c",))

    def test_rows_of_another_length_and_repeated_columns_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="line 3 has 3 columns, not 2"):
            rows(tmp_path, "a,b\n1,2\n1,2,3\n")
        with pytest.raises(InputError, match="several columns called 'a'"):
            rows(tmp_path, "a,a\n1,2\n")

    def test_long_cells_are_read_and_the_limit_of_others_stays(self, tmp_path: Path) -> None:
        before = csv.field_size_limit()
        (row,) = rows(tmp_path, "a,b\n1," + "x" * 300_000 + "\n")
        assert len(row[1]["b"]) == 300_000
        assert csv.field_size_limit() == before

    def test_names_on_the_first_line(self, tmp_path: Path) -> None:
        path = tmp_path / "export.csv"
        path.write_text('\n"Input.text",WorkerId\n1,2\n')
        assert peek_header(path, ",") == {"Input.text", "WorkerId"}
        assert peek_header(tmp_path, ",") == set()
