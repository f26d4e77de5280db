"""What whoever fits a panel should know before they believe it: machines that nobody put together, and nothing to hold on to."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import DataWarning, some

#: Tasks that two machines share before anything is said of them.
ENOUGH_TASKS = 30
#: By what share of the tasks they agree more than they should, and by how many standard errors.
FURTHER, SURELY = 0.1, 4.0
#: How far people must agree beyond chance to be a measure of others.
LEAST_AGREEMENT = 0.1


def warned(crowd: Crowd, kinds: NDArray[Any], group: NDArray[np.int32], *, gold: bool) -> list[str]:
    """Warn of what is odd about who is in a panel, and say it again: kinds and groups (−1 for none) are by worker.

    >>> crowd = Crowd.from_triples([("t1", "gpt", 0), ("t1", "llama", 1)])
    >>> warned(crowd, np.array(["machine", "person"]), np.array([-1, -1]), gold=False)
    []
    """
    voted = crowd.votes_per_worker > 0
    is_machine, is_person = (kinds == "machine") & voted, (kinds == "person") & voted
    told = []
    if not gold and is_machine.any() and (is_machine == voted).all():
        told.append(
            "everybody here is a machine, so that nothing but gold tells who is right: fit to the truth of some tasks (truth=…, or "
            "wisecrowd aggregate --truth FILE), or have people vote on some"
        )
    found = apart(crowd, np.flatnonzero(is_machine), is_person, group)
    if found is not None:
        assert crowd.workers is not None
        machines, agreed, expected = found
        told.append(
            f"{some(crowd.workers[machines], 5)}: these {len(machines):,} machines agree with each other on {agreed:.0%} of their "
            f"tasks, and what they have in common with people explains {expected:.0%}. They err together, but count as so many "
            "witnesses. Say who belongs together: groups={…}, or the column group of --members"
        )
    for note in told:
        warnings.warn(note, DataWarning, stacklevel=4)
    return told


def apart(
    crowd: Crowd, machines: NDArray[np.intp], is_person: NDArray[np.bool_], group: NDArray[np.int32]
) -> tuple[NDArray[np.intp], float, float] | None:
    """Machines that agree too much though they are in no group together: who, how far, and how far they should; None if none do.

    Workers who err independently and evenly agree beyond chance by the product of what each is worth: c_ij = s_i s_j. So two
    machines should agree by c_i c_j / c, with c_i how far each agrees with people and c how far people agree with each other.
    Whatever makes people agree, such as tasks that are hard for all, is then in both.

    >>> from wisecrowd.simulate import simulate_panel
    >>> made = simulate_panel(n_tasks=300, n_judges=4, n_people=3)
    >>> who, agreed, expected = apart(made.crowd, np.arange(4), np.arange(7) > 3, np.full(7, -1, dtype=np.int32))
    >>> len(who), agreed > expected + 0.2
    (4, True)
    """
    from scipy import sparse

    if len(machines) < 2 or crowd.n_classes < 2:
        return None
    n_tasks, n_classes, worker = crowd.n_tasks, crowd.n_classes, crowd.worker_codes
    cell = crowd.task.astype(np.int64) * n_classes + crowd.label
    people = np.bincount(cell[is_person[worker]], minlength=n_tasks * n_classes)
    on_task = people.reshape(n_tasks, n_classes).sum(axis=1)
    c, error = _beyond_chance(
        (people * (people - 1)).sum() / 2, (on_task * (on_task - 1)).sum() / 2, int((on_task > 1).sum()), n_classes
    )
    if not c >= LEAST_AGREEMENT:
        return None
    rows = np.flatnonzero(np.isin(worker, machines))
    place = np.searchsorted(machines, worker[rows])
    with_people = [
        np.bincount(place, counts, len(machines))
        for counts in (people[cell[rows]], on_task[crowd.task[rows]], on_task[crowd.task[rows]] > 0)
    ]
    mine, mine_error = _beyond_chance(with_people[0], with_people[1], with_people[2], n_classes)
    one = np.ones(len(rows))
    seen = sparse.csr_array((one, (place, crowd.task[rows])), shape=(len(machines), n_tasks))
    chose = sparse.csr_array((one, (place, cell[rows])), shape=(len(machines), n_tasks * n_classes))
    met = sparse.triu(seen @ seen.T, k=1).tocoo()
    first, second = met.row, met.col
    of_first, of_second = group[machines[first]], group[machines[second]]
    common = met.data
    agreed = np.asarray((chose @ chose.T).tocsr()[first, second]).ravel() / common
    with np.errstate(divide="ignore", invalid="ignore"):
        product = np.clip(mine[first] * mine[second] / c, 0.0, 1.0)
        relative = (mine_error / mine) ** 2
        spread = product * np.sqrt(relative[first] + relative[second] + (error / c) ** 2) * (1 - 1 / n_classes)
    expected = 1 / n_classes + (1 - 1 / n_classes) * product
    noise = np.sqrt(spread**2 + agreed * (1 - agreed) / common)
    odd = (common >= ENOUGH_TASKS) & ((of_first < 0) | (of_first != of_second))
    odd &= (mine[first] > 0) & (mine[second] > 0) & (agreed - expected >= np.maximum(FURTHER, SURELY * noise))
    if not odd.any():
        return None
    who = np.unique(np.concatenate([first[odd], second[odd]]))
    return machines[who], float(agreed[odd].mean()), float(expected[odd].mean())


def _beyond_chance(same: Any, met: Any, n_tasks: Any, n_classes: int) -> tuple[Any, Any]:
    """Agreement, corrected for chance, of so many meetings on so many tasks, and its standard error."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.asarray(same, dtype=np.float64) / met
        scale = 1 - 1 / n_classes
        return (share - 1 / n_classes) / scale, np.sqrt(np.maximum(share * (1 - share), 1e-3) / n_tasks) / scale
