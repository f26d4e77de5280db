# mypy: disable-error-code="import-untyped, no-untyped-call, untyped-decorator, call-arg, unreachable"
# (numba and llvmlite are typed in part, and differently in every version)
"""The compiled form of the two sums: one pass over the votes, in Python for numba. `kernels.py` says what they mean.

Why it is fast: probabilities are multiplied, so that no vote costs a logarithm; a few classes live in registers,
because code is made for their number; and the rows that later votes need are fetched while the present ones are worked
on. Tables are flat and come as addresses, so that the code needs nothing of numba's at run time.

Importing this module imports numba; `_machine_code.py` does so only when the code it wants was never made before.
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

from wisecrowd.kernels.object_cache import Variant, target_machine
from wisecrowd.kernels.reference import LEAST

AHEAD = 24  # how many votes ahead rows are fetched
FAINT = 1e-200  # a product of probabilities below this may have lost its rivals to underflow
FADING = 1e-290  # a running product is put away as a logarithm before it falls below this
OPTIONS: dict[str, Any] = {
    "fastmath": {"reassoc", "contract", "arcp", "nsz"},  # what still lets a NaN show
    "error_model": "numpy",
}

Kernel = Callable[..., float]


def machine_code(variant: Variant) -> tuple[bytes, bool]:
    """Object code with one function called ``kernel``, and whether it runs in a process without numba.

    The function has numba's calling convention: it takes the addresses of its result and of an exception first.
    """
    number, text = types.float64, types.CPointer(getattr(types, variant.dtype))
    many, index, code = types.CPointer(number), types.CPointer(types.int64), types.CPointer(types.int32)
    size = types.int64
    if variant.kernel == "count":
        compiled = numba.cfunc(number(size, size, index, code, many, text, text), **OPTIONS)(_count(variant))
    else:
        signature = number(size, size, index, code, many, many, text, code, many, text, text, size, many)
        compiled = numba.cfunc(signature, **OPTIONS)(_expect(variant))
    module = binding.parse_assembly(compiled.inspect_llvm())
    # The wrapper only turns exceptions, of which there are none, into Python's. So declared, it is left out.
    wrapper = module.get_function(compiled.native_name)
    wrapper.linkage = "available_externally"
    module.get_function(compiled.native_name.removeprefix("cfunc.")).name = "kernel"
    return target_machine().emit_object(module), _called(module, wrapper.name) <= {"log", "exp"}


def _called(module: Any, wrapper: str) -> set[str]:
    """Names of functions outside the module that it calls, except through the wrapper."""
    outside = {f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")}
    inside = [f for f in module.functions if not f.is_declaration and f.name != wrapper]
    calls = (i for f in inside for block in f.blocks for i in block.instructions if i.opcode in ("call", "invoke"))
    return outside & {operand.name for call in calls for operand in call.operands}


def _expect(variant: Variant) -> Kernel:
    """Take both sums: add to ``classes`` and ``tally``, fill ``posterior`` if it is kept, return the log-likelihood.

    Without weights, ``prior`` adds up to 1 and no entry of ``label_probs`` exceeds 1, so that products only fall; with
    weights, both tables hold logarithms.
    """
    fixed, weighted, clamped = variant.n_classes, variant.weighted, variant.clamped
    registers = _registers(fixed)

    def expect(
        n_tasks: Any, n_classes: Any, offset: Any, pair: Any, weight: Any, prior: Any, label_probs: Any, gold: Any,
        classes: Any, tally: Any, posterior: Any, keep: Any, scratch: Any,
    ) -> float:  # fmt: skip
        if fixed:
            n_classes = fixed
            share, sums, spare = registers(), registers(), registers()
        else:
            share, sums, spare = scratch, classes, scratch
        for k in range(n_classes):
            sums[k] = 0.0
        last = offset[n_tasks] - 1
        log_likelihood, running = 0.0, 1.0
        for i in range(n_tasks):
            start, stop = offset[i], offset[i + 1]
            known = gold[i] if clamped else -1
            for k in range(n_classes):
                share[k] = prior[k]
            for n in range(start, stop):
                later = pair[min(n + AHEAD, last)] * n_classes
                _fetch(label_probs, later)
                _fetch(tally, later)
                row = pair[n] * n_classes
                for k in range(n_classes):
                    if weighted:
                        share[k] += label_probs[row + k] * weight[n]
                    else:
                        share[k] *= label_probs[row + k]

            if weighted:
                joint = _normalise(n_classes, share, known)
                log_likelihood += joint if start < stop else 0.0
            else:
                total, joint = 0.0, 0.0
                for k in range(n_classes):
                    total += share[k]
                    if known < 0 or k == known:
                        joint += share[k]
                if start == stop:
                    joint = 1.0
                if joint >= FAINT:
                    if running * joint < FADING:
                        log_likelihood += math.log(running)
                        running = 1.0
                    running *= joint
                    scale = 1.0 / total
                    for k in range(n_classes):
                        share[k] *= scale
                else:
                    # Only what is never handed to another function can stay in registers: hence the spare.
                    _add_logs(n_classes, start, stop, pair, prior, label_probs, spare)
                    log_likelihood += _normalise(n_classes, spare, known)
                    for k in range(n_classes):
                        share[k] = spare[k]

            if known >= 0:
                for k in range(n_classes):
                    share[k] = 1.0 if k == known else 0.0
            if start < stop:
                for k in range(n_classes):
                    sums[k] += share[k]
            for n in range(start, stop):
                row = pair[n] * n_classes
                for k in range(n_classes):
                    tally[row + k] += share[k] * weight[n] if weighted else share[k]
            if keep:
                for k in range(n_classes):
                    posterior[i * n_classes + k] = share[k]
        for k in range(n_classes):
            classes[k] = sums[k]
        return log_likelihood + math.log(running)

    return expect


def _count(variant: Variant) -> Kernel:
    """Add to the tally alone, for a given posterior."""
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
    """Log joint of one task, for products too small for a number: logarithms only where a running product fades."""
    for k in range(n_classes):
        logs, running = 0.0, max(prior[k], LEAST)
        for n in range(start, stop):
            factor = max(float(label_probs[pair[n] * n_classes + k]), LEAST)
            if running * factor < FADING:
                logs += math.log(running)
                running = 1.0
            running *= factor
        share[k] = logs + math.log(running)


@numba.njit(**OPTIONS)
def _normalise(n_classes: Any, share: Any, known: Any) -> float:
    """Turn a log joint into a posterior, in place; return its log-likelihood, or that of the known class."""
    peak = share[0]
    for k in range(1, n_classes):
        peak = max(peak, share[k])
    at_known = share[known] if known >= 0 else 0.0
    total = 0.0
    for k in range(n_classes):
        share[k] = math.exp(share[k] - peak)
        total += share[k]
    for k in range(n_classes):
        share[k] /= total
    return at_known if known >= 0 else peak + math.log(total)


def _registers(count: int) -> Any:
    """A function that makes room on the stack for so many numbers; unrolled loops turn it into registers."""

    @intrinsic
    def registers(_typing: Any) -> Any:
        def build(_target: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
            room = cgutils.alloca_once(builder, ir.ArrayType(ir.DoubleType(), count))
            return builder.bitcast(room, ir.DoubleType().as_pointer())

        return types.CPointer(types.float64)(), build

    return registers


@intrinsic
def _fetch(_typing: Any, table: Any, _index: Any) -> Any:
    """Ask the memory for the first 64 bytes or so from an entry of a table on, without waiting for them."""

    def build(target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        entry = builder.bitcast(builder.gep(arguments[0], [arguments[1]]), byte)
        for distance in (0, 32):  # a row may begin at the end of a cache line
            place = builder.gep(entry, [ir.IntType(64)(distance)])
            builder.call(prefetch, [place, flag(0), flag(3), flag(1)])  # to read, worth keeping, data
        return target.get_dummy_value()

    return types.void(table, types.int64), build
