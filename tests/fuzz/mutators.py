"""Mutators: functions that damage a file or make it hostile.

A mutator takes the bytes of a valid file and a random generator, and returns other bytes. It is pure: the same bytes and the
same state of the generator give the same result. The mutators of a kind of content are in a tuple of `MUTATORS`; `mutate`
draws from them.
"""

from __future__ import annotations

import bz2
import csv
import functools
import gzip
import io
import json
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

Mutator: TypeAlias = Callable[[bytes, np.random.Generator], bytes]

#: Largest number of bytes that a mutator adds, except for compressed ones. A case must be written and read in well under a second.
MAX_ADDED_BYTES = 1 << 20
#: Bytes that a bomb unpacks to. Reading all of it at once would exceed the memory limit of a case.
BOMB_BYTES = 3 << 30

#: Byte sequences that readers may obey, or decode wrongly.
TOKENS = (
    b"\x00", b"\r", b"\n", b"\r\n", b"\t", b",", b";", b'"', b"'", b"\\", b"\x1a", b"\x7f", b"\xff", b"\xef\xbb\xbf",
    b"\xff\xfe", b"\xfe\xff", b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\xe2\x80\x8b", b"\xc2\xa0", b"\xe2\x80\xa8",
    b"e\xcc\x81", b"NaN", b"null", b"inf", b"-1", b"0", b"1e309", b"1e-320", b"9007199254740993", b"18446744073709551616",
    b"-9223372036854775809", b"True", b"=1+1", b"%s", b"{0}", b"../../x", b"[", b"]", b"{", b"}", b"<", b">", b"&", b"PK\x03\x04",
    b"PAR1", b"\x1f\x8b", b"PK\x05\x06", b"%", b"@", b"#", b"?", b"2024-02-30", b"99999-01-01T00:00:00Z",
)  # fmt: skip
#: Texts that are valid but unusual as an id, label or key.
TEXTS = (
    "", " ", "\x00", "a\x00b", "\ud800", "\udfff x", "\u00e9", "e\u0301", "a\u200bb", "a\u00a0b", "\ufeffx", "\u202ex",
    "\r\n", "\n", "\t", '"', "'", "\\", "NaN", "nan", "null", "None", "inf", "-inf", "true", "0", "-0", "1", "1.0", "01",
    "1e309", "9007199254740993", "18446744073709551616", "x" * 70_000, "\U0010ffff", "task", "worker", "label",
    "__proto__", "__class__", "=1+1", "../x", "/etc/passwd", "2024-02-30T25:61:61Z", "0000-00-00", "99999-12-31", "-1",
    "[]", "{}",
)  # fmt: skip
#: JSON values in place of others. They are written as they stand, so they need not be valid JSON or fit into a double.
JSON_VALUES = (
    "null", "true", "false", "0", "-0", "-0.0", "1", "-1", "1.5", "0.1", "1e308", "1e309", "-1e309", "1e-320", "NaN",
    "Infinity", "-Infinity", "9007199254740993", "9223372036854775807", "9223372036854775808", "18446744073709551615",
    "18446744073709551616", "-9223372036854775809", "1" * 400, "1" * 5000, "0." + "1" * 5000, "1e99999999", "[]", "{}",
    "[[]]", "[{}]", '[""]', "[null]", '{"": ""}', '{"id": null}', '{"a": {"b": [1, "x", null]}}', '[1, "x", null, [], {}]',
    '"\\ud800"', '"\\udfff\\ud800"', '"\\u0000"', '""', '" "', '"NaN"', '"1"', '"1.0"', '"true"', '"\\n"', '"x\\ty"',
    '"2024-02-30"', '"' + "x" * 70_000 + '"', "[" * 200 + "]" * 200, "[" * 20_000 + "]" * 20_000,
    '{"a":' * 5_000 + "1" + "}" * 5_000, "[" * 20_000, "01", "+1", ".5", "1.", "'x'", "undefined", "[1,]", '"\\x"', '"\n"',
    "0x10", "1_000", "--1", "[1 2]", "",
)  # fmt: skip


def mutate(
    data: bytes, rng: np.random.Generator, kinds: Sequence[str], *, max_mutations: int = 3
) -> tuple[bytes, list[str]]:
    """Apply one to three mutators to the bytes of a file.

    Parameters
    ----------
    data : bytes
        Valid file.
    rng : numpy.random.Generator
        Random generator.
    kinds : sequence of str
        Keys of `MUTATORS` that fit the content. Those of "bytes" fit everything.
    max_mutations : int, default=3
        Largest number of mutators.

    Returns
    -------
    data : bytes
        Hostile file.
    names : list of str
        Names of the mutators in the order in which they were applied.
    """
    names = []
    for _ in range(1 + int(rng.integers(max_mutations)) if rng.random() < 0.5 else 1):
        # A kind first, so that every kind is equally frequent whatever its number of mutators.
        mutator = _choose(rng, MUTATORS[_choose(rng, kinds)])
        try:
            data = mutator(data, rng)
        except DoesNotFit:  # damaged by an earlier mutator, or of another kind
            mutator = flip_bits
            data = mutator(data, rng)
        names.append(mutator.__name__)
    return data, names


class DoesNotFit(Exception):
    """A mutator cannot parse the bytes."""


def _choose(rng: np.random.Generator, values: Sequence[Any]) -> Any:
    return values[int(rng.integers(len(values)))]


def _position(rng: np.random.Generator, length: int) -> int:
    return int(rng.integers(length + 1))


def _span(rng: np.random.Generator, length: int, longest: int) -> tuple[int, int]:
    begin = _position(rng, length)
    return begin, min(length, begin + 1 + int(rng.integers(max(1, longest))))


# ---------------------------------------------------------------------- bytes


def flip_bits(data: bytes, rng: np.random.Generator) -> bytes:
    """Flip up to eight bits."""
    changed = bytearray(data)
    for _ in range(1 + int(rng.integers(8)) if changed else 0):
        changed[int(rng.integers(len(changed)))] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def replace_bytes(data: bytes, rng: np.random.Generator) -> bytes:
    """Replace a few bytes with random ones."""
    begin, end = _span(rng, len(data), 16)
    return data[:begin] + rng.bytes(end - begin) + data[end:]


def truncate(data: bytes, rng: np.random.Generator) -> bytes:
    """Cut off the end."""
    return data[: _position(rng, len(data))]


def cut_beginning(data: bytes, rng: np.random.Generator) -> bytes:
    """Cut off the beginning."""
    return data[_position(rng, min(len(data), 64)) :]


def delete_chunk(data: bytes, rng: np.random.Generator) -> bytes:
    """Delete a stretch."""
    begin, end = _span(rng, len(data), max(8, len(data) // 4))
    return data[:begin] + data[end:]


def repeat_chunk(data: bytes, rng: np.random.Generator) -> bytes:
    """Repeat a stretch up to ten thousand times."""
    begin, end = _span(rng, len(data), 64)
    n_times = min(int(10 ** rng.uniform(0, 4)), MAX_ADDED_BYTES // max(1, end - begin))
    return data[:end] + data[begin:end] * n_times + data[end:]


def splice(data: bytes, rng: np.random.Generator) -> bytes:
    """Insert a stretch at another place."""
    begin, end = _span(rng, len(data), max(8, len(data) // 2))
    place = _position(rng, len(data))
    return data[:place] + data[begin:end] + data[place:]


def insert_token(data: bytes, rng: np.random.Generator) -> bytes:
    """Insert bytes that a reader may obey."""
    place = _position(rng, len(data))
    return data[:place] + _choose(rng, TOKENS) * int(_choose(rng, (1, 1, 1, 2, 1000))) + data[place:]


def overwrite_with_token(data: bytes, rng: np.random.Generator) -> bytes:
    """Overwrite bytes with bytes that a reader may obey."""
    place, token = _position(rng, len(data)), _choose(rng, TOKENS)
    return data[:place] + token + data[place + len(token) :]


def write_integer(data: bytes, rng: np.random.Generator) -> bytes:
    """Overwrite bytes with a binary integer at the end of its range: lengths and offsets that lie."""
    code = _choose(rng, ("<B", "<H", "<I", "<Q", ">H", ">I", ">Q", "<i", "<q"))
    size = struct.calcsize(code)
    largest = (1 << (8 * size - code[1:].islower())) - 1
    value = _choose(
        rng, (0, 1, largest, largest - 1, largest // 2, *([-1, -largest - 1] if code[1:].islower() else []))
    )
    value = value if code[1:].islower() else abs(value)
    place = _position(rng, max(0, len(data) - size))
    packed = (value % (1 << (8 * size))).to_bytes(size, "little" if code[0] == "<" else "big")
    return data[:place] + packed + data[place + size :]


def insert_zeros(data: bytes, rng: np.random.Generator) -> bytes:
    """Insert up to 100,000 zero bytes."""
    place = _position(rng, len(data))
    return data[:place] + bytes(int(10 ** rng.uniform(0, 5))) + data[place:]


def add_byte_order_mark(data: bytes, rng: np.random.Generator) -> bytes:
    """Add one or two byte order marks."""
    marks = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\xff\xfe\x00\x00", b"\xef\xbb\xbf\xef\xbb\xbf", b"+/v8")
    return _choose(rng, marks) + data


def change_encoding(data: bytes, rng: np.random.Generator) -> bytes:
    """Encode the text differently."""
    text = data.decode("utf-8", errors="replace")
    encodings = ("utf-16", "utf-16-le", "utf-32", "latin-1", "cp1252", "shift_jis", "utf-7", "cp037", "gb18030")
    return text.encode(_choose(rng, encodings), errors="replace")


def append_garbage(data: bytes, rng: np.random.Generator) -> bytes:
    """Append random bytes."""
    return data + rng.bytes(1 + int(rng.integers(1000)))


def repeat_file(data: bytes, rng: np.random.Generator) -> bytes:
    """Repeat the whole file."""
    return data * min(int(_choose(rng, (2, 3, 50))), max(1, MAX_ADDED_BYTES // max(1, len(data))))


def replace_file(data: bytes, rng: np.random.Generator) -> bytes:
    """Replace the file with nothing, blanks, random bytes or one long line."""
    return _choose(
        rng,
        (
            b"", b"\n", b" " * 100, bytes(1000), rng.bytes(1000), b"x" * MAX_ADDED_BYTES, b"," * MAX_ADDED_BYTES,
            b"\n" * MAX_ADDED_BYTES, b'"' * 10_001, b"[" * MAX_ADDED_BYTES, b'{"a":' * 100_000, b"<a>" * 100_000, data[:1],
        ),
    )  # fmt: skip


def compress_twice(data: bytes, rng: np.random.Generator) -> bytes:
    """Compress the file, which its name does not say."""
    return _choose(rng, (gzip_bytes, bz2.compress, zlib.compress))(data)


# ---------------------------------------------------------------------- text


def replace_word(data: bytes, rng: np.random.Generator) -> bytes:
    """Replace a word with an unusual text, once or everywhere."""
    words = re.findall(rb"[\w.:-]+", data[:MAX_ADDED_BYTES])
    if not words:
        raise DoesNotFit
    word = _choose(rng, words)
    new = _choose(rng, TEXTS).encode("utf-8", errors="surrogatepass")
    n_times = max(1, min(len(data) // max(1, len(word)), MAX_ADDED_BYTES // max(1, len(new))))
    return data.replace(word, new, 1 if rng.random() < 0.5 else n_times)


def delete_word(data: bytes, rng: np.random.Generator) -> bytes:
    """Delete a word everywhere, for example the name of a column or key."""
    words = re.findall(rb"\w+", data[:MAX_ADDED_BYTES])
    if not words:
        raise DoesNotFit
    return data.replace(_choose(rng, words), b"")


def swap_words(data: bytes, rng: np.random.Generator) -> bytes:
    """Put one word in place of another everywhere, for example the name of one column in place of another."""
    words = sorted(set(re.findall(rb"\w+", data[:MAX_ADDED_BYTES])))
    if not words:
        raise DoesNotFit
    old, new = _choose(rng, words), _choose(rng, words)
    return data.replace(old, new)


def replace_number(data: bytes, rng: np.random.Generator) -> bytes:
    """Replace a number with an extreme one."""
    places = list(re.finditer(rb"-?\d+(\.\d+)?", data[:MAX_ADDED_BYTES]))
    if not places:
        raise DoesNotFit
    place = _choose(rng, places)
    numbers = (
        "0", "-1", "1e308", "-1e308", "1e309", "1e-308", "5e-324", "nan", "inf", "1e300", "4294967296", "9007199254740993",
        "9223372036854775808", "18446744073709551616", "0.1", "1.0", "007", "1" * 400, "1" * 5000, "1,5", "1e5", "-0", "0x1F",
    )  # fmt: skip
    return data[: place.start()] + _choose(rng, numbers).encode() + data[place.end() :]


def shuffle_lines(data: bytes, rng: np.random.Generator) -> bytes:
    """Change the order of the lines, so that the header is somewhere else."""
    lines = data.split(b"\n")
    return b"\n".join(lines[place] for place in rng.permutation(len(lines)))


def change_line_ends(data: bytes, rng: np.random.Generator) -> bytes:
    """End lines in another way."""
    return data.replace(
        b"\n", _choose(rng, (b"\r\n", b"\r", b"\n\n", b"\n\r", b"", b"\x0b", b"\xe2\x80\xa8", b"\xc2\x85"))
    )


# ---------------------------------------------------------------------- JSON


def change_json_value(data: bytes, rng: np.random.Generator) -> bytes:
    """Replace one to three values of a JSON document or of a line."""

    def change(document: Any, raw: _RawJson) -> Any:
        for _ in range(1 + int(rng.integers(3))):
            document = _replace_node(document, rng, lambda _: raw.add(_choose(rng, JSON_VALUES)))
        return document

    return _edit_json(data, rng, change)


def change_json_values_of_key(data: bytes, rng: np.random.Generator) -> bytes:
    """Replace all values of one key with the same or with different unusual values."""

    def change(document: Any, raw: _RawJson) -> Any:
        keys = _list_keys(document)
        if not keys:
            return document
        key, value, is_same = _choose(rng, keys), _choose(rng, JSON_VALUES), rng.random() < 0.5

        def walk(node: Any) -> Any:
            if isinstance(node, dict):
                return {
                    name: raw.add(value if is_same else _choose(rng, JSON_VALUES)) if name == key else walk(item)
                    for name, item in node.items()
                }
            return [walk(item) for item in node] if isinstance(node, list) else node

        return walk(document)

    return _edit_json(data, rng, change, every_line=True)


def wrap_json_value(data: bytes, rng: np.random.Generator) -> bytes:
    """Put a value into lists or objects, up to 20,000 deep."""

    def change(document: Any, raw: _RawJson) -> Any:
        depth, opening, closing = (
            int(_choose(rng, (1, 2, 100, 1500, 20_000))),
            *_choose(rng, (("[", "]"), ('{"a":', "}"))),
        )

        def wrap(value: Any) -> Any:
            return raw.add(opening * depth + raw.render(value) + closing * depth)

        return _replace_node(document, rng, wrap)

    return _edit_json(data, rng, change)


def delete_json_key(data: bytes, rng: np.random.Generator) -> bytes:
    """Delete a key everywhere, or in one object."""

    def change(document: Any, raw: _RawJson) -> Any:  # noqa: ARG001
        keys = _list_keys(document)
        if not keys:
            return document
        key, share = _choose(rng, keys), float(_choose(rng, (0.3, 1.0)))

        def walk(node: Any) -> Any:
            if isinstance(node, dict):
                return {name: walk(item) for name, item in node.items() if name != key or rng.random() >= share}
            return [walk(item) for item in node] if isinstance(node, list) else node

        return walk(document)

    return _edit_json(data, rng, change, every_line=True)


def rename_json_key(data: bytes, rng: np.random.Generator) -> bytes:
    """Rename a key to an unusual text or to another key of the document."""

    def change(document: Any, raw: _RawJson) -> Any:  # noqa: ARG001
        keys = _list_keys(document)
        if not keys:
            return document
        old, new = _choose(rng, keys), _choose(rng, (*TEXTS, *keys))

        def walk(node: Any) -> Any:
            if isinstance(node, dict):
                return {new if name == old else name: walk(item) for name, item in node.items()}
            return [walk(item) for item in node] if isinstance(node, list) else node

        return walk(document)

    return _edit_json(data, rng, change, every_line=True)


def repeat_json_key(data: bytes, rng: np.random.Generator) -> bytes:
    """Write a key of an object twice, with different values."""
    text = data.decode("utf-8", errors="surrogateescape")
    places = list(re.finditer(r'"[^"\\]*"\s*:', text[:MAX_ADDED_BYTES]))
    if not places:
        raise DoesNotFit
    place = _choose(rng, places)
    value = _choose(rng, JSON_VALUES)
    changed = f"{text[: place.start()]}{place.group()} {value}, {text[place.start() :]}"
    return changed.encode("utf-8", errors="surrogateescape")


def add_json_fields(data: bytes, rng: np.random.Generator) -> bytes:
    """Add fields or items to an object or list, up to a thousand."""

    def change(document: Any, raw: _RawJson) -> Any:
        n_fields = int(_choose(rng, (1, 3, 1000)))

        def extend(node: Any) -> Any:
            values = [raw.add(_choose(rng, JSON_VALUES[:48])) for _ in range(n_fields)]
            if isinstance(node, dict):
                return node | {f"{_choose(rng, TEXTS[:12])}{number}": value for number, value in enumerate(values)}
            return [*node, *values] if isinstance(node, list) else values

        return _replace_node(document, rng, extend)

    return _edit_json(data, rng, change)


def repeat_json_items(data: bytes, rng: np.random.Generator) -> bytes:
    """Repeat the items of a list, or empty it."""

    def change(document: Any, raw: _RawJson) -> Any:  # noqa: ARG001
        n_times = int(_choose(rng, (0, 2, 100)))

        def repeat(node: Any) -> Any:
            if isinstance(node, list):
                return node * n_times if len(json.dumps(node)) * n_times < MAX_ADDED_BYTES else node * 2
            return [node] * min(n_times, 2)

        return _replace_node(document, rng, repeat)

    return _edit_json(data, rng, change)


def change_json_form(data: bytes, rng: np.random.Generator) -> bytes:
    """Write a list as lines, lines as a list, or a document as a text, number or list of itself."""
    text = data.decode("utf-8", errors="replace")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        lines = [line for line in text.splitlines() if line.strip()]
        return ("[" + ",".join(lines) + "]").encode()
    if isinstance(document, list) and rng.random() < 0.5:
        return "\n".join(json.dumps(item) for item in document).encode()
    forms = (
        json.dumps(text),
        f"[{text}]",
        f'{{"data": {text}}}',
        f"{text}\n{text}",
        json.dumps({"0": document}),
        "3",
        "null",
        '"x"',
    )
    return _choose(rng, forms).encode("utf-8", errors="surrogatepass")


class _RawJson:
    """Text of JSON values that `json.dumps` would not write, by placeholder."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def add(self, text: str) -> str:
        self.texts.append(text)
        return f"\ufdd0{len(self.texts) - 1}\ufdd0"

    def render(self, document: Any) -> str:
        text = json.dumps(document)
        return re.sub(r'"\\ufdd0(\d+)\\ufdd0"', lambda match: self.texts[int(match[1])], text)


def _edit_json(
    data: bytes, rng: np.random.Generator, change: Callable[[Any, _RawJson], Any], *, every_line: bool = False
) -> bytes:
    """Apply a change to a document, or to one or all lines that are documents."""
    text = data.decode("utf-8-sig", errors="replace")
    try:
        try:
            document = json.loads(text)
        except ValueError:
            lines = text.splitlines()
            documents = [place for place, line in enumerate(lines) if line.strip().startswith(("{", "["))]
            if not documents:
                raise DoesNotFit from None
            if every_line and rng.random() < 0.5:  # the lines as one document, so that a key is changed in all of them
                raw = _RawJson()
                changed = change([json.loads(lines[place]) for place in documents], raw)
                return "\n".join(raw.render(item) for item in changed).encode("utf-8", errors="surrogatepass")
            place, raw = _choose(rng, documents), _RawJson()
            lines[place] = raw.render(change(json.loads(lines[place]), raw))
            return "\n".join(lines).encode("utf-8", errors="surrogatepass")
        raw = _RawJson()
        return raw.render(change(document, raw)).encode("utf-8", errors="surrogatepass")
    except (ValueError, RecursionError):
        raise DoesNotFit from None


def _list_keys(document: Any) -> list[str]:
    keys: dict[str, None] = {}

    def walk(node: Any) -> None:
        if isinstance(node, dict):
            keys.update(dict.fromkeys(node))
        for item in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
            walk(item)

    walk(document)
    return list(keys)


def _replace_node(document: Any, rng: np.random.Generator, replace: Callable[[Any], Any]) -> Any:
    """Return a document in which one value, drawn from all of them, is replaced."""
    places: list[tuple[Any, ...]] = []

    def walk(node: Any, place: tuple[Any, ...]) -> None:
        places.append(place)
        for key, item in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
            walk(item, (*place, key))

    def rebuild(node: Any, place: tuple[Any, ...]) -> Any:
        if not place:
            return replace(node)
        if isinstance(node, dict):
            return node | {place[0]: rebuild(node[place[0]], place[1:])}
        return [*node[: place[0]], rebuild(node[place[0]], place[1:]), *node[place[0] + 1 :]]

    walk(document, ())
    return rebuild(document, _choose(rng, places))


# ---------------------------------------------------------------------- delimited tables


def change_csv_field(data: bytes, rng: np.random.Generator) -> bytes:
    """Replace fields of a table with unusual texts."""
    rows, delimiter = _parse_csv(data)
    for _ in range(1 + int(rng.integers(4))):
        row = _choose(rng, rows)
        if row:
            row[int(rng.integers(len(row)))] = _choose(rng, TEXTS)
    return _write_csv(rows, delimiter)


def change_csv_column(data: bytes, rng: np.random.Generator) -> bytes:
    """Replace all values of a column below its name with one or several unusual texts."""
    rows, delimiter = _parse_csv(data)
    column, value, is_same = int(rng.integers(max(1, len(rows[0])))), _choose(rng, TEXTS[:40]), rng.random() < 0.5
    for row in rows[1:]:
        if column < len(row):
            row[column] = value if is_same else _choose(rng, TEXTS)
    return _write_csv(rows, delimiter)


def make_rows_ragged(data: bytes, rng: np.random.Generator) -> bytes:
    """Add fields to some rows and remove some from others."""
    rows, delimiter = _parse_csv(data)
    for _ in range(1 + int(rng.integers(3))):
        row = _choose(rng, rows)
        if rng.random() < 0.5:
            del row[int(rng.integers(len(row) + 1)) :]
        else:
            row += ["extra"] * int(_choose(rng, (1, 2, 1000)))
    return _write_csv(rows, delimiter)


def change_columns(data: bytes, rng: np.random.Generator) -> bytes:
    """Drop, repeat, rename or reorder columns, or add up to 2,000."""
    rows, delimiter = _parse_csv(data)
    n_columns = max(map(len, rows))
    rows = [row + [""] * (n_columns - len(row)) for row in rows]
    choice = int(rng.integers(5))
    if choice == 0:
        kept = [place for place in range(n_columns) if rng.random() < 0.6]
        rows = [[row[place] for place in kept] for row in rows]
    elif choice == 1:
        rows = [row + row for row in rows]
    elif choice == 2 and n_columns:
        rows[0][int(rng.integers(n_columns))] = _choose(rng, (*TEXTS, *rows[0]))
    elif choice == 3:
        order = rng.permutation(n_columns)
        rows = [[row[place] for place in order] for row in rows]
    else:
        n_new = int(_choose(rng, (1, 10, 2000)))
        rows = [row + [f"c{place}" if not number else "1" for place in range(n_new)] for number, row in enumerate(rows)]
    return _write_csv(rows, delimiter)


def change_delimiter(data: bytes, rng: np.random.Generator) -> bytes:
    """Use another delimiter or another quote."""
    present = [mark for mark in (b",", b"\t", b'"') if mark in data]
    if not present:
        raise DoesNotFit
    old = _choose(rng, present)
    return data.replace(
        old, _choose(rng, (b";", b"|", b"\t", b",", b" ", b"'", b"", b",,", b'"', b'""', b"\x01", b"\x00"))
    )


def break_quotes(data: bytes, rng: np.random.Generator) -> bytes:
    """Open quotes that are never closed, or quote only some fields."""
    places = [place.start() for place in re.finditer(rb"[,\t\n]", data)] or [0]
    for _ in range(1 + int(rng.integers(3))):
        place = _choose(rng, places) + int(rng.integers(2))
        data = data[:place] + _choose(rng, (b'"', b'""', b'"""', b'\\"', b"'", b'"x"y')) + data[place:]
    return data


def lengthen_field(data: bytes, rng: np.random.Generator) -> bytes:
    """Make one field up to a megabyte long."""
    place, size = _position(rng, len(data)), int(10 ** rng.uniform(4, 6))
    return data[:place] + _choose(rng, (b"x", b"1", b"\xc3\xa9", b'""', b"\\")) * size + data[place:]


def repeat_rows(data: bytes, rng: np.random.Generator) -> bytes:
    """Repeat the rows below the header, exactly or with new ids."""
    head, _, rows = data.partition(b"\n")
    n_times = min(int(_choose(rng, (2, 10, 200))), max(1, MAX_ADDED_BYTES // max(1, len(rows))))
    if rng.random() < 0.5:
        return head + b"\n" + rows * n_times
    copies = (re.sub(rb"(?m)^([^,\t\n]+)", rb"\g<1>.%d" % number, rows) for number in range(n_times))
    return head + b"\n" + b"".join(copies)


def keep_header(data: bytes, rng: np.random.Generator) -> bytes:
    """Keep the header only, or everything except the header."""
    head, _, rows = data.partition(b"\n")
    return head + _choose(rng, (b"", b"\n", b"\n\n\n")) if rng.random() < 0.5 else rows


def _parse_csv(data: bytes) -> tuple[list[list[str]], str]:
    text = data.decode("utf-8", errors="replace")
    delimiter = max(",\t;|", key=text.count)
    try:
        rows = list(csv.reader(io.StringIO(text), delimiter=delimiter))
    except csv.Error:
        raise DoesNotFit from None
    if not rows or len(text) > 2 * MAX_ADDED_BYTES:
        raise DoesNotFit
    return rows, delimiter


def _write_csv(rows: list[list[str]], delimiter: str) -> bytes:
    file = io.StringIO()
    csv.writer(file, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return file.getvalue().encode("utf-8", errors="surrogatepass")


# ---------------------------------------------------------------------- compressed streams


def gzip_bytes(data: bytes) -> bytes:
    """Compress bytes as gzip does, without the time."""
    return gzip.compress(data, compresslevel=1, mtime=0)


def make_gzip_bomb(data: bytes, rng: np.random.Generator) -> bytes:
    """Append members that unpack to three gigabytes of the last line, zeros or spaces; the file has 3 MB."""
    text = _unpack_gzip(data)
    line = _choose(rng, (text.rpartition(b"\n")[0].rpartition(b"\n")[2] + b"\n", b"\0", b" ", b"[", b'"x",'))
    block = line * (MAX_ADDED_BYTES // len(line))
    member = gzip.compress(block, compresslevel=9, mtime=0)
    return data + member * (BOMB_BYTES // len(block))


def damage_gzip(data: bytes, rng: np.random.Generator) -> bytes:
    """Change the checksum or length at the end, cut it off, or append garbage or an empty member."""
    tails = (
        data[:-4] + b"\xff\xff\xff\xff",
        data[:-8] + bytes(8),
        data[:-6],
        data + b"garbage",
        data + gzip_bytes(b""),
    )
    return _choose(rng, tails)


def damage_unpacked(data: bytes, rng: np.random.Generator) -> bytes:
    """Mutate what is compressed."""
    return gzip_bytes(_choose(rng, MUTATORS["bytes"])(_unpack_gzip(data), rng))


def _unpack_gzip(data: bytes) -> bytes:
    try:
        with gzip.open(io.BytesIO(data)) as file:
            text = file.read(2 * MAX_ADDED_BYTES)
    except (OSError, EOFError, zlib.error):
        raise DoesNotFit from None
    if len(text) == 2 * MAX_ADDED_BYTES:  # a bomb already
        raise DoesNotFit
    return text


# ---------------------------------------------------------------------- zip archives


def damage_entry(data: bytes, rng: np.random.Generator) -> bytes:
    """Mutate one file of an archive; the archive stays valid."""
    entries = _read_entries(data)
    name = _choose(rng, list(entries))
    kinds = ["bytes", "text", "json"] if name.endswith((".json", ".jsonl")) else ["bytes", "text", "xml", "csv"]
    entries[name], _ = mutate(entries[name], rng, ["array"] if name.endswith(".npy") else kinds, max_mutations=2)
    return write_zip(entries)


def rename_entry(data: bytes, rng: np.random.Generator) -> bytes:
    """Give an entry an absolute, parent, hidden, long or repeated name."""
    entries = _read_entries(data)
    old = _choose(rng, list(entries))
    suffix = "." + old.rpartition(".")[2]
    names = (
        f"/etc/passwd{suffix}", f"../../x{suffix}", f"C:\\x{suffix}", "x" * 60_000 + suffix, f"\x00{suffix}",
        f"a/../../b{suffix}", f"{suffix}", f"__MACOSX/{old}", old + "/", "", f"\u202e{suffix}", f"a\nb{suffix}",
        old.upper(), f"{old}.exe", f"{old}{suffix}",
    )  # fmt: skip
    new = _choose(rng, names)
    return write_zip({new if name == old else name: content for name, content in entries.items()})


def change_entries(data: bytes, rng: np.random.Generator) -> bytes:
    """Remove all entries, add many, nest the archive in itself, or store an entry twice."""
    entries = _read_entries(data)
    name, choice = _choose(rng, list(entries)), int(rng.integers(5))
    suffix = "." + name.rpartition(".")[2]
    if choice == 0:
        return write_zip({})
    if choice == 1:
        return write_zip(entries | {f"{number}{suffix}": entries[name] for number in range(2000)})
    if choice == 2:
        return write_zip({f"nested.zip{suffix}": data, **entries})
    if choice == 3:
        return write_zip({"nested.zip": data})
    file = io.BytesIO(data)
    with zipfile.ZipFile(file, "a") as archive:
        duplicate = zipfile.ZipInfo(name)
        archive.filelist.append(duplicate)  # without the warning of writestr
        archive.filelist.pop()
        archive.NameToInfo.clear()
        archive.writestr(duplicate, entries[name])
    return file.getvalue()


def lie_about_sizes(data: bytes, rng: np.random.Generator) -> bytes:
    """Change sizes, offsets, methods, flags or checksums in the directory of an archive."""
    # Offsets in a record of the directory: flags, method, crc, packed, unpacked, length of name and extra field, local header.
    fields = ((8, "<H"), (10, "<H"), (16, "<I"), (20, "<I"), (24, "<I"), (28, "<H"), (30, "<H"), (42, "<I"))
    records = [match.start() for match in re.finditer(rb"PK\x01\x02", data)]
    if not records:
        raise DoesNotFit
    changed = bytearray(data)
    for _ in range(1 + int(rng.integers(2))):
        (offset, code), start = _choose(rng, fields), _choose(rng, records)
        largest = (1 << 8 * struct.calcsize(code)) - 1
        value = _choose(rng, (0, 1, 8, 9, 12, 14, 93, 95, 99, largest, largest - 1, largest // 2 + 1, 1 << 15))
        if start + offset + struct.calcsize(code) <= len(changed):
            struct.pack_into(code, changed, start + offset, value % (largest + 1))
    return bytes(changed)


def overlap_entries(data: bytes, rng: np.random.Generator) -> bytes:
    """Make a directory with up to 20,000 entries that all point to one compressed stretch."""
    entries = _read_entries(data)
    suffix = "." + _choose(rng, list(entries)).rpartition(".")[2]
    content = bytes(MAX_ADDED_BYTES) if rng.random() < 0.5 else _choose(rng, list(entries.values()))
    n_entries = int(_choose(rng, (3, 100, 20_000)))
    packed = zlib.compressobj(9, zlib.DEFLATED, -15)
    stretch = packed.compress(content) + packed.flush()
    crc = zlib.crc32(content)
    names = [f"{number:05d}{suffix}".encode() for number in range(n_entries)]
    sizes = (crc, len(stretch), len(content))
    local = struct.pack("<4s5H3I2H", b"PK\x03\x04", 20, 0, 8, 0, 33, *sizes, len(names[0]), 0) + names[0] + stretch
    directory = b"".join(
        struct.pack("<4s6H3I5H2I", b"PK\x01\x02", 20, 20, 0, 8, 0, 33, *sizes, len(name), 0, 0, 0, 0, 0, 0) + name
        for name in names
    )
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, n_entries, n_entries, len(directory), len(local), 0)
    return local + directory + end


def make_zip_bomb(data: bytes, rng: np.random.Generator) -> bytes:
    """Replace an entry with three gigabytes of zeros, spaces or one line, and declare the size truthfully or not."""
    entries = _read_entries(data)
    name = _choose(rng, list(entries))
    line = _choose(rng, (b"\0", b" ", b'{"id": 1}\n'))
    block = line * (MAX_ADDED_BYTES // len(line))
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    # A flushed block refers to nothing before it, so it can be repeated without compressing three gigabytes.
    beginning = packer.compress(entries[name]) + packer.flush(zlib.Z_FULL_FLUSH)
    repeated = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    n_times = BOMB_BYTES // len(block)
    stretch = beginning + repeated * n_times + packer.flush()
    true_size = len(entries[name]) + n_times * len(block)
    sizes = (0, len(stretch), true_size if rng.random() < 0.5 else len(entries[name]))
    encoded = name.encode()
    local = struct.pack("<4s5H3I2H", b"PK\x03\x04", 20, 0, 8, 0, 33, *sizes, len(encoded), 0) + encoded + stretch
    directory = (
        struct.pack("<4s6H3I5H2I", b"PK\x01\x02", 20, 20, 0, 8, 0, 33, *sizes, len(encoded), 0, 0, 0, 0, 0, 0) + encoded
    )
    return local + directory + struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 1, 1, len(directory), len(local), 0)


def _read_entries(data: bytes) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if sum(info.file_size for info in archive.infolist()) > 2 * MAX_ADDED_BYTES or not archive.infolist():
                raise DoesNotFit
            entries = {}
            for info in archive.infolist():
                with archive.open(info) as file:
                    entries[info.filename] = file.read(2 * MAX_ADDED_BYTES)
            return entries
    except DoesNotFit:
        raise
    except Exception:  # zipfile raises many kinds of errors for damaged archives
        raise DoesNotFit from None


def write_zip(entries: dict[str, bytes]) -> bytes:
    """Return an archive, with the same bytes for the same entries.

    Parameters
    ----------
    entries : dict of str to bytes
        Content by name.

    Returns
    -------
    bytes
        Zip archive.
    """
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            info = zipfile.ZipInfo("x", date_time=(1980, 1, 1, 0, 0, 0))
            # The constructor would replace unusual characters; half a character cannot be written.
            info.filename = name.encode(errors="replace").decode()
            archive.writestr(info, content, zipfile.ZIP_DEFLATED)
    return file.getvalue()


# ---------------------------------------------------------------------- arrays (npy, npz)


def change_array_header(data: bytes, rng: np.random.Generator) -> bytes:
    """Change the type or shape that the header of an npy file declares."""
    if not data.startswith(b"\x93NUMPY"):
        raise DoesNotFit
    header = _choose(
        rng,
        (
            {"descr": "|O", "fortran_order": False, "shape": (3,)},
            {"descr": "<f8", "fortran_order": False, "shape": (1 << 40,)},
            {"descr": "<f8", "fortran_order": False, "shape": (400_000_000, 3)},
            {"descr": "<f8", "fortran_order": True, "shape": (1 << 62, 1 << 62)},
            {"descr": "<f8", "fortran_order": False, "shape": (-1,)},
            {"descr": "<f8", "fortran_order": False, "shape": ()},
            {"descr": "<f8", "fortran_order": False, "shape": (0, 3)},
            {"descr": "<f8", "fortran_order": False, "shape": (1,) * 70},
            {"descr": "<U1000000000", "fortran_order": False, "shape": (3,)},
            {"descr": [("a", "<i4"), ("b", "|O")], "fortran_order": False, "shape": (2,)},
            {"descr": "<x8", "fortran_order": False, "shape": (2,)},
            {"descr": "<M8[ns]", "fortran_order": False, "shape": (2,)},
            {"descr": "|V16", "fortran_order": False, "shape": (2,)},
            {"shape": (2,)},
            {"descr": "__import__('os')", "fortran_order": "x", "shape": "y"},
            [[[[[[[[[[]]]]]]]]]],
        ),
    )  # fmt: skip
    text = (repr(header) + " \n").encode() if rng.random() < 0.9 else b"(" * 9000
    (length,) = struct.unpack("<H", data[8:10]) if len(data) >= 10 else (0,)
    return data[:8] + struct.pack("<H", len(text)) + text + data[10 + length :]


def replace_array(data: bytes, rng: np.random.Generator) -> bytes:
    """Replace an array with one of another type, shape or range."""
    if not data.startswith(b"\x93NUMPY"):
        raise DoesNotFit
    try:
        old = np.load(io.BytesIO(data), allow_pickle=False)
    except Exception:  # numpy raises many kinds of errors for damaged arrays
        raise DoesNotFit from None
    shape = old.shape if old.size < 10_000 else (3,)
    arrays = (
        lambda: np.full(shape, np.nan), lambda: np.full(shape, 1e308), lambda: np.full(shape, -np.inf),
        lambda: np.full(shape, 5e-324), lambda: np.zeros(shape, dtype="U4"), lambda: np.full(shape, "x\0y"),
        lambda: np.zeros(shape, dtype="S3"), lambda: np.ones(shape, dtype=complex),
        lambda: np.zeros(shape, dtype="M8[ns]"), lambda: np.zeros(shape, dtype="m8[s]"),
        lambda: np.full(shape, 2**63, dtype=np.uint64), lambda: np.full(shape, -1, dtype=np.int64),
        lambda: np.zeros(shape, dtype=bool), lambda: np.zeros(shape, dtype="f2"),
        lambda: np.zeros(shape, dtype=[("a", "i4"), ("b", "f8")]), lambda: np.zeros(shape, dtype="V3"),
        lambda: np.zeros(()), lambda: np.zeros((0, 3)), lambda: np.zeros((3, 0)),
        lambda: np.atleast_1d(old)[:0], lambda: np.atleast_1d(old)[:1],
        lambda: old[::-1], lambda: np.concatenate([old, old]) if old.ndim else old, lambda: old[None],
        lambda: np.asfortranarray(old), lambda: np.array(["\ud800"] * 3), lambda: np.zeros((2, 3, 4, 5)),
        lambda: old.astype(old.dtype.newbyteorder()),
    )  # fmt: skip
    file = io.BytesIO()
    np.save(file, _choose(rng, arrays)(), allow_pickle=False)
    return file.getvalue()


def change_archive_of_arrays(data: bytes, rng: np.random.Generator) -> bytes:
    """Rename, remove, add or replace arrays of an npz file, or return one of them as an npy file."""
    entries = _read_entries(data)
    name, choice = _choose(rng, list(entries)), int(rng.integers(5))
    if choice == 0:
        del entries[name]
    elif choice == 1:
        entries[_choose(rng, TEXTS[:30]) + ".npy"] = entries.pop(name)
    elif choice == 2:
        entries[name.removesuffix(".npy")] = entries.pop(name)  # numpy returns the bytes of such an entry
    elif choice == 3:
        return entries[name]
    else:
        entries[name] = _choose(rng, (b"", b"x", entries[name][:-1], b"\x93NUMPY\x01\x00"))
    return write_zip(entries)


# ---------------------------------------------------------------------- Parquet


def change_parquet_column(data: bytes, rng: np.random.Generator) -> bytes:
    """Replace a column of a Parquet file with one of another type."""
    table = _read_parquet(data)
    if not table.num_columns:
        raise DoesNotFit
    place = int(rng.integers(table.num_columns))
    n_rows, name = len(table), table.column_names[place]
    bad_text = pa.Array.from_buffers(pa.string(), n_rows, [None, *_buffers(n_rows, b"\xff\xfe")])
    old = table.column(place).combine_chunks()
    try:
        values = old.to_pylist()
    except (ValueError, OverflowError):  # an earlier change made dates or texts that Python cannot represent
        raise DoesNotFit from None
    columns: tuple[Callable[[], Any], ...] = (
        lambda: pa.array([[value] for value in values]), lambda: pa.array([{"a": value} for value in values]),
        lambda: pa.array([[("k", 1)]] * n_rows, pa.map_(pa.string(), pa.int32())),
        lambda: pa.array([b"\xff\x00"] * n_rows), lambda: pa.array([2**64 - 1] * n_rows, pa.uint64()),
        lambda: pa.array([2**53 + 1] * n_rows, pa.uint64()), lambda: pa.array([-(2**63)] * n_rows, pa.int64()),
        lambda: pa.array([float("nan")] * n_rows), lambda: pa.array([1e308] * n_rows),
        lambda: pa.array([float("inf")] * n_rows), lambda: pa.array([1e-308] * n_rows), lambda: pa.nulls(n_rows),
        lambda: pa.nulls(n_rows, pa.string()), lambda: pa.array([True] * n_rows),
        lambda: pa.array([10**37] * n_rows, pa.decimal128(38)), lambda: pa.array([10**70] * n_rows, pa.decimal256(76)),
        lambda: pa.array([2**62] * n_rows, pa.timestamp("us")),
        lambda: pa.array([-(2**62)] * n_rows, pa.timestamp("ns", "UTC")),
        lambda: pa.array([2**31 - 1] * n_rows, pa.date32()), lambda: pa.array([1] * n_rows, pa.time32("s")),
        lambda: pa.array([1] * n_rows, pa.duration("ns")), lambda: pa.array(["x"] * n_rows).dictionary_encode(),
        lambda: pa.array([""] * n_rows), lambda: pa.array(["\0"] * n_rows), lambda: bad_text,
        lambda: pa.array([b"x"] * n_rows, pa.binary(1)), lambda: pa.array([0.5] * n_rows, pa.float16()),
        lambda: pa.array([[1.0, 2.0]] * n_rows, pa.list_(pa.float64(), 2)),
        lambda: pa.array(["x" * 70_000] * min(n_rows, 10) + ["y"] * max(0, n_rows - 10)),
        lambda: pa.array([[]] * n_rows, pa.list_(pa.null())), lambda: pa.array([{}] * n_rows, pa.struct([])),
        lambda: pa.array(["x"] * n_rows, pa.large_string()), lambda: old.take(pa.array(rng.permutation(n_rows))),
        lambda: _nest(old, 60),
    )  # fmt: skip
    table = table.set_column(place, name, _choose(rng, columns)())
    return _write_parquet(table)


def change_parquet_columns(data: bytes, rng: np.random.Generator) -> bytes:
    """Drop, repeat, rename, add or reorder columns, or remove all rows."""
    table = _read_parquet(data)
    names, choice = table.column_names, int(rng.integers(7))
    if choice == 0:
        table = table.select([name for name in names if rng.random() < 0.6])
    elif choice == 1 and names:
        table = table.append_column(_choose(rng, names), pa.array([1] * len(table)))
    elif choice == 2 and names:
        place = int(rng.integers(len(names)))
        unusual = [text.encode("utf-8", errors="replace").decode() for text in TEXTS]
        table = table.rename_columns([*names[:place], _choose(rng, (*unusual, *names)), *names[place + 1 :]])
    elif choice == 3:
        table = table.slice(0, int(rng.integers(2)))
    elif choice == 4:
        new = {f"c{number}": pa.array([1.0] * len(table)) for number in range(int(_choose(rng, (1, 300))))}
        table = pa.table(dict(zip(names, table.columns, strict=True)) | new) if len(set(names)) == len(names) else table
    elif choice == 5:
        table = pa.concat_tables([table] * int(_choose(rng, (2, 100))))
    else:
        table = table.replace_schema_metadata(
            {b"pandas": _choose(rng, (b"{", b"[]", b'{"index_columns": [{"kind": "x"}]}', b"null", b"\xff"))}
        )
    return _write_parquet(table)


def _nest(array: Any, depth: int) -> Any:
    for _ in range(depth):
        array = pa.ListArray.from_arrays(pa.array(range(len(array) + 1), pa.int32()), array)
    return array


def _buffers(n_rows: int, value: bytes) -> list[Any]:
    offsets = np.arange(n_rows + 1, dtype=np.int32) * len(value)
    return [pa.py_buffer(offsets.tobytes()), pa.py_buffer(value * n_rows)]


def _read_parquet(data: bytes) -> Any:
    try:
        return pq.read_table(pa.BufferReader(data), use_threads=False)
    except (pa.ArrowException, OSError, ValueError):
        raise DoesNotFit from None


def _write_parquet(table: Any) -> bytes:
    sink = pa.BufferOutputStream()
    try:
        pq.write_table(table, sink)
    except (pa.ArrowException, OSError, ValueError):
        raise DoesNotFit from None
    return sink.getvalue().to_pybytes()


# ---------------------------------------------------------------------- XML


def add_xml_entities(data: bytes, rng: np.random.Generator) -> bytes:
    """Declare entities that expand to billions of characters, refer to themselves, to a file or to a server."""
    entities = "".join(f'<!ENTITY e{level} "{f"&e{level - 1};" * 10}">' for level in range(1, 10))
    doctype = _choose(
        rng,
        (
            f'<!DOCTYPE annotations [<!ENTITY e0 "lol">{entities}]>', '<!DOCTYPE annotations [<!ENTITY e9 "&e9;">]>',
            '<!DOCTYPE annotations [<!ENTITY e9 SYSTEM "file:///etc/passwd">]>',
            '<!DOCTYPE annotations [<!ENTITY % e9 SYSTEM "x"> %e9;]>',
            '<!DOCTYPE annotations SYSTEM "http://127.0.0.1:9/x.dtd">',
            f'<!DOCTYPE annotations [<!ENTITY e9 "{"x" * 100_000}">]>',
            '<!DOCTYPE annotations [<!ATTLIST image name CDATA "&e9;">]>', "<!DOCTYPE annotations>",
        ),
    )  # fmt: skip
    start = re.search(rb"<\w", data)
    if start is None:
        raise DoesNotFit
    body = data[start.start() :]
    places = [place.end() for place in re.finditer(rb'>|="', body)]
    for _ in range(1 + int(rng.integers(3))):
        place = _choose(rng, places) if places else 0
        body = body[:place] + b"&e9;" * int(_choose(rng, (1, 1, 1000))) + body[place:]
    return data[: start.start()] + doctype.encode() + body


def nest_xml(data: bytes, rng: np.random.Generator) -> bytes:
    """Wrap an element in up to 100,000 others."""
    places = [place.start() for place in re.finditer(rb"<\w", data)]
    if not places:
        raise DoesNotFit
    place, depth = _choose(rng, places), int(_choose(rng, (3, 1000, 100_000)))
    tag = _choose(rng, (b"a", b"image", b"annotations", b"tag", b"meta"))
    end = data.rfind(b"</")
    end = end if end > place else len(data)
    return data[:place] + b"<%s>" % tag * depth + data[place:end] + b"</%s>" % tag * depth + data[end:]


def change_xml_text(data: bytes, rng: np.random.Generator) -> bytes:
    """Insert long or broken text, comments, instructions or sections between or within elements."""
    places = [place.end() for place in re.finditer(rb">", data)] or [0]
    inserted = (
        b"x" * MAX_ADDED_BYTES, b"<!--x-->" * 100_000, b"&amp;" * 200_000, b"x\n" * 100_000,
        b"<![CDATA[" + b"]" * 1000 + b"]]>", b"<?x y?>", b"&undefined;", b"&#0;", b"&#xD800;", b"&#1114112;", b"\x00",
        b"<a" + b" b='1'" * 2, b"<a " + b" ".join(b"a%d=''" % n for n in range(20_000)) + b"/>", b"</annotations>",
        b"<image/>", b"<image name=''/>", b"<tag/>", b"<image name='a.jpg'><tag label=''/></image>", b"<meta/>",
    )  # fmt: skip
    place = _choose(rng, places)
    return data[:place] + _choose(rng, inserted) + data[place:]


def change_xml_declaration(data: bytes, rng: np.random.Generator) -> bytes:
    """Declare another encoding, version or namespace."""
    start = re.search(rb"<\w", data)
    if start is None:
        raise DoesNotFit
    declarations = (
        b'<?xml version="1.0" encoding="UTF-16"?>', b'<?xml version="1.0" encoding="nonsense"?>', b'<?xml version="2.0"?>',
        b'<?xml version="1.0" encoding="cp037"?>', b'<?xml version="1.0" encoding="utf-7"?>',
        b'<?xml version="1.0" encoding="idna"?>', b'<?xml version="1.0" encoding="unicode_escape"?>', b"", b"<?xml?>",
        b'<?xml version="1.0" encoding="hex"?>', b" \n",
    )  # fmt: skip
    body = data[start.start() :]
    if rng.random() < 0.2:
        body = body.replace(
            b"<annotations", b'<annotations xmlns="urn:x" xmlns:xi="http://www.w3.org/2001/XInclude"', 1
        )
    return _choose(rng, declarations) + body


# ---------------------------------------------------------------------- images


def change_image_size(data: bytes, rng: np.random.Generator) -> bytes:
    """Declare another width and height in a PNG, GIF, JPEG or WebP file."""
    width, height = (int(_choose(rng, (0, 1, 319, 320, 321, 5000, 20_000, 65_535, 2**31 - 1))) for _ in range(2))
    if data.startswith(b"\x89PNG"):
        chunk = b"IHDR" + struct.pack(">II", width, height) + data[24:29]
        return data[:12] + chunk + struct.pack(">I", zlib.crc32(chunk)) + data[33:]
    if data.startswith(b"GIF8"):
        return data[:6] + struct.pack("<HH", width % 65_536, height % 65_536) + data[10:]
    frame = re.search(rb"\xff[\xc0\xc2]", data)
    if data.startswith(b"\xff\xd8") and frame:
        place = frame.start() + 5
        return data[:place] + struct.pack(">HH", height % 65_536, width % 65_536) + data[place + 4 :]
    raise DoesNotFit


def insert_image_chunk(data: bytes, rng: np.random.Generator) -> bytes:
    """Insert a comment, profile, text or bomb of text into a PNG or JPEG file."""
    if data.startswith(b"\x89PNG"):
        bomb = _zlib_bomb()
        content = _choose(
            rng,
            (
                b"zTXtx\0\0" + bomb,
                b"iCCPx\0\0" + bomb,
                b"iTXtx\0\1\0\0\0" + bomb,
                b"eXIfMM\0*\0\0\0\x08",
                b"acTL" + b"\xff" * 8,
                b"IDAT",
                b"PLTE",
            ),
        )
        chunk = struct.pack(">I", len(content) - 4) + content + struct.pack(">I", zlib.crc32(content))
        return data[:33] + chunk + data[33:]
    if data.startswith(b"\xff\xd8"):
        content = _choose(
            rng,
            (
                b"Exif\0\0" + rng.bytes(40),
                b"ICC_PROFILE\0\1\1" + rng.bytes(99),
                b"x" * 60_000,
                b"MPF\0" + rng.bytes(50),
            ),
        )
        return (
            data[:2]
            + b"\xff"
            + bytes([int(_choose(rng, (0xE1, 0xE2, 0xFE, 0xEE)))])
            + struct.pack(">H", len(content) + 2)
            + content
            + data[2:]
        )
    raise DoesNotFit


@functools.cache
def _zlib_bomb() -> bytes:
    """Return a stream of half a megabyte that unpacks to 100 MB of zeros."""
    return zlib.compress(bytes(100 * MAX_ADDED_BYTES), 1)


#: Mutators by kind of content. "bytes" fits everything.
MUTATORS: dict[str, tuple[Mutator, ...]] = {
    "bytes": (
        flip_bits, replace_bytes, truncate, cut_beginning, delete_chunk, repeat_chunk, splice, insert_token,
        overwrite_with_token, write_integer, insert_zeros, add_byte_order_mark, change_encoding, append_garbage,
        repeat_file, replace_file, compress_twice,
    ),
    "text": (replace_word, delete_word, swap_words, replace_number, shuffle_lines, change_line_ends, lengthen_field),
    "json": (
        change_json_value, change_json_values_of_key, wrap_json_value, delete_json_key, rename_json_key, repeat_json_key,
        add_json_fields, repeat_json_items, change_json_form,
    ),
    "csv": (
        change_csv_field, change_csv_column, make_rows_ragged, change_columns, change_delimiter, break_quotes, lengthen_field,
        repeat_rows, keep_header,
    ),
    "gzip": (make_gzip_bomb, damage_gzip, damage_unpacked),
    "zip": (damage_entry, rename_entry, change_entries, lie_about_sizes, overlap_entries, make_zip_bomb),
    "array": (change_array_header, replace_array),
    "npz": (damage_entry, change_archive_of_arrays, lie_about_sizes, make_zip_bomb),
    "parquet": (change_parquet_column, change_parquet_columns),
    "xml": (add_xml_entities, nest_xml, change_xml_text, change_xml_declaration),
    "image": (change_image_size, insert_image_chunk),
}  # fmt: skip
