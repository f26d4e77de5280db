"""Texts of a task as an aligned table: a column per word of the inferred text, and a row per worker."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from wisecrowd.base.text_aggregator import TextAggregator
from wisecrowd.data.texts import TextCrowd, tokenize
from wisecrowd.utils.text import display_name, shorten

#: Workers and slots shown in a table.
MAX_WORKERS, MAX_SLOTS = 16, 80
#: Length of a name and of a word.
MAX_NAME, MAX_WORD = 40, 40
#: Costs of a missing or additional word and of another word. Of equally many edits, those with more equal words are shown.
GAP_COST, CHANGE_COST = 1000, 1001


def build_slots(crowd: TextCrowd, model: TextAggregator, task: Any) -> dict[str, Any]:
    """Align the texts of a task with the inferred text.

    Parameters
    ----------
    crowd : TextCrowd
        Texts.
    model : TextAggregator
        Fitted method.
    task : object
        Task id.

    Returns
    -------
    dict
        Words of the inferred text (head), and rows of workers with cells: text, and kind "same", "other", "missing" or "added".
        Words that nobody of the result has are in slots of their own.
    """
    code = int(crowd.tasks.get_indexer(pd.Index([task]))[0])
    rows = range(int(crowd.task_offset[code]), int(crowd.task_offset[code + 1]))[:MAX_WORKERS]
    texts = [str(model.answer_texts_[code]), *(str(crowd.text[row]) for row in rows)]
    tokens = tokenize(texts, normalisation=model.normalisation, unit=model.unit)
    words = [
        tokens.tokens[tokens.code[begin:end]].tolist()
        for begin, end in zip(tokens.offset, tokens.offset[1:], strict=False)
    ]
    answer = words[0]
    aligned = [align_words(answer, other) for other in words[1:]]
    # Before word k of the result there are as many slots for additional words as one worker needs.
    n_added = [max((len(added[k]) for _, added in aligned), default=0) for k in range(len(answer) + 1)]
    n_slots = len(answer) + sum(n_added)
    head: list[str] = []
    for k in range(len(answer) + 1):
        head += [""] * n_added[k] + ([shorten(answer[k], MAX_WORD)] if k < len(answer) else [])
    lines = []
    for row, (matched, added) in zip(rows, aligned, strict=True):
        cells: list[dict[str, str]] = []
        for k in range(len(answer) + 1):
            inserted = [{"text": shorten(word, MAX_WORD), "kind": "added"} for word in added[k]]
            cells += inserted + [{"text": "", "kind": "same"}] * (n_added[k] - len(inserted))
            if k < len(answer):
                word = matched[k]
                kind = "missing" if word is None else "same" if word == answer[k] else "other"
                cells.append({"text": "—" if word is None else shorten(word, MAX_WORD), "kind": kind})
        lines.append(
            {"name": shorten(display_name(crowd.workers[crowd.worker[row]]), MAX_NAME), "cells": cells[:MAX_SLOTS]}
        )
    return {"kind": "slots", "head": head[:MAX_SLOTS], "lines": lines, "has_more": n_slots > MAX_SLOTS}


def align_words(answer: list[str], other: list[str]) -> tuple[list[str | None], list[list[str]]]:
    """Align a text with the inferred one by the fewest edits.

    Parameters
    ----------
    answer, other : list of str
        Words.

    Returns
    -------
    matched : list of str or None
        Word of the other text for every word of the answer; None if it is missing.
    added : list of list of str
        Additional words before every word of the answer, and at the end.

    Examples
    --------
    >>> align_words(["the", "cat", "sat"], ["a", "the", "sat"])
    (['the', None, 'sat'], [['a'], [], [], []])
    """
    n, m = len(answer), len(other)
    cost = np.zeros((n + 1, m + 1), dtype=np.int64)
    cost[:, 0], cost[0] = GAP_COST * np.arange(n + 1), GAP_COST * np.arange(m + 1)
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            change = cost[i - 1, j - 1] + CHANGE_COST * (answer[i - 1] != other[j - 1])
            cost[i, j] = min(change, cost[i - 1, j] + GAP_COST, cost[i, j - 1] + GAP_COST)
    matched: list[str | None] = [None] * n
    added: list[list[str]] = [[] for _ in range(n + 1)]
    i, j = n, m
    while i or j:
        if i and j and cost[i, j] == cost[i - 1, j - 1] + CHANGE_COST * (answer[i - 1] != other[j - 1]):
            matched[i - 1] = other[j - 1]
            i, j = i - 1, j - 1
        elif i and cost[i, j] == cost[i - 1, j] + GAP_COST:
            i -= 1
        else:
            added[i].insert(0, other[j - 1])
            j -= 1
    return matched, added
