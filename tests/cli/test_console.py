from __future__ import annotations

import pytest

from wisecrowd.cli import _console


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")


def test_ids_are_shown_on_one_line_and_never_obeyed() -> None:
    assert _console.escape_controls("plain [red] ünï") == "plain [red] ünï"
    assert _console.escape_controls("a\nb\x1b[31m") == "a\\nb\\x1b[31m"
    assert _console.escape_controls(7) == "7"


def test_tables_cut_what_does_not_fit_and_show_it(capsys: pytest.CaptureFixture[str]) -> None:
    _console.show(_console.table(["name", "n"], [("a" * 60, 1), ("[bold]", 22)]))
    header, long, short = capsys.readouterr().out.splitlines()
    assert header.split() == ["name", "n"]
    assert "…" in long
    assert len(long) <= 40
    assert short.startswith("[bold]")
    assert short.endswith(" 22")


def test_one_column_may_be_continued_below(capsys: pytest.CaptureFixture[str]) -> None:
    words = "one two three four five six seven eight nine"
    _console.show(_console.table(["name", "what"], [("x", words)], n_text_columns=2, fold="what"))
    out = capsys.readouterr().out
    assert "…" not in out
    assert out.split() == ["name", "what", "x", *words.split()]


def test_facts_wrap_between_words_only(capsys: pytest.CaptureFixture[str]) -> None:
    path = "a-folder/with-a-name/that-is-longer-than-the-terminal-is-wide.csv"
    _console.show_facts([("Read", path), ("Votes", "many words " * 6)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"Read   {path}"
    assert all(len(line) <= 40 for line in lines[1:])
    assert all(line.startswith("       ") for line in lines[2:])


def test_remarks_stay_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    _console.print_note("Error: " + "x " * 60, style="red")
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1


def test_commands_stay_on_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    command = "wisecrowd audit votes.csv --task 'photo nr' --checked audit/checks.csv -o audited"
    _console.show_facts([("Then", command), ("Note", "a long text that is not a command line is broken at blanks")])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"Then  {command}"
    assert len(lines) > 2
