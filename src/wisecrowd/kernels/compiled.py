# mypy: disable-error-code="import-untyped, no-untyped-call, untyped-decorator, call-arg, unreachable"
# (numba and llvmlite are typed in part, and differently in every version)
"""Compiled kernels: one pass over the votes, written in Python for numba.

The kernels multiply probabilities, so that a vote needs no logarithm. Code is generated for the exact number of classes
if that is small, so that a posterior stays in registers. Table rows of later votes are prefetched while the current vote
is processed. Tables are flat and passed by address, so that the code needs no numba at run time.

Importing this module imports numba. `object_cache` imports it only if the machine code is not in the cache.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba
from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from wisecrowd.kernels.expectation import MIN_PROB
from wisecrowd.kernels.object_cache import KernelVariant, target_machine

PREFETCH_DISTANCE = 24  # votes; table rows are requested this far ahead to hide the latency of memory
MIN_JOINT = 1e-200  # a smaller product of probabilities may have lost its alternatives to underflow
MIN_RUNNING_PRODUCT = 1e-290  # a running product is converted to a logarithm before it falls below this
OPTIONS: dict[str, Any] = {
    "fastmath": {"reassoc", "contract", "arcp", "nsz"},  # without "nnan", so that a NaN propagates
    "error_model": "numpy",
}

PythonKernel = Callable[..., float]


def compile_kernel(variant: KernelVariant) -> tuple[bytes, bool]:
    """Compile a kernel to object code.

    Parameters
    ----------
    variant : KernelVariant
        Kernel and types.

    Returns
    -------
    code : bytes
        Object file with one function called ``kernel``. It has numba's calling convention: the addresses of its result
        and of an exception come first.
    self_contained : bool
        Whether the code runs in a process without numba.

    Examples
    --------
    >>> code, self_contained = compile_kernel(KernelVariant("count", "float64"))
    >>> len(code) > 0, self_contained
    (True, True)
    """
    number, table = types.float64, types.CPointer(getattr(types, variant.dtype))
    numbers, index, code = types.CPointer(number), types.CPointer(types.int64), types.CPointer(types.int32)
    size = types.int64
    if variant.kernel == "count":
        compiled = numba.cfunc(number(size, size, index, code, numbers, table, table), **OPTIONS)(_build_count(variant))
    else:
        signature = number(size, size, index, code, numbers, numbers, table, code, numbers, table, table, size, numbers)
        compiled = numba.cfunc(signature, **OPTIONS)(_build_expect(variant))
    module = binding.parse_assembly(compiled.inspect_llvm())
    # The wrapper only converts exceptions, and there are none. This linkage leaves it out of the object file.
    wrapper = module.get_function(compiled.native_name)
    wrapper.linkage = "available_externally"
    module.get_function(compiled.native_name.removeprefix("cfunc.")).name = "kernel"
    return target_machine().emit_object(module), _external_calls(module, wrapper.name) <= {"log", "exp"}


def _external_calls(module: Any, wrapper: str) -> set[str]:
    """Return the names of functions outside the module that it calls, except through the wrapper."""
    outside = {f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")}
    inside = [f for f in module.functions if not f.is_declaration and f.name != wrapper]
    calls = (i for f in inside for block in f.blocks for i in block.instructions if i.opcode in ("call", "invoke"))
    return outside & {operand.name for call in calls for operand in call.operands}


def _build_expect(variant: KernelVariant) -> PythonKernel:
    """Return the kernel that adds to ``class_counts`` and ``tally`` and returns the log-likelihood.

    Without weights, ``prior`` sums to 1 and no entry of ``label_probs`` exceeds 1, so that products only decrease. With
    weights, both tables hold logarithms.
    """
    fixed_classes, weighted, has_gold = variant.n_classes, variant.weighted, variant.has_gold
    registers = _build_registers(fixed_classes)

    def expect(
        n_tasks: Any, n_classes: Any, offset: Any, pair: Any, weight: Any, prior: Any, label_probs: Any, gold: Any,
        class_counts: Any, tally: Any, posterior: Any, store_posterior: Any, scratch: Any,
    ) -> float:  # fmt: skip
        if fixed_classes:
            n_classes = fixed_classes
            share, sums, spare = registers(), registers(), registers()
        else:
            share, sums, spare = scratch, class_counts, scratch
        for k in range(n_classes):
            sums[k] = 0.0
        last = offset[n_tasks] - 1
        log_likelihood, running = 0.0, 1.0
        for i in range(n_tasks):
            start, stop = offset[i], offset[i + 1]
            gold_class = gold[i] if has_gold else -1
            for k in range(n_classes):
                share[k] = prior[k]
            for n in range(start, stop):
                later = pair[min(n + PREFETCH_DISTANCE, last)] * n_classes
                _prefetch(label_probs, later)
                _prefetch(tally, later)
                row = pair[n] * n_classes
                for k in range(n_classes):
                    if weighted:
                        share[k] += label_probs[row + k] * weight[n]
                    else:
                        share[k] *= label_probs[row + k]

            if weighted:
                joint = _normalize(n_classes, share, gold_class)
                log_likelihood += joint if start < stop else 0.0
            else:
                total, joint = 0.0, 0.0
                for k in range(n_classes):
                    total += share[k]
                    if gold_class < 0 or k == gold_class:
                        joint += share[k]
                if start == stop:
                    joint = 1.0
                if joint >= MIN_JOINT:
                    if running * joint < MIN_RUNNING_PRODUCT:
                        log_likelihood += math.log(running)
                        running = 1.0
                    running *= joint
                    scale = 1.0 / total
                    for k in range(n_classes):
                        share[k] *= scale
                else:
                    # An array that is passed to another function cannot stay in registers, hence the spare one.
                    _add_logs(n_classes, start, stop, pair, prior, label_probs, spare)
                    log_likelihood += _normalize(n_classes, spare, gold_class)
                    for k in range(n_classes):
                        share[k] = spare[k]

            if gold_class >= 0:
                for k in range(n_classes):
                    share[k] = 1.0 if k == gold_class else 0.0
            if start < stop:
                for k in range(n_classes):
                    sums[k] += share[k]
            for n in range(start, stop):
                row = pair[n] * n_classes
                for k in range(n_classes):
                    tally[row + k] += share[k] * weight[n] if weighted else share[k]
            if store_posterior:
                for k in range(n_classes):
                    posterior[i * n_classes + k] = share[k]
        for k in range(n_classes):
            class_counts[k] = sums[k]
        return log_likelihood + math.log(running)

    return expect


def _build_count(variant: KernelVariant) -> PythonKernel:
    """Return the kernel that adds a given posterior to the tally."""
    weighted = variant.weighted

    def count(
        n_tasks: Any, n_classes: Any, offset: Any, pair: Any, weight: Any, posterior: Any, tally: Any
    ) -> float:  # fmt: skip
        for i in range(n_tasks):
            for n in range(offset[i], offset[i + 1]):
                row = pair[n] * n_classes
                for k in range(n_classes):
                    share = posterior[i * n_classes + k]
                    tally[row + k] += share * weight[n] if weighted else share
        return 0.0

    return count


@numba.njit(**OPTIONS)
def _add_logs(n_classes: Any, start: Any, stop: Any, pair: Any, prior: Any, label_probs: Any, share: Any) -> None:
    """Compute the log joint of one task whose products underflow; take a logarithm only when a running product is small."""
    for k in range(n_classes):
        logs, running = 0.0, max(prior[k], MIN_PROB)
        for n in range(start, stop):
            factor = max(float(label_probs[pair[n] * n_classes + k]), MIN_PROB)
            if running * factor < MIN_RUNNING_PRODUCT:
                logs += math.log(running)
                running = 1.0
            running *= factor
        share[k] = logs + math.log(running)


@numba.njit(**OPTIONS)
def _normalize(n_classes: Any, share: Any, gold_class: Any) -> float:
    """Convert a log joint into a posterior in place; return its log-likelihood, or that of the gold class."""
    peak = share[0]
    for k in range(1, n_classes):
        peak = max(peak, share[k])
    at_gold = share[gold_class] if gold_class >= 0 else 0.0
    total = 0.0
    for k in range(n_classes):
        share[k] = math.exp(share[k] - peak)
        total += share[k]
    for k in range(n_classes):
        share[k] /= total
    return at_gold if gold_class >= 0 else peak + math.log(total)


def _build_registers(count: int) -> Any:
    """Return a function that allocates numbers on the stack; unrolled loops turn them into registers."""

    @intrinsic
    def registers(_typing: Any) -> Any:
        def build(_target: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
            space = cgutils.alloca_once(builder, ir.ArrayType(ir.DoubleType(), count))
            return builder.bitcast(space, ir.DoubleType().as_pointer())

        return types.CPointer(types.float64)(), build

    return registers


@intrinsic
def _prefetch(_typing: Any, table: Any, _index: Any) -> Any:
    """Prefetch about 64 bytes of a table from an entry on."""

    def build(target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        entry = builder.bitcast(builder.gep(arguments[0], [arguments[1]]), byte)
        for distance in (0, 32):  # a row may begin at the end of a cache line
            address = builder.gep(entry, [ir.IntType(64)(distance)])
            builder.call(prefetch, [address, flag(0), flag(3), flag(1)])  # for reading, keep in all caches, data
        return target.get_dummy_value()

    return types.void(table, types.int64), build
