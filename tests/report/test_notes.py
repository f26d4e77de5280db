"""Warnings on the page."""

from __future__ import annotations

import warnings

import pytest

from wisecrowd.errors import DataWarning, NotConverged
from wisecrowd.report.notes import collect_warnings


def warn_about_votes() -> None:
    warnings.warn("few votes", DataWarning, stacklevel=1)
    warnings.warn("few votes", DataWarning, stacklevel=1)
    warnings.warn("stopped early", NotConverged, stacklevel=1)
    warnings.warn("an old function", DeprecationWarning, stacklevel=1)


def test_warnings_about_data_are_collected_once_and_issued() -> None:
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        with collect_warnings() as messages:
            warn_about_votes()
    assert messages == ["few votes", "stopped early"]
    assert {str(warning.message) for warning in issued} == {"few votes", "stopped early", "an old function"}


def test_an_error_passes_through() -> None:
    with pytest.raises(ZeroDivisionError), collect_warnings():
        _ = 1 / 0


def test_without_warnings_there_are_no_messages() -> None:
    with collect_warnings() as messages:
        pass
    assert messages == []
