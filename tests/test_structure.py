"""Structure of the package: few modules at the root, private modules stay private, every class has its own name."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import wisecrowd

ROOT = Path(wisecrowd.__file__).parent


def parsed_modules() -> Iterator[tuple[tuple[str, ...], ast.Module]]:
    """Yield the dotted name of every module, as a tuple without "wisecrowd", and its syntax tree."""
    for path in sorted(ROOT.rglob("*.py")):
        yield path.relative_to(ROOT).with_suffix("").parts, ast.parse(path.read_text(encoding="utf-8"))


def imported_names(tree: ast.Module) -> Iterator[str]:
    """Yield the dotted names that a module imports from wisecrowd."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "wisecrowd":
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "wisecrowd")


def test_the_root_holds_packages() -> None:
    assert sorted(path.name for path in ROOT.glob("*.py")) == ["__init__.py", "__main__.py", "errors.py"]


def test_no_package_imports_a_private_name_of_another() -> None:
    violations = []
    for module, tree in parsed_modules():
        for name in imported_names(tree):
            parts = name.split(".")[1:]
            is_private = any(part.startswith("_") and not part.startswith("__") for part in parts)
            if is_private and parts[0] != module[0]:
                violations.append(f"{'.'.join(module)} imports {name}")
    assert violations == []


def test_no_two_classes_share_a_name() -> None:
    modules = defaultdict(list)
    for module, tree in parsed_modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                modules[node.name.lstrip("_")].append(".".join(module))
    assert {name: places for name, places in modules.items() if len(places) > 1} == {}
