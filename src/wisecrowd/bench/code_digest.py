"""Digests of the code that determines a result.

The code of a class or function is its definition and all definitions of `MODEL_PACKAGES` that it refers to, directly or
indirectly. Definitions are those at the top level of a module, so an addition to a module does not change the digests of what was
there before. Text for readers does not count: comments, docstrings, annotations, help texts and messages of errors.
"""

from __future__ import annotations

import ast
import hashlib
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import wisecrowd

#: Packages whose code determines the results of a benchmark. Code that all methods share (data, base, io) has a version instead,
#: `wisecrowd.bench.cells.SHARED_VERSION`.
MODEL_PACKAGES = (
    "aggregate",
    "bench.papers",
    "classifiers",
    "complete",
    "diagnose",
    "em",
    "evaluate",
    "kernels",
    "learn",
    "nn",
    "plan",
    "simulate",
)

#: Attributes of a class that describe it to readers.
DESCRIPTIONS = frozenset({"references", "breaks"})
#: Keyword arguments with text for readers.
TEXT_ARGUMENTS = frozenset({"help"})


class Definition(NamedTuple):
    """Top-level definition of a module.

    Attributes
    ----------
    module : str
        Dotted name of the module.
    name : str
        Name of the class, function or variable; empty for statements without a name.
    """

    module: str
    name: str


def code_digest(*code: Any, without: tuple[str, ...] = ()) -> str:
    """Return a digest of classes, functions or modules and of the modelling code that they refer to.

    Parameters
    ----------
    *code : type, callable, instance or str
        Class, function, instance of a class, or dotted name of a module, which stands for all of its definitions.
    without : tuple of str, default=()
        Names of definitions that do not count, such as a table of settings of which the caller records the ones it uses.

    Returns
    -------
    str

    Examples
    --------
    >>> from wisecrowd import DawidSkene, OneCoin
    >>> code_digest(DawidSkene) == code_digest(OneCoin)
    False
    """
    definitions = find_definitions(*code, without=without)
    digests = sorted({_parse_module(one.module).digests[one.name] for one in definitions})
    return hashlib.sha256("".join(digests).encode()).hexdigest()[:16]


def find_definitions(*code: Any, without: tuple[str, ...] = ()) -> frozenset[Definition]:
    """Return the definitions that determine the results of classes, functions or modules.

    Parameters
    ----------
    *code : type, callable, instance or str
        Class, function, instance of a class, or dotted name of a module.
    without : tuple of str, default=()
        Names of definitions that do not count, nor what they alone refer to.

    Returns
    -------
    frozenset of Definition

    Examples
    --------
    >>> from wisecrowd import DawidSkene
    >>> Definition("wisecrowd.em.loop", "run_em") in find_definitions(DawidSkene)
    True
    """
    reached: set[Definition] = set()
    for one in code:
        named = one if isinstance(one, str) or hasattr(one, "__qualname__") else type(one)
        root = (named, "") if isinstance(named, str) else (named.__module__, named.__qualname__)
        reached |= _find_reachable(*root, without)
    return frozenset(reached)


@cache
def _find_reachable(module: str, name: str, without: tuple[str, ...]) -> frozenset[Definition]:
    """Return the definitions that one definition, or all of a module, refers to, including itself."""
    top = name.partition(".")[0]
    reached: set[Definition] = set()
    waiting = list(_resolve(module, top)) or list(_list_definitions(module))  # a lambda stands for its module
    while waiting:
        definition = waiting.pop()
        if definition not in reached and definition.name not in without:
            reached.add(definition)
            waiting += _find_references(definition)
    return frozenset(reached)


def _find_references(definition: Definition) -> Iterator[Definition]:
    """Yield the definitions to which one refers directly, and the unnamed statements of its module."""
    module = _parse_module(definition.module)
    if "" in module.digests:
        yield Definition(definition.module, "")
    for name, attribute in module.references.get(definition.name, ()):
        if name in module.digests:
            yield Definition(definition.module, name)
        elif name in module.imports:
            source, imported = module.imports[name]
            yield from _resolve_import(source, imported, attribute)


def _resolve_import(source: str, imported: str, attribute: str) -> Iterator[Definition]:
    """Yield the definitions of an imported name, which may be a module of which one attribute is used."""
    submodule = f"{source}.{imported}" if imported else source
    if _find_file(submodule) is None:
        yield from _resolve(source, imported)
    elif attribute:
        yield from _resolve(submodule, attribute)
    else:
        yield from _list_definitions(submodule)


def _resolve(module: str, name: str) -> Iterator[Definition]:
    """Yield the definition of a name, which the module may have imported itself."""
    if _find_file(module) is None:
        return
    parsed = _parse_module(module)
    if name in parsed.digests:
        yield Definition(module, name)
    elif name in parsed.imports:
        yield from _resolve_import(*parsed.imports[name], "")


def _list_definitions(module: str) -> Iterator[Definition]:
    """Yield all definitions of a module, if it determines results."""
    if _find_file(module) is not None:
        yield from (Definition(module, name) for name in _parse_module(module).digests)


@cache
def _find_file(module: str) -> Path | None:
    """Return the source file of a module that determines results, or None.

    Modules outside of wisecrowd count if they are loaded and define a benchmark or an entry of their own.
    """
    parts = module.split(".")
    if parts[0] != "wisecrowd":
        loaded = sys.modules.get(module)
        file = Path(getattr(loaded, "__file__", None) or "")
        is_library = any(file.is_relative_to(folder) for folder in sysconfig.get_paths().values())
        return file if file.suffix == ".py" and not is_library else None
    inside = ".".join(parts[1:])
    if not any(inside == package or inside.startswith(f"{package}.") for package in MODEL_PACKAGES):
        return None
    path = Path(wisecrowd.__file__).parent.joinpath(*parts[1:])
    candidates = (path.with_suffix(".py"), path / "__init__.py")
    return next((file for file in candidates if file.is_file()), None)


@dataclass
class _Module:
    """Definitions of a module with their digests, and names that they refer to."""

    #: Digest by name.
    digests: dict[str, str] = field(default_factory=dict)
    #: Names with the attribute that is read from them, by definition.
    references: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    #: Module and name in it by local name; an import anywhere in the module counts for all of it.
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)


@cache
def _parse_module(module: str) -> _Module:
    """Parse the source of a module."""
    file = _find_file(module)
    if file is None:
        return _Module()
    tree = ast.parse(file.read_text(encoding="utf-8"))
    parsed = _Module(imports=_read_imports(tree))
    texts: dict[str, list[str]] = {}
    for statement in tree.body:
        if isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.dump(statement.test):
            continue
        names = _get_defined_names(statement)
        code = _TextRemover().visit(statement)
        if code is None or isinstance(code, ast.Import | ast.ImportFrom | ast.Pass):
            continue
        for name in names:
            texts.setdefault(name, []).append(ast.dump(code))
            parsed.references.setdefault(name, set()).update(_read_references(code))
    parsed.digests = {name: hashlib.sha256("\n".join(dumps).encode()).hexdigest()[:16] for name, dumps in texts.items()}
    return parsed


def _read_imports(tree: ast.Module) -> dict[str, tuple[str, str]]:
    """Return module and name by local name, for all absolute imports of a module."""
    imports: dict[str, tuple[str, str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            imports |= {alias.asname or alias.name: (node.module, alias.name) for alias in node.names}
        elif isinstance(node, ast.Import):
            imports |= {alias.asname: (alias.name, "") for alias in node.names if alias.asname}
    return imports


def _get_defined_names(statement: ast.stmt) -> list[str]:
    """Return the names that a top-level statement defines or changes; one empty name if there are none."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    for node in ast.walk(statement):
        if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store):
            base = node.value
            names |= {base.id} if isinstance(base, ast.Name) else set()
    return sorted(names) or [""]


def _read_references(code: ast.AST) -> set[tuple[str, str]]:
    """Return the names in code, each with the attribute that is read from it or an empty text."""
    references: set[tuple[str, str]] = set()
    with_attribute: set[int] = set()
    for node in ast.walk(code):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            references.add((node.value.id, node.attr))
            with_attribute.add(id(node.value))
    for node in ast.walk(code):
        if isinstance(node, ast.Name) and id(node) not in with_attribute:
            references.add((node.id, ""))
    return references


class _TextRemover(ast.NodeTransformer):
    """Transformer that removes text for readers, annotations of functions, and imports inside of functions."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Remove docstring and annotations of a function."""
        _remove_docstring(node)
        node.returns = None
        for argument in ast.walk(node.args):
            if isinstance(argument, ast.arg):
                argument.annotation = None
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """Remove docstring and descriptions of a class."""
        _remove_docstring(node)
        node.body = [part for part in node.body if not _is_description(part)]
        return self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        """Remove texts that document attributes, and warnings."""
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return None
        is_warning = isinstance(node.value, ast.Call) and getattr(node.value.func, "attr", "") == "warn"
        return None if is_warning else self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        """Remove the message of an error."""
        if isinstance(node.exc, ast.Call):
            node.exc = node.exc.func
        return self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        """Remove the message of an assertion."""
        node.msg = None
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Remove help texts."""
        node.keywords = [keyword for keyword in node.keywords if keyword.arg not in TEXT_ARGUMENTS]
        return self.generic_visit(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Remove an import, because the imported definitions count by themselves."""

    def visit_Import(self, node: ast.Import) -> None:
        """Remove an import."""


def _remove_docstring(node: ast.FunctionDef | ast.ClassDef) -> None:
    """Remove the docstring of a function or class."""
    if ast.get_docstring(node, clean=False) is not None:
        node.body = node.body[1:]


def _is_description(part: ast.stmt) -> bool:
    """Return whether a statement of a class sets an attribute for readers."""
    targets = part.targets if isinstance(part, ast.Assign) else [part.target] if isinstance(part, ast.AnnAssign) else []
    return any(isinstance(target, ast.Name) and target.id in DESCRIPTIONS for target in targets)
