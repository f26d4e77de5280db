"""Benchmarks: one file here is one table, a paper's or our own.

A file defines ``benchmark()``, which says which methods with which settings answer for which data, how often, and what
the paper found; its docstring is what ``wisecrowd bench list`` says of it. A file of yours works as well:
``wisecrowd bench run my_table.py``. It may also define ``quick()``, a small version that takes minutes, which is a benchmark
of its own: ``wisecrowd bench run zhang2024ccc --quick`` keeps its results as those of ``zhang2024ccc-quick``.

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

#: What the name of a small version ends in.
QUICK = "-quick"

__all__ = ["Benchmark", "find_benchmark", "list_benchmarks"]


def list_benchmarks() -> dict[str, str]:
    """Names of the benchmarks that come with wisecrowd, and the first line that each says of itself.

    >>> "all-aggregators" in list_benchmarks()
    True
    """
    return {name: (inspect.getdoc(module) or "").split("\n\n")[0] for name, module in _load_modules().items()}


def find_benchmark(name: str, *, quick: bool = False) -> Benchmark:
    """The benchmark of that name, or that a Python file defines; or its small version, if it has one.

    >>> find_benchmark("zheng2018")
    Traceback (most recent call last):
        ...
    wisecrowd.errors.UsageError: no benchmark is called 'zheng2018'. Did you mean 'zheng2017'? ...
    >>> find_benchmark("zhang2024ccc", quick=True).name
    'zhang2024ccc-quick'
    """
    if name.endswith(".py"):
        return _made(_name(Path(name).stem), _load(Path(name)), quick)
    modules = _load_modules()
    if name.endswith(QUICK):
        name, quick = name.removesuffix(QUICK), True
    if name not in modules:
        raise UsageError(
            f"no benchmark is called {name!r}.{suggest_name(name, modules)} There are: {', '.join(modules)}"
        )
    return _made(name, modules[name], quick)


def _load_modules() -> dict[str, ModuleType]:
    modules = (
        importlib.import_module(f"{papers.__name__}.{info.name}")
        for info in pkgutil.iter_modules(papers.__path__)
        if not info.name.startswith("_")
    )
    return {_name(module.__name__): module for module in modules if hasattr(module, "benchmark")}


def _made(name: str, module: ModuleType, quick: bool) -> Benchmark:
    if not quick:
        return replace(module.benchmark(), name=name)
    if not hasattr(module, "quick"):
        small = [other for other, module in _load_modules().items() if hasattr(module, "quick")]
        raise UsageError(f"{name} has no quick version; leave --quick out. These have one: {', '.join(small)}")
    return replace(module.quick(), name=name + QUICK)


def _name(module: str) -> str:
    return module.rsplit(".", 1)[-1].replace("_", "-")


def _load(path: Path) -> ModuleType:
    if not path.is_file():
        raise InputError(f"there is no file {path}; a benchmark is a name (wisecrowd bench list) or a Python file")
    # The processes that do the work import the file by its name, and get the path of this one.
    folder = str(path.parent.resolve())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    module = importlib.import_module(path.stem)
    if Path(module.__file__ or "").resolve() != path.resolve():
        raise UsageError(f"another module is called {path.stem!r} ({module.__file__}); rename {path}")
    if not hasattr(module, "benchmark"):
        raise InputError(f"{path} defines no function benchmark(); it should return a wisecrowd.bench.Benchmark")
    return module
