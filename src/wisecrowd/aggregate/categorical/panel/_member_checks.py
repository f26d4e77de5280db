"""Checks of the members of a panel: machines that err together without a group, and panels without people or gold."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.aggregate.categorical.panel._members import MACHINE, PERSON
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import DataWarning, preview

#: Number of common tasks below which the agreement of two machines is not tested.
MIN_COMMON_TASKS = 30
#: Smallest excess of the agreement of two machines, as a share of tasks.
MIN_EXCESS = 0.1
#: Smallest excess of the agreement of two machines, in standard errors.
MIN_EXCESS_IN_ERRORS = 4.0
#: Smallest agreement of people beyond chance; below it they are no reference for machines.
MIN_PEOPLE_AGREEMENT = 0.1
#: Smallest variance of an agreement, so that perfect agreement on few tasks has a standard error.
MIN_AGREEMENT_VARIANCE = 1e-3


def check_members(
    crowd: Crowd,
    kinds: NDArray[Any],
    group: NDArray[np.int32],
    *,
    gold: bool,
    dependence_is_estimated: bool = False,
) -> list[str]:
    """Warn about members that make the result of a panel doubtful, and return the warnings.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    kinds : ndarray of shape (n_workers,)
        'person', 'machine' or None.
    group : ndarray of shape (n_workers,)
        Group codes, −1 for workers without a group.
    gold : bool
        Whether the truth of some tasks is known.
    dependence_is_estimated : bool, default=False
        Whether the model allows for machines that err together without a group.

    Returns
    -------
    list of str

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", "gpt", 0), ("t1", "llama", 1)])
    >>> check_members(crowd, np.array(["machine", "person"]), np.array([-1, -1]), gold=False)
    []
    """
    voted = crowd.votes_per_worker > 0
    is_machine, is_person = (kinds == MACHINE) & voted, (kinds == PERSON) & voted
    notes = []
    if not gold and is_machine.any() and (is_machine == voted).all():
        notes.append(
            "all workers are machines, so only gold shows which of them are right; fit with the truth of some tasks (truth=…, or "
            "wisecrowd aggregate --gold FILE), or collect votes of people on some tasks"
        )
    suspects = None
    if not dependence_is_estimated:
        suspects = find_correlated_machines(crowd, np.flatnonzero(is_machine), is_person, group)
    if suspects is not None:
        assert crowd.workers is not None
        notes.append(
            f"{preview(crowd.workers[suspects.workers], 5)}: these {len(suspects.workers):,} machines agree with each other on "
            f"{suspects.agreement:.0%} of their tasks, and their agreement with people explains {suspects.expected:.0%}. They err "
            "together, but count as independent workers. Leave groups out, so that their dependence is estimated, or put all of "
            "them into groups: groups={…}, or the column group of --members"
        )
    for note in notes:
        warnings.warn(note, DataWarning, stacklevel=5)
    return notes


class CorrelatedMachines(NamedTuple):
    """Machines without a common group whose agreement exceeds the expected one."""

    workers: NDArray[np.intp]
    """Worker codes."""
    agreement: float
    """Mean agreement."""
    expected: float
    """Mean agreement that independent errors explain."""


def find_correlated_machines(
    crowd: Crowd, machines: NDArray[np.intp], is_person: NDArray[np.bool_], group: NDArray[np.int32]
) -> CorrelatedMachines | None:
    """Find machines that agree more than independent errors explain, although they have no common group.

    Workers with independent and uniform errors agree beyond chance by the product of their skills, c_ij = s_i s_j. So two
    machines should agree by c_i c_j / c, with c_i the agreement of each with people and c the agreement between people.
    Causes of agreement between people, such as tasks that are hard for everybody, affect both.

    Parameters
    ----------
    crowd : Crowd
        Votes.
    machines : ndarray of int
        Worker codes of the machines.
    is_person : ndarray of shape (n_workers,)
        Whether each worker is a person.
    group : ndarray of shape (n_workers,)
        Group codes, −1 for workers without a group.

    Returns
    -------
    CorrelatedMachines or None

    Examples
    --------
    >>> from wisecrowd.simulate import simulate_panel
    >>> simulation = simulate_panel(n_tasks=300, n_judges=4, n_people=3)
    >>> is_person, no_group = np.arange(7) > 3, np.full(7, -1, dtype=np.int32)
    >>> suspects = find_correlated_machines(simulation.crowd, np.arange(4), is_person, no_group)
    >>> len(suspects.workers), suspects.agreement > suspects.expected + 0.2
    (4, True)
    """
    from scipy import sparse

    if len(machines) < 2 or crowd.n_classes < 2:
        return None
    n_tasks, n_classes, worker = crowd.n_tasks, crowd.n_classes, crowd.worker_codes
    cell = crowd.task.astype(np.int64) * n_classes + crowd.label
    people = np.bincount(cell[is_person[worker]], minlength=n_tasks * n_classes)
    people_per_task = people.reshape(n_tasks, n_classes).sum(axis=1)
    people_agreement, people_error = _correct_for_chance(
        (people * (people - 1)).sum() / 2,
        (people_per_task * (people_per_task - 1)).sum() / 2,
        int((people_per_task > 1).sum()),
        n_classes,
    )
    if not people_agreement >= MIN_PEOPLE_AGREEMENT:
        return None
    votes = np.flatnonzero(np.isin(worker, machines))
    machine = np.searchsorted(machines, worker[votes])
    n_same, n_pairs, n_shared_tasks = (
        np.bincount(machine, counts, len(machines))
        for counts in (
            people[cell[votes]],
            people_per_task[crowd.task[votes]],
            people_per_task[crowd.task[votes]] > 0,
        )
    )
    with_people, with_people_error = _correct_for_chance(n_same, n_pairs, n_shared_tasks, n_classes)
    ones = np.ones(len(votes))
    by_task = sparse.csr_array((ones, (machine, crowd.task[votes])), shape=(len(machines), n_tasks))
    by_cell = sparse.csr_array((ones, (machine, cell[votes])), shape=(len(machines), n_tasks * n_classes))
    common = sparse.triu(by_task @ by_task.T, k=1).tocoo()
    first, second, n_common = common.row, common.col, common.data
    agreement = np.asarray((by_cell @ by_cell.T).tocsr()[first, second]).ravel() / n_common
    with np.errstate(divide="ignore", invalid="ignore"):
        product = np.clip(with_people[first] * with_people[second] / people_agreement, 0.0, 1.0)
        relative = (with_people_error / with_people) ** 2
        relative_sum = relative[first] + relative[second] + (people_error / people_agreement) ** 2
        product_error = product * np.sqrt(relative_sum) * (1 - 1 / n_classes)
    expected = 1 / n_classes + (1 - 1 / n_classes) * product
    error = np.sqrt(product_error**2 + agreement * (1 - agreement) / n_common)
    first_group, second_group = group[machines[first]], group[machines[second]]
    is_suspect = (n_common >= MIN_COMMON_TASKS) & ((first_group < 0) | (first_group != second_group))
    is_suspect &= (with_people[first] > 0) & (with_people[second] > 0)
    is_suspect &= agreement - expected >= np.maximum(MIN_EXCESS, MIN_EXCESS_IN_ERRORS * error)
    if not is_suspect.any():
        return None
    members = np.unique(np.concatenate([first[is_suspect], second[is_suspect]]))
    return CorrelatedMachines(
        machines[members], float(agreement[is_suspect].mean()), float(expected[is_suspect].mean())
    )


def _correct_for_chance(n_same: Any, n_pairs: Any, n_tasks: Any, n_classes: int) -> tuple[Any, Any]:
    """Return the agreement of pairs of votes corrected for chance, and its standard error."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.asarray(n_same, dtype=np.float64) / n_pairs
        scale = 1 - 1 / n_classes
        variance = np.maximum(share * (1 - share), MIN_AGREEMENT_VARIANCE)
        return (share - 1 / n_classes) / scale, np.sqrt(variance / n_tasks) / scale
