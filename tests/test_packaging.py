"""What a user gets: quick to import, explained in full, and the same story in every file."""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from importlib import metadata, resources
from itertools import product
from pathlib import Path
from types import ModuleType

import pytest

import wisecrowd

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

HEAVY = ["torch", "sklearn", "numba", "scipy.optimize", "scipy.stats", "matplotlib", "plotly", "typer", "rich", "pooch"]


def public_modules() -> list[str]:
    found = pkgutil.walk_packages(wisecrowd.__path__, "wisecrowd.")
    return ["wisecrowd", *(module.name for module in found if "._" not in module.name)]


def defined_in(module: ModuleType) -> Iterator[tuple[str, object]]:
    """The functions and classes that a module itself defines for others."""
    for name, value in list(vars(module).items()):
        # A cached or otherwise wrapped function is no function to inspect, but carries the one that it wraps.
        plain = inspect.unwrap(value) if callable(value) else value
        is_definition = inspect.isfunction(plain) or inspect.isclass(plain)
        if is_definition and plain.__module__ == module.__name__ and not name.startswith("_"):
            yield name, value


def any_matches(names: Iterable[str], patterns: Iterable[str]) -> bool:
    return any(fnmatch(name, pattern) for name, pattern in product(names, patterns))


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
def test_public_definitions_have_an_example(name: str) -> None:
    module = importlib.import_module(name)
    assert (module.__doc__ or "").strip(), f"{name} does not say what it is for"
    # The docstring of a command is what --help prints, so its examples are command lines.
    wanted = "" if name.startswith("wisecrowd.cli") else ">>>"
    # Not inspect.getdoc, which would take the parent's words for the child's.
    lacking = [thing for thing, value in defined_in(module) if not value.__doc__ or wanted not in value.__doc__]
    assert lacking == [], f"no docstring with a >>> example in {name}"


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
    asked = {re.split(r"[\[<>=~!; ]", entry)[0] for group in groups for entry in group}
    assert sorted(asked - pinned - {"wisecrowd"}) == []


def test_every_missing_extra_can_be_installed() -> None:
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    named = set(re.findall(r'MissingExtra\("(\w+)"', code))
    assert named, "the pattern no longer finds them"
    assert sorted(named - set(PROJECT["optional-dependencies"])) == []


def test_no_file_knows_the_machine_it_was_written_on() -> None:
    # In chunks, for this file is looked at too.
    slash = "/"
    places = [f"{slash}{top}{slash}" for top in ("home", "Users", "root", "work", "tmp")]
    paths = re.compile("|".join(rf"(?<![\w.}}<~-]){re.escape(place)}" for place in places))
    files = published_files()
    assert ROOT / "pyproject.toml" in files
    told = [f"{path.relative_to(ROOT)}: {found.group()}" for path in files if (found := paths.search(text_of(path)))]
    assert told == []


def test_only_the_makefile_knows_where_data_may_lie() -> None:
    beside = os.path.join("..", "shared")
    knowing = [str(path.relative_to(ROOT)) for path in published_files() if beside in text_of(path)]
    assert sorted(knowing) == ["Makefile"]
