"""Tests of the package as a whole: import, documentation, versions and published files."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import inspect
import os
import pkgutil
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatch
from importlib import metadata, resources
from itertools import product
from pathlib import Path
from types import ModuleType

import pytest
from pydantic import BaseModel

import wisecrowd
from wisecrowd.base.registry import methods

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

HEAVY = ["torch", "sklearn", "numba", "scipy.optimize", "scipy.stats", "matplotlib", "plotly", "typer", "rich", "pooch"]

#: Modules whose docstrings are the text of ``--help`` and ``bench list``, which have no sections.
HELP_TEXT_MODULES = [
    "wisecrowd.cli",
    "wisecrowd.cli.*",
    "wisecrowd.bench.papers",
    "wisecrowd.bench.papers.*",
    "*.__main__",
]
#: Top-level packages whose constructors are checked; those inherited from elsewhere are documented there.
PACKAGES = {"wisecrowd"}


def public_modules() -> list[str]:
    modules = pkgutil.walk_packages(wisecrowd.__path__, "wisecrowd.")
    return ["wisecrowd", *(module.name for module in modules if "._" not in module.name)]


def defined_in(module: ModuleType) -> Iterator[tuple[str, object]]:
    """Yield the public functions and classes that a module itself defines."""
    for name, value in list(vars(module).items()):
        # The wrapper of a cached function is not a function itself.
        plain = inspect.unwrap(value) if callable(value) else value
        is_definition = inspect.isfunction(plain) or inspect.isclass(plain)
        if is_definition and plain.__module__ == module.__name__ and not name.startswith("_"):
            yield name, value


def any_matches(names: Iterable[str], patterns: Iterable[str]) -> bool:
    return any(fnmatch(name, pattern) for name, pattern in product(names, patterns))


def documented_parameters(docstring: str) -> set[str]:
    """Return the names in the sections Parameters and Attributes that have a type and a meaning."""
    lines = inspect.cleandoc(docstring).splitlines()
    names: set[str] = set()
    section = ""
    for position, line in enumerate(lines):
        following = lines[position + 1] if position + 1 < len(lines) else ""
        if line and re.fullmatch("-{3,}", following):
            section = line
        if section not in ("Parameters", "Attributes"):
            continue
        entry = re.fullmatch(r"(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: : (\S.*))?", line)
        # Variadic parameters have no type in numpydoc.
        if entry and following.startswith("    ") and (entry[2] or line.startswith("*")):
            names |= {name.strip(" *") for name in entry[1].split(",")}
    return names


def signature_parameters(function: Callable[..., object]) -> list[str]:
    parameters = inspect.signature(function).parameters
    return [name for name in parameters if name not in ("self", "cls") and not name.startswith("_")]


def constructor_parameters(cls: type) -> list[str]:
    """Return the parameters of a constructor that this package defines; a protocol has none."""
    owner = next(base for base in cls.__mro__ if {"__init__", "__new__"} & vars(base).keys())
    if owner.__module__.split(".")[0] not in PACKAGES or getattr(owner, "_is_protocol", False):
        return []
    return signature_parameters(cls)


def public_methods(cls: type) -> Iterator[tuple[str, Callable[..., object]]]:
    """Yield the methods that a class itself defines; a dataclass field that holds a function is data."""
    for name, value in vars(cls).items():
        function = inspect.unwrap(value.__func__ if isinstance(value, classmethod | staticmethod) else value)
        if (
            inspect.isfunction(function)
            and not name.startswith("_")
            and name not in getattr(cls, "__dataclass_fields__", ())
        ):
            yield name, function


def undocumented_parameters(module: ModuleType) -> Iterator[str]:
    """Yield a line for each public callable of a module that does not document all of its parameters."""
    for name, value in defined_in(module):
        documented = documented_parameters(value.__doc__ or "")
        if not inspect.isclass(value):
            missing = {name: [parameter for parameter in signature_parameters(value) if parameter not in documented]}
        elif issubclass(value, BaseModel):
            missing = {name: [field for field, info in value.model_fields.items() if not info.description]}
        else:
            missing = {name: [parameter for parameter in constructor_parameters(value) if parameter not in documented]}
        if inspect.isclass(value):
            for method_name, function in public_methods(value):
                documented = documented_parameters(function.__doc__ or "")
                parameters = signature_parameters(function)
                missing[f"{name}.{method_name}"] = [
                    parameter for parameter in parameters if parameter not in documented
                ]
        for callable_name, parameters in missing.items():
            if parameters:
                yield f"{module.__name__}.{callable_name}: {', '.join(parameters)}"


def published_files() -> list[Path]:
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        files = [ROOT / name for name in listed.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        ignored = [".git", *(line.strip("/") for line in text_of(ROOT / ".gitignore").split())]
        files = [path for path in ROOT.rglob("*") if not any_matches(path.relative_to(ROOT).parts, ignored)]
    return [path for path in files if path.is_file()]


def text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


def test_import_is_light() -> None:
    code = f"import sys, wisecrowd; print(*(name for name in {HEAVY} if name in sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == [], "these belong inside the functions that need them"


def test_import_says_nothing_and_warns_of_nothing() -> None:
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", "import wisecrowd"], capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_public_names_exist_and_are_listed_once() -> None:
    assert sorted(set(wisecrowd.__all__)) == sorted(wisecrowd.__all__)
    assert [name for name in wisecrowd.__all__ if not hasattr(wisecrowd, name)] == []
    assert set(wisecrowd.__all__) <= set(dir(wisecrowd)), "completion in a notebook asks dir()"


def test_top_level_names_are_documented_with_an_example() -> None:
    values = {name: getattr(wisecrowd, name) for name in wisecrowd.__all__}
    callables = {name: value for name, value in values.items() if callable(value)}
    assert [name for name, value in callables.items() if ">>>" not in (inspect.getdoc(value) or "")] == []


@pytest.mark.parametrize("name", public_modules())
def test_public_definitions_have_a_docstring(name: str) -> None:
    module = importlib.import_module(name)
    assert (module.__doc__ or "").strip(), f"{name} has no docstring"
    # Not inspect.getdoc, which returns the docstring of the parent where a class has none.
    undocumented = [definition for definition, value in defined_in(module) if not (value.__doc__ or "").strip()]
    assert undocumented == [], f"definitions without a docstring in {name}"


@pytest.mark.parametrize("name", [name for name in public_modules() if not any_matches([name], HELP_TEXT_MODULES)])
def test_public_callables_document_their_parameters(name: str) -> None:
    report = "\n".join(undocumented_parameters(importlib.import_module(name)))
    assert not report, f"parameters without a name, type and meaning in the docstring:\n{report}"


SAMPLE_MODULE = '''
"""Module with complete and incomplete docstrings."""

from dataclasses import dataclass
from typing import NamedTuple

from pydantic import BaseModel, Field


def complete(votes, *, tol=1e-7, **settings):
    """Fit a model.

    Parameters
    ----------
    votes : Crowd
        Votes.
    tol : float, default 1e-7
        Tolerance.
    **settings
        Further settings.

    Examples
    --------
    >>> complete([])
    """


def without_section(votes):
    """Fit a model to votes."""


def incomplete(votes, tol, max_iter, workers):
    """Fit a model.

    Parameters
    ----------
    votes
        Entry without a type.
    max_iter : int
    workers : int
        Number of workers.

    Returns
    -------
    tol : float
        Result, which is no parameter.
    """


class Pair(NamedTuple):
    """Two numbers.

    Attributes
    ----------
    first, second : int
        Numbers.
    """

    first: int
    second: int


@dataclass
class Model:
    """Model.

    Attributes
    ----------
    tol : float
        Tolerance.
    """

    tol: float
    seed: int = 0

    @classmethod
    def load(cls, path):
        """Load a model."""

    def _private(self, path): ...


class Body(BaseModel):
    """Body of a request."""

    task: str = Field(description="Task id.")
    label: str
'''


def test_missing_parameters_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wisecrowd_sample.py").write_text(SAMPLE_MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys.modules[__name__], "PACKAGES", {"wisecrowd_sample"})
    assert list(undocumented_parameters(importlib.import_module("wisecrowd_sample"))) == [
        "wisecrowd_sample.without_section: votes",
        "wisecrowd_sample.incomplete: votes, tol, max_iter",
        "wisecrowd_sample.Model: seed",
        "wisecrowd_sample.Model.load: path",
        "wisecrowd_sample.Body: label",
    ]


@pytest.mark.parametrize("name", methods())
def test_help_texts_of_methods_are_sentences(name: str) -> None:
    method = methods()[name]
    texts = {field.name: field.metadata.get("help", "") for field in dataclasses.fields(method)}
    faulty = {field: text for field, text in texts.items() if not (text[:1].isupper() and text.endswith("."))}
    assert faulty == {}, f"help texts of {method.__name__} start with a capital letter and end with a period"


def test_version_is_one() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert metadata.version("wisecrowd") == PROJECT["version"] == wisecrowd.__version__
    assert re.findall(r"^version: (.+)$", citation, re.MULTILINE) == [PROJECT["version"]]
    assert re.search(rf"^## \[?{re.escape(PROJECT['version'])}\b", changelog, re.MULTILINE)


def test_types_and_licence_travel_with_the_package() -> None:
    assert resources.files("wisecrowd").joinpath("py.typed").is_file()
    assert PROJECT["license"] == "Apache-2.0"
    assert PROJECT["license-files"] == ["LICENSE"]
    assert "END OF TERMS AND CONDITIONS" in (ROOT / "LICENSE").read_text(encoding="utf-8")


def test_every_dependency_is_constrained() -> None:
    """A run of the Makefile today and one next year install the same versions."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {line.split("==")[0] for line in lines if "==" in line}
    groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    required = {re.split(r"[\[<>=~!; ]", entry)[0] for group in groups for entry in group}
    assert sorted(required - pinned - {"wisecrowd"}) == []


def test_every_extra_is_checked_and_described() -> None:
    """``make test-extras`` installs each by itself, and a page says what it is for."""
    specification = importlib.util.spec_from_file_location("install_extras", ROOT / ".ci" / "install_extras.py")
    assert specification is not None
    assert specification.loader is not None
    checks = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(checks)
    assert sorted(checks.CHECKS) == sorted([checks.BASE, *checks.list_extras()])
    page = (ROOT / "docs" / "getting-started.md").read_text(encoding="utf-8")
    described = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert sorted(described) == sorted(checks.list_extras())
    everything = re.search(r"\[([\w,]+)\]", PROJECT["optional-dependencies"]["all"][0])
    assert everything is not None
    assert sorted(everything[1].split(",")) == sorted(checks.list_extras())


def test_every_missing_extra_can_be_installed() -> None:
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    named = set(re.findall(r'MissingExtra\("(\w+)"', code))
    assert named, "the pattern no longer finds them"
    assert sorted(named - set(PROJECT["optional-dependencies"])) == []


@pytest.mark.slow
def test_no_file_knows_the_machine_it_was_written_on() -> None:
    # The paths are assembled from parts, because this file is checked too.
    slash = "/"
    places = [f"{slash}{top}{slash}" for top in ("home", "Users", "root", "work", "tmp")]
    paths = re.compile("|".join(rf"(?<![\w.}}<~-]){re.escape(place)}" for place in places))
    files = published_files()
    assert ROOT / "pyproject.toml" in files
    leaks = [f"{path.relative_to(ROOT)}: {match.group()}" for path in files if (match := paths.search(text_of(path)))]
    assert leaks == []


def test_only_the_makefile_knows_where_data_may_lie() -> None:
    beside = os.path.join("..", "shared")
    knowing = [str(path.relative_to(ROOT)) for path in published_files() if beside in text_of(path)]
    assert sorted(knowing) == ["Makefile"]
