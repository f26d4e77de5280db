"""Errors about a file name the file."""

from __future__ import annotations

import csv
import errno
import os
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

import wisecrowd as wc
from wisecrowd.errors import InputError, UsageError
from wisecrowd.io.problems import (
    EmptyInput,
    MissingColumn,
    MixedTypes,
    check_file_name,
    convert_errors,
    prefix_errors,
    shorten_message,
)


@pytest.mark.parametrize("kind", [EmptyInput, MissingColumn, MixedTypes, InputError])
def test_the_file_comes_first_and_the_kind_of_error_stays(kind: type[InputError]) -> None:
    with pytest.raises(kind, match=r"^votes\.csv: it is broken$") as caught, prefix_errors(Path("votes.csv")):
        raise kind("it is broken")
    assert type(caught.value) is kind


def test_further_attributes_of_an_error_stay() -> None:
    with pytest.raises(MissingColumn) as caught, prefix_errors(Path("votes.csv")):
        raise MissingColumn("there is no task column", ("task",))
    assert caught.value.roles == ("task",)


def test_other_errors_pass_unchanged() -> None:
    with pytest.raises(ZeroDivisionError, match=r"^integer"), prefix_errors(Path("votes.csv")):
        _ = 1 // 0


def test_text_that_cannot_be_encoded_is_an_input_error() -> None:
    with pytest.raises(InputError, match=r"^votes\.csv: "), prefix_errors(Path("votes.csv")):
        "\udce9".encode()


def test_names_that_are_not_utf8_are_refused_before_the_block_runs() -> None:
    check_file_name(Path("été.csv"))
    with pytest.raises(InputError, match="is not in UTF-8; rename it"), prefix_errors(Path("caf\udce9.csv")):
        pytest.fail("the block must not run")


@pytest.mark.parametrize(
    "error",
    [
        pa.ArrowInvalid("bad"),
        pa.ArrowNotImplementedError("bad"),
        pa.ArrowKeyError("bad"),
        csv.Error("bad"),
        OverflowError("bad"),
        EOFError("bad"),
        OSError("bad"),
        ValueError("bad"),
    ],
)
def test_errors_of_libraries_become_input_errors(error: Exception) -> None:
    with (
        pytest.raises(InputError, match=r"^votes\.csv: it cannot be read: '?bad'?$") as caught,
        prefix_errors(Path("votes.csv")),
    ):
        raise error
    assert caught.value.__cause__ is error


def test_depth_and_memory() -> None:
    with pytest.raises(InputError, match="too many nested levels"), convert_errors():
        raise RecursionError
    with pytest.raises(InputError, match="more memory than there is"), convert_errors():
        raise MemoryError


def test_errors_that_are_not_about_the_input() -> None:
    with pytest.raises(UsageError, match=r"^wrong$"), convert_errors():
        raise UsageError("wrong")
    with pytest.raises(TypeError), convert_errors():
        raise TypeError
    with pytest.raises(OSError, match="No space left"), convert_errors():
        raise OSError(errno.ENOSPC, "No space left on device")


def test_long_messages_are_cut() -> None:
    assert shorten_message("a\n\n b") == "a b"
    assert len(shorten_message("x" * 10**6)) == 201


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_pipes_and_devices_are_refused_instead_of_waited_for(tmp_path: Path) -> None:
    pipe, device = tmp_path / "votes.csv", tmp_path / "zero.csv"
    os.mkfifo(pipe)
    device.symlink_to("/dev/zero")
    for path in (pipe, device):
        for read_file in (
            wc.read,
            partial(wc.read, format="csv"),
            partial(wc.read, format="cvat"),
            wc.read_features,
            wc.read_truth,
        ):
            with pytest.raises(InputError, match=f"{path.name} is a pipe or a device"):
                read_file(path)
