"""Simulated masks of images with known truth and known workers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.mask_runs import MaskRuns, concatenate_masks
from wisecrowd.data.masks import MaskCrowd
from wisecrowd.errors import UsageError

Array = NDArray[np.float64]

#: Pixels that are drawn at once; it bounds the memory.
PIXELS_PER_CHUNK = 1 << 24
#: Radii of the ellipses, as shares of the sides of the image.
RADII = (0.15, 0.35)
#: Places of their centres.
CENTRES = (0.4, 0.6)


@dataclass(frozen=True)
class SimulatedMasks:
    """Masks with the truth that they were drawn from.

    Parameters
    ----------
    crowd : MaskCrowd
        Votes.
    truth : MaskRuns
        True mask of every task, in the order of tasks.
    workers : DataFrame
        True sensitivity, specificity and boundary noise of every worker.
    """

    crowd: MaskCrowd
    truth: MaskRuns
    workers: pd.DataFrame


def simulate_masks(
    *,
    n_tasks: int = 50,
    n_workers: int = 12,
    votes_per_task: int = 5,
    height: int = 40,
    width: int = 50,
    sensitivity: float = 0.95,
    specificity: float = 0.98,
    boundary_noise: float = 0.05,
    worker_spread: float = 0.5,
    random_state: int = 0,
) -> SimulatedMasks:
    """Simulate workers who mark ellipses in images.

    A worker draws the ellipse with a wrong centre and wrong radii (boundary noise), and then misses pixels inside and adds
    pixels outside at random (sensitivity and specificity, the model of `Staple`).

    Parameters
    ----------
    n_tasks, n_workers, votes_per_task : int
        Numbers of tasks and workers, and of workers who mark each task.
    height, width : int
        Size of the images.
    sensitivity, specificity : float
        Probability that an average worker marks a pixel inside, and leaves out a pixel outside, of the ellipse that the
        worker drew. 1 gives smooth masks.
    boundary_noise : float, default=0.05
        Standard deviation of centre and radii relative to the radii.
    worker_spread : float, default=0.5
        Standard deviation of the workers' rates in logits, and of their boundary noise in logarithms.
    random_state : int, default=0
        Seed.

    Returns
    -------
    SimulatedMasks

    Raises
    ------
    UsageError
        If a size or a rate is outside its range.

    Examples
    --------
    >>> simulation = simulate_masks(n_tasks=10, n_workers=5, votes_per_task=3)
    >>> simulation.crowd.n_votes, len(simulation.truth)
    (30, 10)
    """
    if votes_per_task > n_workers or min(n_tasks, n_workers, votes_per_task, height, width) < 1:
        raise UsageError(
            f"a task needs between 1 and {n_workers} different workers, and all sizes must be positive; got "
            f"votes_per_task={votes_per_task}"
        )
    if not (0 < sensitivity <= 1 and 0 < specificity <= 1) or boundary_noise < 0:
        raise UsageError(
            f"sensitivity and specificity must be above 0 and at most 1, and boundary_noise 0 or more; got {sensitivity}, "
            f"{specificity} and {boundary_noise}"
        )
    rng = np.random.default_rng(random_state)
    rates = np.stack([_draw_rates(rate, worker_spread, n_workers, rng) for rate in (sensitivity, specificity)])
    noise = boundary_noise * np.exp(worker_spread * rng.standard_normal(n_workers))
    centre, radius = rng.uniform(*CENTRES, (n_tasks, 2)), rng.uniform(*RADII, (n_tasks, 2))
    worker = np.argsort(rng.random((n_tasks, n_workers)), axis=1)[:, :votes_per_task].ravel()
    task = np.repeat(np.arange(n_tasks), votes_per_task)
    error = rng.standard_normal((len(task), 2, 2)) * noise[worker][:, None, None]
    drawn_centre, drawn_radius = centre[task] + error[:, 0] * radius[task], radius[task] * np.exp(error[:, 1])
    truth, masks = [], []
    step = max(PIXELS_PER_CHUNK // (height * width * votes_per_task), 1)
    for begin in range(0, n_tasks, step):
        tasks = slice(begin, min(begin + step, n_tasks))
        votes = slice(tasks.start * votes_per_task, tasks.stop * votes_per_task)
        truth.append(_find_runs(_draw_ellipses(centre[tasks], radius[tasks], height, width), height, width))
        pixels = _draw_ellipses(drawn_centre[votes], drawn_radius[votes], height, width)
        if rates.min() < 1:
            right = np.where(pixels, *(rate[worker[votes]][:, None] for rate in rates))
            pixels ^= rng.random(pixels.shape, dtype=np.float32) >= right
        masks.append(_find_runs(pixels, height, width))
    task_ids = pd.Index([f"t{number}" for number in range(n_tasks)])
    worker_ids = pd.Index([f"p{number}" for number in range(n_workers)])
    return SimulatedMasks(
        MaskCrowd(task, worker, concatenate_masks(masks), tasks=task_ids, workers=worker_ids),
        concatenate_masks(truth),
        pd.DataFrame(
            {"sensitivity": rates[0], "specificity": rates[1], "boundary_noise": noise},
            index=worker_ids.rename("worker"),
        ),
    )


def _draw_rates(rate: float, spread: float, n_workers: int, rng: np.random.Generator) -> Array:
    """Return the rates of workers around that of an average one."""
    logits = spread * rng.standard_normal(n_workers)
    return np.ones(n_workers) if rate == 1 else 1 / (1 + (1 / rate - 1) * np.exp(-logits))


def _draw_ellipses(centre: Array, radius: Array, height: int, width: int) -> NDArray[np.bool_]:
    """Return the pixels inside ellipses, numbered by columns, as rows of a table."""
    row, column = (np.arange(height) + 0.5) / height, (np.arange(width) + 0.5) / width
    down = ((row - centre[:, :1]) / radius[:, :1]) ** 2
    across = ((column - centre[:, 1:]) / radius[:, 1:]) ** 2
    return np.asarray((across[:, :, None] + down[:, None, :] < 1).reshape(len(centre), -1))


def _find_runs(pixels: NDArray[np.bool_], height: int, width: int) -> MaskRuns:
    """Return the runs of pixels of every row of a table."""
    padded = np.pad(pixels, ((0, 0), (1, 1))).astype(np.int8)
    mask, position = np.nonzero(np.diff(padded, axis=1))
    n = len(pixels)
    return MaskRuns.from_runs(mask[::2], position[::2], position[1::2], np.full(n, height), np.full(n, width))
