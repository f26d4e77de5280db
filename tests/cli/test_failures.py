from __future__ import annotations

import contextlib
import signal
import warnings

import pytest
import typer

from wisecrowd.cli._failures import explain_interruption, plain_failures
from wisecrowd.errors import DataWarning, InputError, MissingExtra, UsageError


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputError("bad votes"), 1),
        (MissingExtra("fast", "the compiled kernels"), 1),
        (UsageError("bad call"), 2),
        (FileNotFoundError(2, "No such file or directory", "votes.csv"), 1),
        (OSError("odd"), 1),
        (MemoryError(), 1),
        (KeyboardInterrupt(), 130),
    ],
)
def test_failures_are_one_line_and_a_code(error: BaseException, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as exit_, plain_failures():
        raise error
    assert exit_.value.exit_code == code
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert str(error.args[-1] if error.args else "") in err


def fail_to_import() -> None:
    """Fail as the import of a compiled module that replaces a KeyboardInterrupt by an error of its own."""
    with contextlib.suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    raise ImportError("initialization failed")


def test_an_error_after_ctrl_c_is_an_interruption(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as exit_, plain_failures():
        fail_to_import()
    assert exit_.value.exit_code == 130
    assert capsys.readouterr().err == "Interrupted: no file is left half-written.\n"


def test_explain_interruption() -> None:
    with pytest.raises(KeyboardInterrupt, match="files are kept"), explain_interruption(lambda: "files are kept"):
        raise KeyboardInterrupt
    with pytest.raises(ValueError, match="no number"), explain_interruption(lambda: "files are kept"):
        raise ValueError("no number")


def test_debug_shows_where(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit), plain_failures(debug=True):
        raise InputError("bad votes")
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert err.splitlines()[-1] == "Error: bad votes"


def test_a_bug_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError), plain_failures():
        raise ZeroDivisionError


def test_warnings_are_one_line_each_and_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    with plain_failures():
        for _ in range(2):
            warnings.warn("look at t[1]", DataWarning, stacklevel=1)
    assert capsys.readouterr().err == "Warning: look at t[1]\n"
    with pytest.raises(DataWarning):  # and everything is as before afterwards
        warnings.warn("again", DataWarning, stacklevel=1)
