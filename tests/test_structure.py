"""Structure of the package: few modules at the root, private modules stay private, every class has its own name."""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import wisecrowd

ROOT = Path(wisecrowd.__file__).parent
TESTS = Path(__file__).parent


#: Imports from wisecrowd. Patterns take a hundredth of the time that syntax trees of all modules take.
IMPORT = re.compile(
    r"^\s*(?:from (?P<source>wisecrowd\b[\w.]*) import (?P<names>\([^)]*\)|.*)|import (?P<module>wisecrowd\b[\w.]*))",
    re.M,
)
CLASS = re.compile(r"^\s*class (\w+)[(:]", re.M)


@functools.cache
def module_texts() -> list[tuple[tuple[str, ...], str]]:
    """Return the dotted name of every module, as a tuple without "wisecrowd", and its text."""
    paths = sorted(ROOT.rglob("*.py"))
    return [(path.relative_to(ROOT).with_suffix("").parts, path.read_text(encoding="utf-8")) for path in paths]


def imported_names(text: str) -> Iterator[str]:
    """Yield the dotted names that a module imports from wisecrowd."""
    for found in IMPORT.finditer(text):
        if found["module"]:
            yield found["module"]
            continue
        names = re.sub(r"#.*", "", found["names"]).strip("()")
        yield from (f"{found['source']}.{name.split()[0]}" for name in names.split(",") if name.strip())


def test_imports_are_found_in_every_form() -> None:
    text = """
from wisecrowd.data import crowd, pairs as p  # reason
if TYPE_CHECKING:
    import wisecrowd.io
    from wisecrowd.em.loop import (
        run_em,  # comment, with a comma
        Statistics,
    )
from wisecrowdish import nothing
"""
    names = ["data.crowd", "data.pairs", "io", "em.loop.run_em", "em.loop.Statistics"]
    assert list(imported_names(text)) == [f"wisecrowd.{name}" for name in names]


def test_the_root_holds_packages() -> None:
    assert sorted(path.name for path in ROOT.glob("*.py")) == ["__init__.py", "__main__.py", "errors.py"]


def test_no_package_imports_a_private_name_of_another() -> None:
    violations = []
    for module, text in module_texts():
        for name in imported_names(text):
            parts = name.split(".")[1:]
            is_private = any(part.startswith("_") and not part.startswith("__") for part in parts)
            if is_private and parts[0] != module[0]:
                violations.append(f"{'.'.join(module)} imports {name}")
    assert violations == []


def test_no_two_classes_share_a_name() -> None:
    modules = defaultdict(list)
    for module, text in module_texts():
        for name in CLASS.findall(text):
            modules[name.lstrip("_")].append(".".join(module))
    assert {name: places for name, places in modules.items() if len(places) > 1} == {}


# ---------------------------------------------------------------------- tests mirror the tree


def find_owners(
    module: tuple[str, ...], importers: dict[tuple[str, ...], set[tuple[str, ...]]]
) -> set[tuple[str, ...]]:
    """Return the public modules that use a private module, directly or through other private modules."""
    owners, seen, waiting = set(), {module}, [module]
    while waiting:
        for importer in importers[waiting.pop()] - seen:
            seen.add(importer)
            if importer[-1].startswith("_") and importer[-1] != "__init__":
                waiting.append(importer)
            else:
                owners.add(importer)
    return owners


def path_of_tests(module: tuple[str, ...]) -> Path:
    """Return where the tests of a module are: ``x/y.py`` in ``x/test_y.py``, ``x/__init__.py`` in ``x/test_x.py``."""
    name = module[-2] if module[-1] == "__init__" else module[-1]
    return TESTS.joinpath(*module[:-1], f"test_{name.lstrip('_')}.py")


def needs_no_tests(module: tuple[str, ...], text: str) -> bool:
    """Return whether a module has nothing to test: type aliases only, or the declaration of a published table.

    `tests/bench/test_benchmark.py` builds and checks the tables of all papers.
    """
    has_class, has_function = ("\n" + word in text for word in ("class ", "def "))
    is_table = module[:2] == ("bench", "papers") and not module[-1].startswith("_")
    return not has_class and (is_table or not has_function)


def test_every_module_has_a_test_file_of_its_name() -> None:
    """A private module that serves a single public module may be tested with that one."""
    modules = {name: text for name, text in module_texts() if name[-1] != "__main__"}
    importers: dict[tuple[str, ...], set[tuple[str, ...]]] = defaultdict(set)
    for module, text in modules.items():
        for imported in imported_names(text):
            parts = tuple(imported.split(".")[1:])
            for target in (parts, parts[:-1]):
                importers[target].add(module)
    missing = []
    for module, text in modules.items():
        if module[-1] == "__init__" or needs_no_tests(module, text):
            continue
        places = [path_of_tests(module)]
        if module[-1].startswith("_") and len(owners := find_owners(module, importers)) == 1:
            places.append(path_of_tests(owners.pop()))
        if not any(place.exists() for place in places):
            missing.append("/".join(module))
    assert missing == []
