# mypy: disable-error-code="import-untyped, no-untyped-call, no-any-return, call-overload, call-arg, attr-defined, unreachable"
# (numba and llvmlite are typed in part, and differently in every version)
"""The compiled form of the two sums: one pass over the votes, written for numba. `kernels.py` says what they mean.

Why it is fast: probabilities are multiplied, so that no vote costs a logarithm; the few classes of a task live in
registers, because their number is part of the type of ``prior`` when that is a tuple; and the rows that later votes
need are fetched while the present ones are worked on. Importing this module imports numba.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from wisecrowd.kernels import LEAST

Function = TypeVar("Function", bound=Callable[..., Any])

REGISTERS = 10  # up to so many classes the prior comes as a tuple, and code is made for that number of classes
AHEAD = 24  # how many votes ahead rows are fetched
FAINT = 1e-200  # a product of probabilities below this may have lost its rivals to underflow
FADING = 1e-290  # a running product is put away as a logarithm before it falls below this
SAFE = {"reassoc", "contract", "arcp", "nsz"}  # fast mathematics that still lets a NaN show


def _jit(function: Function) -> Function:
    options: dict[str, Any] = {"nogil": True, "fastmath": SAFE, "error_model": "numpy"}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # numba finds no folder where it may keep compiled code: compile in every process instead
        return numba.njit(**options)(function)


@intrinsic
def _registers(_typing: Any, prior: Any) -> Any:
    """Room on the stack for one number per entry of a tuple; unrolled loops turn it into registers."""

    def build(_target: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        room = cgutils.alloca_once(builder, ir.ArrayType(ir.DoubleType(), prior.count))
        return builder.bitcast(room, ir.DoubleType().as_pointer())

    return types.CPointer(types.float64)(prior), build


@intrinsic
def _fetch(_typing: Any, _address: Any) -> Any:
    """Ask the memory for the 64 bytes around an address without waiting for them."""

    def build(target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        builder.call(prefetch, [builder.inttoptr(arguments[0], byte), flag(0), flag(3), flag(1)])  # read, keep, data
        return target.get_dummy_value()

    return types.void(types.intp), build


def _room(prior: Any) -> Any:
    raise NotImplementedError("this function exists in compiled code only")


@overload(_room)
def _room_for(prior: Any) -> Any:
    def on_stack(prior: Any) -> Any:
        return numba.carray(_registers(prior), (len(prior),))

    def on_heap(prior: Any) -> Any:
        return np.empty(len(prior))

    return on_stack if isinstance(prior, types.UniTuple) else on_heap


@_jit
def expect(
    offset: Any, pair: Any, weight: Any, prior: Any, said: Any, clamp: Any, classes: Any, tally: Any, posterior: Any
) -> float:
    """Take both sums: add to ``classes`` and ``tally``, fill ``posterior`` if it has rows, return the log-likelihood.

    Without weights, ``prior`` adds up to 1 and no entry of ``said`` exceeds 1, so that products only fall; with
    weights, both tables hold logarithms.
    """
    n_classes = len(prior)
    share = _room(prior)
    sums = _room(prior)
    spare = _room(prior)  # what is handed to another function, or indexed by a variable, cannot live in registers
    for k in range(n_classes):
        sums[k] = 0.0
    said_at, tally_at, row = said.ctypes.data, tally.ctypes.data, n_classes * said.itemsize
    last = offset[-1] - 1
    log_likelihood, running = 0.0, 1.0
    for i in range(len(offset) - 1):
        start, stop = offset[i], offset[i + 1]
        known = -1 if clamp is None else clamp[i]
        for k in range(n_classes):
            share[k] = prior[k]
        for n in range(start, stop):
            later = row * np.int64(pair[min(n + AHEAD, last)])
            _fetch(said_at + later)
            _fetch(said_at + later + 32)
            _fetch(tally_at + later)
            _fetch(tally_at + later + 32)
            said_here = said[pair[n]]
            for k in range(n_classes):
                if weight is None:
                    share[k] *= said_here[k]
                else:
                    share[k] += said_here[k] * weight[n]

        if weight is None:
            total = 0.0
            joint = 0.0
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
                _add_logs(pair[start:stop], prior, said, spare)
                log_likelihood += _normalise(spare, known)
                for k in range(n_classes):
                    share[k] = spare[k]
        else:
            joint = _normalise(share, known)
            if start < stop:
                log_likelihood += joint

        if known >= 0:
            for k in range(n_classes):
                share[k] = 1.0 if k == known else 0.0
        if start < stop:
            for k in range(n_classes):
                sums[k] += share[k]
        for n in range(start, stop):
            tally_here = tally[pair[n]]
            for k in range(n_classes):
                tally_here[k] += share[k] if weight is None else share[k] * weight[n]
        if len(posterior):
            for k in range(n_classes):
                posterior[i, k] = share[k]
    for k in range(n_classes):
        classes[k] += sums[k]
    return log_likelihood + math.log(running)


@_jit
def _add_logs(pair: Any, prior: Any, said: Any, share: Any) -> None:
    """Log joint of one task, for products too small for a number: logarithms only where a running product fades."""
    for k in range(len(prior)):
        logs, running = 0.0, max(prior[k], LEAST)
        for n in range(len(pair)):
            factor = max(said[pair[n], k], LEAST)
            if running * factor < FADING:
                logs += math.log(running)
                running = 1.0
            running *= factor
        share[k] = logs + math.log(running)


@_jit
def _normalise(share: Any, known: int) -> float:
    """Turn a log joint into a posterior, in place; return its log-likelihood, or that of the known class."""
    peak = share[0]
    for k in range(1, len(share)):
        peak = max(peak, share[k])
    at_known = share[known] if known >= 0 else 0.0
    total = 0.0
    for k in range(len(share)):
        share[k] = math.exp(share[k] - peak)
        total += share[k]
    for k in range(len(share)):
        share[k] /= total
    return at_known if known >= 0 else peak + math.log(total)


@_jit
def count(offset: Any, pair: Any, weight: Any, posterior: Any, tally: Any) -> None:
    """Add to the tally alone, for a given posterior."""
    n_classes = posterior.shape[1]
    for i in range(len(offset) - 1):
        for n in range(offset[i], offset[i + 1]):
            for k in range(n_classes):
                tally[pair[n], k] += posterior[i, k] if weight is None else posterior[i, k] * weight[n]
