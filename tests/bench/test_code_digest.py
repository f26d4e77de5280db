"""Digests follow the code that determines a result, and nothing else."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from pathlib import Path

import pytest

from wisecrowd import DawidSkene
from wisecrowd.bench import code_digest as module
from wisecrowd.bench.code_digest import Definition, code_digest, find_definitions
from wisecrowd.bench.entries import LearnerEntry
from wisecrowd.learn.ccc.ccc import CCC

Write = Callable[..., types.ModuleType]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write a module that counts as code of a benchmark, a new one at every call."""
    written: list[str] = []

    def write_module(text: str, name: str = "") -> types.ModuleType:
        file = tmp_path / f"{name or f'made_{len(written)}'}.py"
        written.append(file.stem)
        file.write_text(text)
        made = types.ModuleType(file.stem)
        made.__file__ = str(file)
        monkeypatch.setitem(sys.modules, file.stem, made)
        exec(text, vars(made))
        return made

    for function in (module._find_file, module._parse_module, module._find_reachable):
        function.cache_clear()
    return write_module


BASE = '''
import math
SCALE = 2.0

def unused():
    return 0

def halve(x):
    """Halve a number."""
    if x < 0:
        raise ValueError("x is negative")
    return x / SCALE

class Entry:
    """An entry."""
    size: int = 3
    def run(self):
        return halve(self.size)
'''


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ('"""Halve a number."""', "# half", True),
        ('"x is negative"', '"expected a positive number"', True),
        ("def halve(x):", "def halve(x: float) -> float:", True),
        ("    return 0", "    return 1", True),
        ("import math", "import math, json", True),
        ("class Entry:", "class Other:\n    pass\n\nclass Entry:", True),
        ("SCALE = 2.0", "SCALE = 3.0", False),
        ("x / SCALE", "x * SCALE", False),
        ("size: int = 3", "size: int = 4", False),
        ("x < 0", "x <= 0", False),
    ],
)
def test_the_digest_changes_with_the_results_only(write: Write, old: str, new: str, same: bool) -> None:
    assert old in BASE
    before, after = (code_digest(write(text).Entry) for text in (BASE, BASE.replace(old, new, 1)))
    assert (before == after) is same


def test_imported_definitions_count_and_their_neighbours_do_not(write: Write) -> None:
    user = "from helper_{0} import used\nclass Entry:\n    def run(self):\n        return used()"
    helper = "def used():\n    return {1}\n\ndef neighbour():\n    return {2}"
    digests = []
    for number, values in enumerate([(1, 1), (1, 2), (2, 1)]):
        write(helper.format(0, *values), name=f"helper_{number}")
        digests.append(code_digest(write(user.format(number)).Entry))
    assert digests[0] == digests[1] != digests[2]


def test_help_texts_and_references_are_for_readers(write: Write) -> None:
    head = "def parameter(default, help):\n    return default\n\n"
    text = head + 'class M:\n    references = ("{0}",)\n    a = parameter(default={1}, help="{2}")'
    digests = [
        code_digest(write(text.format(*values)).M) for values in [("a", 1, "A."), ("b", 1, "B."), ("a", 2, "A.")]
    ]
    assert digests[0] == digests[1] != digests[2]


def test_statements_that_change_a_table_belong_to_it(write: Write) -> None:
    text = "TABLE = {{}}\nfor n in (1, 2):\n    TABLE[n] = {0}\n\ndef entry():\n    return TABLE"
    assert code_digest(write(text.format(1)).entry) != code_digest(write(text.format(2)).entry)


def test_definitions_can_be_left_out(write: Write) -> None:
    text = "TABLE = {0}\n\ndef entry():\n    return TABLE"
    one, two = (write(text.format(value)).entry for value in (1, 2))
    assert code_digest(one) != code_digest(two)
    assert code_digest(one, without=("TABLE",)) == code_digest(two, without=("TABLE",))


def test_the_code_of_a_learner_is_all_that_it_refers_to() -> None:
    modules = {definition.module for definition in find_definitions(CCC)}
    assert {"wisecrowd.learn.ccc._correction", "wisecrowd.nn.deep_learner", "wisecrowd.nn.trainer"} <= modules
    assert "wisecrowd.learn.mmlc.mmlc" not in modules
    assert Definition("wisecrowd.em.loop", "run_em") in find_definitions(DawidSkene)
    assert not any(definition.module.startswith("wisecrowd.nn") for definition in find_definitions(DawidSkene))
    assert code_digest(CCC) == LearnerEntry("ccc").code()


def test_names_that_a_package_passes_on_are_followed() -> None:
    definitions = find_definitions("wisecrowd.bench.papers._mena")
    assert Definition("wisecrowd.simulate.mixtures", "simulate_gaussian_groups") in definitions
