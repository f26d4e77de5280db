"""Exceptions and helpers for their messages."""

from __future__ import annotations

import errno
import pickle
import warnings

import numpy as np
import pytest

from wisecrowd.errors import (
    DataWarning,
    DiskFull,
    MissingExtra,
    NotConverged,
    UsageError,
    check_choice,
    ignore_fit_warnings,
    is_disk_full,
    preview,
    suggest_name,
)


@pytest.mark.parametrize("error", [MissingExtra("fast", "the compiled kernels"), DiskFull("labels.csv")])
def test_errors_survive_pickling(error: Exception) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)


def test_a_full_disk_is_recognised() -> None:
    assert is_disk_full(OSError(errno.EDQUOT, "quota"))
    assert is_disk_full(OSError("[Errno 28] No space left on device"))
    assert not is_disk_full(OSError(errno.ENOENT, "missing"))
    assert not is_disk_full(ValueError("No space left on device"))


def test_previews_are_short() -> None:
    assert preview([]) == ""
    assert preview(np.array([1, 2])) == "1, 2"
    assert preview("abcd", 2) == "'a', 'b', …"
    assert len(preview(["x" * 1000])) < 65


MAJORITY = " Did you mean 'majority-vote'?"


@pytest.mark.parametrize(("word", "suggestion"), [("majority-vtoe", MAJORITY), ("mv", MAJORITY), ("zzz", "")])
def test_suggestions(word: str, suggestion: str) -> None:
    assert suggest_name(word, ["majority-vote", "dawid-skene"]) == suggestion


def test_choices_are_listed() -> None:
    check_choice("ties", "first", ("first", "random"))
    with pytest.raises(
        UsageError, match=r"ties must be one of 'first', 'random'; got 'frist'\. Did you mean 'first'\?"
    ):
        check_choice("ties", "frist", ("first", "random"))


def test_only_warnings_about_fits_are_ignored() -> None:
    with ignore_fit_warnings():
        warnings.warn("early", NotConverged, stacklevel=1)
        warnings.warn("odd", DataWarning, stacklevel=1)
        with pytest.warns(UserWarning, match="other"):
            warnings.warn("other", UserWarning, stacklevel=1)
