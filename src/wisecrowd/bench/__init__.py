"""Benchmarks that reproduce published tables, and tables of our own.

Each module of `wisecrowd.bench.papers` is one benchmark. It defines ``benchmark()``, which returns a
`Benchmark`: methods with their settings, datasets, the number of seeds and the published figures. The first paragraph of
the module docstring is the description in ``wisecrowd bench list``. A module may also define ``quick()``, a small version
that runs in minutes. It is a benchmark of its own: ``wisecrowd bench run zhang2024ccc --quick`` stores its results as
``zhang2024ccc-quick``. A Python file outside the package works as well: ``wisecrowd bench run my_table.py``.

Examples
--------
>>> from wisecrowd.bench import find_benchmark
>>> find_benchmark("zheng2017").title
'Zheng et al. 2017, table 6: truth inference on five crowds'
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from wisecrowd.bench import papers
from wisecrowd.bench.benchmark import Benchmark
from wisecrowd.errors import InputError, UsageError, suggest_name

#: Suffix of the name of a small version.
QUICK = "-quick"

__all__ = ["Benchmark", "find_benchmark", "list_benchmarks"]


def list_benchmarks() -> dict[str, str]:
    """Return the names of the benchmarks in wisecrowd, each with its description.

    Returns
    -------
    dict of str to str
        Description by name.

    Examples
    --------
    >>> "all-aggregators" in list_benchmarks()
    True
    """
    return {name: (inspect.getdoc(module) or "").split("\n\n")[0] for name, module in _load_modules().items()}


def find_benchmark(name: str, *, quick: bool = False) -> Benchmark:
    """Return a benchmark by its name, or the one that a Python file defines.

    Parameters
    ----------
    name : str
        Name from `list_benchmarks`, or the path of a Python file that defines ``benchmark()``.
    quick : bool, default=False
        Return the small version. A name that ends with ``-quick`` does the same.

    Returns
    -------
    Benchmark

    Raises
    ------
    UsageError
        If no benchmark has this name, or if it has no small version.
    InputError
        If the file does not exist or defines no ``benchmark()``.

    Examples
    --------
    >>> find_benchmark("zheng2018")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.UsageError: no benchmark is called 'zheng2018'. Did you mean 'zheng2017'? ...
    >>> find_benchmark("zhang2024ccc", quick=True).name
    'zhang2024ccc-quick'
    """
    if name.endswith(".py"):
        return _make_benchmark(_format_name(Path(name).stem), _load_file(Path(name)), quick)
    modules = _load_modules()
    if name.endswith(QUICK):
        name, quick = name.removesuffix(QUICK), True
    if name not in modules:
        raise UsageError(
            f"no benchmark is called {name!r}.{suggest_name(name, modules)} There are: {', '.join(modules)}"
        )
    return _make_benchmark(name, modules[name], quick)


def _load_modules() -> dict[str, ModuleType]:
    """Import the modules of `wisecrowd.bench.papers` that define a benchmark."""
    modules = (
        importlib.import_module(f"{papers.__name__}.{info.name}")
        for info in pkgutil.iter_modules(papers.__path__)
        if not info.name.startswith("_")
    )
    return {_format_name(module.__name__): module for module in modules if hasattr(module, "benchmark")}


def _make_benchmark(name: str, module: ModuleType, quick: bool) -> Benchmark:
    """Call ``benchmark()`` or ``quick()`` of a module and set the name."""
    if not quick:
        return replace(module.benchmark(), name=name)
    if not hasattr(module, "quick"):
        names = [other for other, module in _load_modules().items() if hasattr(module, "quick")]
        raise UsageError(f"{name} has no quick version; leave --quick out. These have one: {', '.join(names)}")
    return replace(module.quick(), name=name + QUICK)


def _format_name(module: str) -> str:
    """Return the name of a benchmark for the name of its module."""
    return module.rsplit(".", 1)[-1].replace("_", "-")


def _load_file(path: Path) -> ModuleType:
    """Import a Python file that defines a benchmark."""
    if not path.is_file():
        raise InputError(f"there is no file {path}; a benchmark is a name (wisecrowd bench list) or a Python file")
    # The processes that run the cells import the file by its name; they inherit sys.path.
    folder = str(path.parent.resolve())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    module = importlib.import_module(path.stem)
    if Path(module.__file__ or "").resolve() != path.resolve():
        raise UsageError(f"another module is called {path.stem!r} ({module.__file__}); rename {path}")
    if not hasattr(module, "benchmark"):
        raise InputError(f"{path} defines no function benchmark(); it should return a wisecrowd.bench.Benchmark")
    return module
