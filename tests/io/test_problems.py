"""Errors about a file name the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from wisecrowd.errors import InputError
from wisecrowd.io.problems import EmptyInput, MissingColumn, MixedTypes, check_file_name, prefix_errors


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
