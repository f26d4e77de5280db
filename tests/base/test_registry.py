"""The registry: methods are found by name, and only the one that is asked for is imported."""

from __future__ import annotations

import subprocess
import sys

import pytest

import wisecrowd
from wisecrowd import DawidSkene
from wisecrowd.base.citations import format_citation
from wisecrowd.base.registry import find, kind_of, method_modules, methods
from wisecrowd.errors import UsageError


def test_names_are_found_in_either_spelling() -> None:
    assert find("dawid-skene") is find("DawidSkene") is find("dawid_skene") is DawidSkene
    assert kind_of(DawidSkene) == "aggregate"
    with pytest.raises(UsageError, match="Did you mean 'one-coin'"):
        find("one-cion")
    with pytest.raises(UsageError, match="kind must be one of"):
        methods("aggregation")


@pytest.mark.parametrize("name", methods())
def test_every_method_is_public_summarised_and_citable(name: str) -> None:
    method = methods()[name]
    assert getattr(wisecrowd, method.__name__) is method
    assert method.summary().endswith(".")
    assert method.references, "a method has a paper"
    for key in method.references:
        assert format_citation(key)


@pytest.mark.parametrize("name", methods())
def test_a_method_has_at_most_four_classes(name: str) -> None:
    chain = [kind.__name__ for kind in methods()[name].__mro__ if kind.__module__.startswith("wisecrowd.")]
    assert len(chain) <= 4, chain  # method, family, kind, Method


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dawid-skene", "DawidSkene", "raykar", "gmv"])
def test_finding_a_method_imports_no_other_method(name: str) -> None:
    program = f"""
import sys
import wisecrowd
from wisecrowd.base.registry import method_modules

module = wisecrowd.find({name!r}).__module__
print(*sorted(set(method_modules().values()) & set(sys.modules) - {{module}}))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.slow
def test_listing_names_imports_no_method() -> None:
    program = """
import sys
from wisecrowd.base.registry import method_modules

print(*set(method_modules().values()) & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
    assert len(method_modules()) == len(methods())
