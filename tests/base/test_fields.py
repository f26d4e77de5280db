"""Parameters and fitted attributes, and how they are rendered."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from wisecrowd.base.fields import fitted, fitted_fields, method_class, parameter, parameter_fields


@method_class
class Example:
    """Method of an example.

    A paragraph.

    References
    ----------
    .. [1] Somebody, 1979.
    """

    mode: Literal["a", "b"] = parameter(default="a", help="Mode of the example.")
    rate: float | None = parameter(default=None, help="Long " * 40 + "text.")
    table_: NDArray[np.float64] | None = fitted(help="Table, shape (n, 2).")
    anything_: dict[str, Any] = fitted(help="Anything.")


def test_parameters_are_keywords_with_defaults() -> None:
    assert Example(rate=2.0).rate == 2.0
    assert Example().mode == "a"
    with pytest.raises(TypeError):
        Example("b")  # type: ignore[misc]


def test_fitted_attributes_are_no_arguments_and_are_absent_before_a_fit() -> None:
    with pytest.raises(TypeError):
        Example(table_=np.ones(2))  # type: ignore[call-arg]
    assert not hasattr(Example(), "table_")
    assert [field.name for field in parameter_fields(Example)] == ["mode", "rate"]
    assert [field.name for field in fitted_fields(Example())] == ["table_", "anything_"]


def test_methods_are_compared_by_identity() -> None:
    """Results are arrays, which have no truth value."""
    assert Example() != Example()
    assert len({Example(), Example()}) == 2


class TestDocstring:
    TEXT = inspect.getdoc(Example) or ""

    def test_sections_are_in_the_order_of_numpydoc(self) -> None:
        order = [
            self.TEXT.index(part)
            for part in ("A paragraph.", "\nParameters\n---", "\nAttributes\n---", "\nReferences\n---")
        ]
        assert order == sorted(order)

    def test_types_are_written_as_numpydoc_writes_them(self) -> None:
        assert "mode : {'a', 'b'}, default 'a'" in self.TEXT.replace('"', "'")
        assert "rate : float or None, default None" in self.TEXT
        assert "table_ : ndarray or None\n    Table, shape (n, 2)." in self.TEXT
        assert "anything_ : dict[str, object]" in self.TEXT

    def test_long_texts_wrap(self) -> None:
        assert max(map(len, self.TEXT.splitlines())) <= 112

    def test_an_example_without_a_heading_gets_one(self) -> None:
        @method_class
        class Short:
            """Short method.

            >>> 1 + 1
            2
            """

            tol: float = parameter(default=0.5, help="Tolerance.")

        assert (Short.__doc__ or "").endswith("Tolerance.\n\nExamples\n--------\n>>> 1 + 1\n2\n")

    def test_a_subclass_lists_inherited_fields_once(self) -> None:
        @method_class
        class Child(Example):
            """Child."""

            depth: int = parameter(default=3, help="Depth.")

        assert (Child.__doc__ or "").count("mode : ") == 1
        assert [field.name for field in dataclasses.fields(Child) if field.init] == ["mode", "rate", "depth"]  # type: ignore[arg-type]
