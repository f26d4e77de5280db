"""EM iterations that resume from a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np

from wisecrowd.base.checkpoints import Arrays, Checkpoint, CheckpointState, check_trace
from wisecrowd.classifiers.soft_classifier import SoftClassifier
from wisecrowd.em.loop import Statistics, Step
from wisecrowd.errors import preview
from wisecrowd.nn.network_classifier import NetworkClassifier
from wisecrowd.nn.process_group import current_process_group
from wisecrowd.nn.trainer import select_prefix

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def make_resumable_step(
    step: Step,
    checkpoint: Checkpoint,
    max_iter: int,
    outputs: DataclassInstance,
    classifiers: Sequence[SoftClassifier],
) -> Step:
    """Return an EM step that writes a checkpoint and skips the steps that an earlier process completed.

    If the checkpoint holds earlier steps, outputs and classifiers are restored. The first calls then return the
    recorded objectives, so the iteration needs no change.

    Parameters
    ----------
    step : callable
        EM step, which fits the classifiers.
    checkpoint : Checkpoint
        File of this fit.
    max_iter : int
        Number of the step after which the checkpoint is final.
    outputs : dataclass instance
        Results that the step sets beside its statistics: arrays and numbers.
    classifiers : sequence of SoftClassifier
        Classifiers that the step fits.

    Returns
    -------
    callable

    Examples
    --------
    >>> from dataclasses import make_dataclass
    >>> outputs = make_dataclass("Outputs", [])()
    >>> step = make_resumable_step(lambda statistics: (statistics, -1.5), Checkpoint(None, {}), 10, outputs, [])
    >>> step(Statistics(np.ones(2), np.ones((3, 2))))[1]
    -1.5
    """
    current_process_group().wait()  # the process that writes may not have finished
    state = checkpoint.read()
    saved = None if state is None else state.arrays
    trace: list[float] = []
    if saved is not None:
        with checkpoint.refuse_damage():
            trace = check_trace(saved["trace"].tolist())
            _restore_outputs(outputs, select_prefix(saved, "outputs"))
            for number, classifier in enumerate(classifiers):
                classifier.restore(select_prefix(saved, f"classifier-{number}"))
    recorded_objectives = list(trace)

    def make_state(statistics: Statistics) -> CheckpointState:
        arrays: Arrays = {
            "trace": np.array(trace),
            "class_counts": statistics.class_counts,
            "tally": statistics.tally,
        }
        arrays |= {f"outputs.{name}": np.asarray(value) for name, value in asdict(outputs).items()}
        for number, classifier in enumerate(classifiers):
            inner = classifier.state() if isinstance(classifier, NetworkClassifier) else classifier.arrays()
            arrays |= {f"classifier-{number}.{name}": array for name, array in inner.items()}
        return CheckpointState(arrays)

    def resumable_step(statistics: Statistics) -> tuple[Statistics, float]:
        if recorded_objectives and state is not None:
            with checkpoint.refuse_damage():
                parts = {
                    key: state.read_numbers(key, part.shape, lowest=0) for key, part in statistics._asdict().items()
                }
                _check_outputs(outputs, statistics.class_counts.shape)
            return Statistics(**parts), recorded_objectives.pop(0)
        updated, objective = step(statistics)
        trace.append(objective)
        checkpoint.write_if_due(lambda: make_state(updated), final=len(trace) == max_iter)
        return updated, objective

    return resumable_step


def _restore_outputs(outputs: DataclassInstance, arrays: Arrays) -> None:
    """Set the results beside the statistics from arrays; numbers are arrays without dimensions."""
    if set(arrays) != set(asdict(outputs)):
        raise ValueError(f"the results of a step are {preview(asdict(outputs))}; got {preview(arrays)}")
    for name, array in arrays.items():
        if array.dtype.kind not in "fiub":
            raise ValueError(f"{name} must contain numbers; got the type {array.dtype}")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} contains NaN or infinite numbers")
        setattr(outputs, name, array if array.ndim else array.item())


def _check_outputs(outputs: DataclassInstance, shape: tuple[int, ...]) -> None:
    """Raise unless arrays among the results have the shape of the posterior."""
    for name, value in asdict(outputs).items():
        if isinstance(value, np.ndarray) and value.shape != shape:
            raise ValueError(f"{name} must have the shape {shape}; got {value.shape}")
