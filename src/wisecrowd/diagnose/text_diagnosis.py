"""Diagnosis of texts: workers, tasks and agreement."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.default_method import DEFAULT_METHODS
from wisecrowd.base.registry import find
from wisecrowd.base.text_aggregator import TextAggregator
from wisecrowd.data.edit_counts import count_edits
from wisecrowd.data.edit_distance import compute_edit_distances
from wisecrowd.data.texts import TextCrowd, TextUnit, TokenCodes, tokenize
from wisecrowd.errors import InputError, UsageError
from wisecrowd.utils.notebook import render_html

Array = NDArray[np.float64]

#: Texts from which a worker is flagged.
MIN_VOTES = 5
#: Error rate from which a worker is inaccurate, and relative to the median worker.
MIN_ERROR_RATE, MAX_ERROR_RATIO = 0.1, 2.0
#: Share of words left out or added, relative to the inferred texts, from which a flag is set.
MIN_EDIT_SHARE = 0.1
#: Share of empty texts from which a worker is flagged.
MAX_EMPTY_SHARE = 0.5


@dataclass(frozen=True, eq=False)
class TextDiagnosis:
    """Diagnosis of texts by one fitted method.

    All results are computed when they are first accessed.

    Parameters
    ----------
    crowd : TextCrowd
        Texts.
    model : TextAggregator
        Method fitted to them.

    Examples
    --------
    >>> from wisecrowd import simulate_texts
    >>> result = diagnose_texts(simulate_texts(n_tasks=30, random_state=0).crowd)
    >>> result.workers.columns.tolist()[:5]
    ['n_votes', 'accuracy', 'agreement', 'wer', 'cer']
    """

    crowd: TextCrowd
    model: TextAggregator

    def _repr_html_(self) -> str:
        return render_html(repr(self), self.workers)

    def __repr__(self) -> str:
        figures = self.overview
        wer = figures["pairwise_wer"]
        return (
            f"Diagnosis of {self.crowd!r}\n"
            f"  agreement: {'undefined' if wer is None else f'word error rate of two workers {wer:.2f}'}; flagged workers: "
            f"{figures['flagged_workers']}\n  see: .workers, .tasks, .overview"
        )

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All pairs of texts on the same task."""
        crowd = self.crowd
        n_later = crowd.task_offset[crowd.task + 1] - np.arange(crowd.n_votes) - 1
        first = np.repeat(np.arange(crowd.n_votes), n_later)
        second = first + 1 + np.arange(len(first)) - np.repeat(np.cumsum(n_later) - n_later, n_later)
        return first, second

    def _tokenize(self, unit: TextUnit) -> TokenCodes:
        """Return the texts of workers, followed by the inferred ones."""
        texts = np.concatenate([self.crowd.text, self.model.answer_texts_.to_numpy()])
        return tokenize(texts, normalisation=self.model.normalisation, unit=unit)

    @cached_property
    def _words(self) -> TokenCodes:
        return self._tokenize(self.model.unit)

    @cached_property
    def _pair_distance(self) -> Array:
        """Edit distance of every pair over the length of the longer text."""
        first, second = self._pairs
        words = self._words
        longer = np.maximum(np.maximum(words.length[first], words.length[second]), 1)
        return np.asarray(compute_edit_distances(words, first, words, second) / longer)

    def compute_pairwise_error_rate(self, unit: TextUnit = "words") -> float:
        """Compute the mean error rate of a text against that of another worker on the same task, in both directions.

        Parameters
        ----------
        unit : {"words", "characters"}, default="words"
            Words for WER, characters for CER.

        Returns
        -------
        float
            Edits over the length of the other text; NaN if no task has two texts.
        """
        first, second = self._pairs
        if not len(first):
            return float("nan")
        tokens = self._words if unit == self.model.unit else self._tokenize(unit)
        distance = compute_edit_distances(tokens, first, tokens, second).astype(np.float64)
        return float(2 * distance.sum() / max(int((tokens.length[first] + tokens.length[second]).sum()), 1))

    @cached_property
    def tasks(self) -> pd.DataFrame:
        """Text, confidence and disagreement (mean distance of two texts) of every task, the least certain first."""
        first, _ = self._pairs
        task = self.crowd.task[first]
        count = np.bincount(task, minlength=self.crowd.n_tasks)
        with np.errstate(invalid="ignore"):
            disagreement = np.bincount(task, self._pair_distance, self.crowd.n_tasks) / count
        return self.model.tasks_.assign(disagreement=disagreement).sort_values("token_confidence", kind="stable")

    @cached_property
    def workers(self) -> pd.DataFrame:
        """Table of workers.

        Columns are n_votes, accuracy (of the method), agreement (1 minus the mean distance to the texts of others), wer and cer
        (word and character error rate against the inferred texts), replaced, omitted and added (words per word of the inferred
        texts), empty (share of texts without words), flags (inaccurate, omits, adds, empty or constant) and why.
        """
        crowd, model, words = self.crowd, self.model, self._words
        n_workers = crowd.n_workers
        first, second = self._pairs
        distance = np.bincount(crowd.worker[first], self._pair_distance, n_workers)
        distance += np.bincount(crowd.worker[second], self._pair_distance, n_workers)
        n_pairs = np.bincount(crowd.worker[np.concatenate([first, second])], minlength=n_workers)
        text = np.arange(crowd.n_votes)
        answer = crowd.n_votes + crowd.task.astype(np.int64)
        edits = count_edits(words, answer, words, text)
        characters = self._tokenize("characters")
        character_edits = compute_edit_distances(characters, answer, characters, text)

        def add(values: Any) -> Array:
            return np.bincount(crowd.worker, values, n_workers).astype(np.float64)

        n_words, n_characters = add(words.length[answer]), add(characters.length[answer])
        with np.errstate(invalid="ignore", divide="ignore"):
            columns: dict[str, Any] = {
                "n_votes": crowd.votes_per_worker,
                "accuracy": model.accuracy_,
                "agreement": 1 - distance / n_pairs,
                "wer": add(edits.total) / n_words,
                "cer": add(character_edits) / n_characters,
                "replaced": add(edits.substitutions) / n_words,
                "omitted": add(edits.deletions) / n_words,
                "added": add(edits.insertions) / n_words,
                "empty": add(words.length[text] == 0) / crowd.votes_per_worker,
            }
        table = pd.DataFrame(columns, index=crowd.workers.rename("worker"))
        flags, reasons = self._find_flags(table)
        return table.assign(flags=flags, why=reasons)

    def _find_flags(self, table: pd.DataFrame) -> tuple[list[str], list[str]]:
        """Return the flags of every worker and the reasons."""
        wer = table["wer"].to_numpy()
        typical = float(np.nanmedian(wer)) if np.isfinite(wer).any() else 0.0
        is_constant = self._find_constant_workers()
        rules = [
            ("constant", is_constant, wer, "gives the same text to all tasks"),
            ("empty", table["empty"].to_numpy() > MAX_EMPTY_SHARE, table["empty"].to_numpy(), "{:.0%} of the texts are empty"),
            (
                "inaccurate",
                wer > max(MIN_ERROR_RATE, MAX_ERROR_RATIO * typical),
                wer,
                f"{{:.0%}} of the words are wrong; of the median worker {typical:.0%}",
            ),
        ]  # fmt: skip
        for name, column, text in (
            ("omits", "omitted", "leaves out {:.0%} of the words"),
            ("adds", "added", "adds {:.0%} more words"),
        ):
            values = table[column].to_numpy()
            typical_share = float(np.nanmedian(values)) if np.isfinite(values).any() else 0.0
            rules.append((name, values > max(MIN_EDIT_SHARE, MAX_ERROR_RATIO * typical_share), values, text))
        flags: list[list[str]] = [[] for _ in range(len(table))]
        reasons: list[list[str]] = [[] for _ in range(len(table))]
        is_judged = table["n_votes"].to_numpy() >= MIN_VOTES
        for name, mask, values, text in rules:
            for code in np.flatnonzero(mask & is_judged):
                flags[code].append(name)
                reasons[code].append(text.format(values[code]))
        return [", ".join(names) for names in flags], ["; ".join(parts) for parts in reasons]

    def _find_constant_workers(self) -> NDArray[np.bool_]:
        """Return which workers gave the same text to all tasks, and more than one."""
        crowd = self.crowd
        code = np.unique(crowd.text.astype(str), return_inverse=True)[1].ravel()
        low, high = np.full(crowd.n_workers, len(code)), np.full(crowd.n_workers, -1)
        np.minimum.at(low, crowd.worker, code)
        np.maximum.at(high, crowd.worker, code)
        return np.asarray((low == high) & (crowd.votes_per_worker > 1))

    @cached_property
    def overview(self) -> dict[str, Any]:
        """Main figures, ready for JSON."""
        crowd, model = self.crowd, self.model
        rates = {"wer": self.compute_pairwise_error_rate(), "cer": self.compute_pairwise_error_rate("characters")}
        first, _ = self._pairs
        identical = float((self._pair_distance == 0).mean()) if len(first) else float("nan")
        return {
            "tasks": crowd.n_tasks,
            "workers": crowd.n_workers,
            "votes": crowd.n_votes,
            "words_per_text": round(float(self._words.length[: crowd.n_votes].mean()), 4) if crowd.n_votes else None,
            **{f"pairwise_{name}": None if np.isnan(value) else round(value, 4) for name, value in rates.items()},
            "identical_pairs": None if np.isnan(identical) else round(identical, 4),
            "mean_confidence": round(float(model.confidence_.mean()), 4),
            "token_confidence": round(float(model.token_confidence_.mean()), 4),
            "flagged_workers": int((self.workers["flags"] != "").sum()),
        }


def diagnose_texts(crowd: TextCrowd, *, model: TextAggregator | str | None = None) -> TextDiagnosis:
    """Diagnose the workers and tasks of texts, such as transcriptions.

    Parameters
    ----------
    crowd : TextCrowd
        Texts.
    model : TextAggregator or str, default=None
        Fitted method, or the name of one. Defaults to the default method for texts.

    Returns
    -------
    TextDiagnosis

    Raises
    ------
    InputError
        If the votes are no texts.
    UsageError
        If the method does not infer texts.

    Examples
    --------
    >>> from wisecrowd import simulate_texts
    >>> diagnose_texts(simulate_texts(n_tasks=30, random_state=0).crowd).overview["workers"]
    15
    """
    if not isinstance(crowd, TextCrowd):
        raise InputError(f"expected a TextCrowd; got {type(crowd).__name__}")
    fitted: Any = model
    if model is None or isinstance(model, str):
        unfitted: Any = find(model or DEFAULT_METHODS["texts"])()
        fitted = unfitted.fit(crowd) if isinstance(unfitted, TextAggregator) else unfitted
    if not isinstance(fitted, TextAggregator):
        raise UsageError(f"model must infer texts, such as {DEFAULT_METHODS['texts']!r}; got {model!r}")
    return TextDiagnosis(crowd, fitted)
