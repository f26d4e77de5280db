from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pytest

from wisecrowd import DawidSkene, MajorityVote
from wisecrowd.base.fields import parameter_fields
from wisecrowd.cli._parameters import in_words, parse_parameters, parse_value
from wisecrowd.errors import UsageError


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("3", int, 3),
        ("1e-3", float, 1e-3),
        ("3", float, 3.0),
        ("007", str, "007"),
        ("Yes", bool, True),
        ("0", bool, False),
        ("off", bool, False),
        ("split", Literal["split", "first"], "split"),
        ("2", Literal[1, 2], 2),
        ("none", int | None, None),
        ("4", int | None, 4),
        ("uniform", Literal["estimate", "uniform"] | Any, "uniform"),
        ("0.2,0.8", Literal["estimate", "uniform"] | Any, [0.2, 0.8]),
        ("[0.2, 0.8]", Any, [0.2, 0.8]),
        ("None", Any, None),
        ('{"cat": 0.2}', Any, {"cat": 0.2}),
        ("1, 2", tuple[int, ...], (1, 2)),
        ("1,2", list[float], [1.0, 2.0]),
    ],
)
def test_a_text_becomes_a_value_of_the_type(text: str, kind: Any, value: Any) -> None:
    parsed = parse_value(text, kind)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("1.5", int),
        ("x", float),
        ("maybe", bool),
        ("last", Literal["first"]),
        ("x", int | None),
        ("1,x", tuple[int, ...]),
    ],
)
def test_a_text_of_another_type_is_refused(text: str, kind: Any) -> None:
    with pytest.raises(ValueError):
        parse_value(text, kind)


def test_types_in_words() -> None:
    assert in_words(int | None) == "a whole number or none"
    assert in_words(Literal["split", "first"]) == "split or first"
    assert in_words(tuple[int, ...]) == "several, separated by commas, each a whole number"


def test_parameters_of_a_method() -> None:
    given = parse_parameters(DawidSkene, ["smoothing=0.5", "max-iter=10", "accelerate=no", "prior=0.3,0.7"])
    assert given == {"smoothing": 0.5, "max_iter": 10, "accelerate": False, "prior": [0.3, 0.7]}
    assert parse_parameters(DawidSkene, ['prior={"cat": 1, "dog": 2}'])["prior"] == {"cat": 1, "dog": 2}


@pytest.mark.parametrize(
    ("assignment", "advice"),
    [
        ("smooting=1", "Did you mean 'smoothing'?"),
        ("smoothing", "-p takes name=value"),
        ("smoothing=much", "smoothing of dawid-skene must be a finite number; got 'much'"),
        ("max_iter=1.5", "max_iter of dawid-skene must be a whole number; got '1.5'"),
        ("accelerate=perhaps", "must be true or false"),
    ],
)
def test_bad_parameters_get_advice(assignment: str, advice: str) -> None:
    with pytest.raises(UsageError, match=advice.replace("?", r"\?")):
        parse_parameters(DawidSkene, [assignment])


def test_a_parameter_given_twice() -> None:
    with pytest.raises(UsageError, match="given twice"):
        parse_parameters(DawidSkene, ["tol=1", "tol=2"])


def test_every_parameter_of_a_choice_is_checked() -> None:
    with pytest.raises(UsageError, match="must be split or first or random; got 'last'"):
        parse_parameters(MajorityVote, ["ties=last"])


@pytest.mark.slow
def test_defaults_of_every_method_can_be_written_on_the_command_line() -> None:
    """Whatever `wisecrowd methods NAME` shows as a default is also understood as a value."""

    from wisecrowd import methods

    for method in methods().values():
        for field in parameter_fields(method):
            if isinstance(field.default, str | int | float | bool | None):
                given = parse_parameters(method, [f"{field.name}={field.default}"])
                assert given == {field.name: field.default}, (method.name, field.name)


def test_a_method_without_parameters() -> None:
    @dataclass(kw_only=True, eq=False, repr=False)
    class Bare(MajorityVote):
        pass

    assert parse_parameters(Bare, []) == {}


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "1e999"])
def test_numbers_are_finite(text: str) -> None:
    with pytest.raises(UsageError, match="tol of dawid-skene must be a finite number"):
        parse_parameters(DawidSkene, [f"tol={text}"])
