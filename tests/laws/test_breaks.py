"""Declared exceptions from laws have the name of a law and a reason."""

from __future__ import annotations

import pytest

from wisecrowd.base.completer import Completer
from wisecrowd.base.completer_laws import COMPLETER_LAWS
from wisecrowd.base.laws import get_laws
from wisecrowd.base.registry import methods


@pytest.mark.parametrize("name", methods())
def test_what_is_broken_by_design_has_a_name_and_a_reason(name: str) -> None:
    method = methods()[name]
    laws = COMPLETER_LAWS if issubclass(method, Completer) else get_laws(method)
    assert set(method.breaks) <= set(laws)
    assert all(len(reason) > 15 for reason in method.breaks.values())
