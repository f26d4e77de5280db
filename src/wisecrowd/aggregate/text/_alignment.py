"""Alignment of the texts of a task: a network of slots, in each of which every text has one token or none."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wisecrowd.data.texts import TokenCodes

Codes = NDArray[np.int64]

#: Code of an empty place: the text has no token in this slot.
EMPTY = -2
#: Codes that fill up tables.
PADDING = -1
#: Cells of tables that are in memory at once.
CELLS_PER_CHUNK = 1 << 21
#: Steps of the alignment: both advance, a token opens a new slot, a slot is skipped.
MATCH, INSERT, SKIP = 0, 1, 2
#: Cost that rules out a step.
IMPOSSIBLE = 1 << 20


class SlotVotes(NamedTuple):
    """Votes of texts on slots, sorted by slot.

    Parameters
    ----------
    slot : ndarray of shape (n_votes,)
        Number of the slot; slots of a task follow each other in the order of the text.
    text : ndarray of shape (n_votes,)
        Position of the text.
    token : ndarray of shape (n_votes,)
        Token, or `EMPTY`.
    slot_task : ndarray of shape (n_slots,)
        Task of each slot.
    """

    slot: Codes
    text: Codes
    token: Codes
    slot_task: Codes


def align_texts(tokens: TokenCodes, order: Codes, task_offset: Codes) -> SlotVotes:
    """Align the texts of every task, one after the other.

    A token in a slot that has it costs nothing, a token in another slot and a token in a new slot cost 1, and skipping a slot
    costs 1 unless a text before skipped it, too. Tasks with equally many texts advance together.

    Parameters
    ----------
    tokens : TokenCodes
        Texts.
    order : ndarray of shape (n_texts,)
        Positions of texts by task, in the order of alignment.
    task_offset : ndarray of shape (n_tasks + 1,)
        Task ``t`` has the texts ``order[task_offset[t]:task_offset[t + 1]]``.

    Returns
    -------
    SlotVotes
    """
    n_texts = np.diff(task_offset)
    longest = np.zeros(len(n_texts), dtype=np.int64)
    np.maximum.at(longest, np.repeat(np.arange(len(n_texts)), n_texts), tokens.length[order])
    parts: list[tuple[Codes, Codes, Codes, Codes]] = []
    for count in np.unique(n_texts[n_texts > 0]):
        tasks = np.flatnonzero(n_texts == count)
        tasks = tasks[np.argsort(longest[tasks], kind="stable")]
        begin = 0
        while begin < len(tasks):
            width = int(longest[tasks[min(begin + 255, len(tasks) - 1)]]) + 1
            size = max(CELLS_PER_CHUNK // (width * (width + int(count))), 1)
            chunk = tasks[begin : begin + min(size, 256 if size > 256 else size)]
            texts = order[task_offset[chunk][:, None] + np.arange(count)]
            network, n_slots = _align_chunk(tokens, texts)
            row, slot, column = np.nonzero(np.broadcast_to(_mask_slots(network, n_slots)[:, :, None], network.shape))
            parts.append((chunk[row], slot, texts[row, column], network[row, slot, column]))
            begin += len(chunk)
    if not parts:
        empty = np.empty(0, np.int64)
        return SlotVotes(empty, empty, empty, empty)
    task, slot, text, token = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    by_slot = np.lexsort((text, slot, task))
    task, slot, text, token = task[by_slot], slot[by_slot], text[by_slot], token[by_slot]
    is_new = np.append(True, (np.diff(task) != 0) | (np.diff(slot) != 0)) if len(task) else np.empty(0, bool)
    return SlotVotes(np.cumsum(is_new) - 1, text, token, task[is_new])


def _mask_slots(network: Codes, n_slots: Codes) -> NDArray[np.bool_]:
    """Return which slots of a padded network exist."""
    return np.asarray(np.arange(network.shape[1]) < n_slots[:, None])


def _align_chunk(tokens: TokenCodes, texts: Codes) -> tuple[Codes, Codes]:
    """Return the network of tasks with equally many texts, and the number of slots of each."""
    network = tokens.pad(texts[:, 0])[:, :, None]
    n_slots = tokens.length[texts[:, 0]]
    for number in range(1, texts.shape[1]):
        network, n_slots = _add_text(network, n_slots, tokens.pad(texts[:, number]), tokens.length[texts[:, number]])
    return network, n_slots


def _add_text(network: Codes, n_slots: Codes, text: Codes, length: Codes) -> tuple[Codes, Codes]:
    """Align one more text per task with the network."""
    n, width = network.shape[:2]
    exists = _mask_slots(network, n_slots)
    skip_cost = np.where(exists & ~(network == EMPTY).any(axis=2), 1, 0)
    skipped = np.zeros((n, width + 1), dtype=np.int32)
    skipped[:, 1:] = np.cumsum(skip_cost, axis=1)
    cost = skipped.copy()
    steps = np.full((n, text.shape[1] + 1, width + 1), SKIP, dtype=np.int8)
    for position in range(text.shape[1]):
        has_token = (network == text[:, position][:, None, None]).any(axis=2)
        match = cost[:, :-1] + np.where(exists, np.where(has_token, 0, 1), IMPOSSIBLE)
        best = (cost + 1).astype(np.int32)
        choice = np.full((n, width + 1), INSERT, dtype=np.int8)
        is_match = match <= best[:, 1:]
        choice[:, 1:][is_match] = MATCH
        best[:, 1:] = np.minimum(best[:, 1:], match)
        reached = np.minimum.accumulate(best - skipped, axis=1) + skipped
        choice[reached < best] = SKIP
        steps[:, position + 1] = choice
        cost = np.where((position < length)[:, None], reached, cost)
    return _trace_back(network, n_slots, text, length, steps)


def _trace_back(
    network: Codes, n_slots: Codes, text: Codes, length: Codes, steps: NDArray[np.int8]
) -> tuple[Codes, Codes]:
    """Follow the cheapest steps from the end, and return the network with one more text."""
    n, _, n_before = network.shape
    rows, token, slot = np.arange(n), length.copy(), n_slots.copy()
    path: list[tuple[Codes, NDArray[np.int8], Codes, Codes]] = []
    while True:
        active = np.flatnonzero((token > 0) | (slot > 0))
        if not active.size:
            break
        step = steps[active, token[active], slot[active]]
        step = np.where(token[active] == 0, SKIP, np.where(slot[active] == 0, INSERT, step)).astype(np.int8)
        path.append((rows[active], step, token[active] - 1, slot[active] - 1))
        token[active] -= step != SKIP
        slot[active] -= step != INSERT
    n_new = np.zeros(n, dtype=np.int64)
    for active, *_ in path:
        n_new[active] += 1
    result = np.full((n, max(int(n_new.max(initial=0)), 1), n_before + 1), EMPTY, dtype=np.int64)
    target = n_new - 1
    for active, step, token_position, slot_position in path:
        place = target[active]
        keeps = step != INSERT
        result[active[keeps], place[keeps], :n_before] = network[active[keeps], slot_position[keeps]]
        adds = step != SKIP
        result[active[adds], place[adds], n_before] = text[active[adds], token_position[adds]]
        target[active] -= 1
    return result, n_new
