from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import wisecrowd as wc


def test_the_table_has_every_method_and_fits_a_terminal(run: Any) -> None:
    result = run("methods")
    assert result.exit_code == 0, result.stderr
    first_words = [line.split()[0] for line in result.stdout.splitlines() if line and not line.startswith(" ")]
    assert set(wc.methods()) <= set(first_words)
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "…" not in result.stdout, "a name was cut; make room for it"


@pytest.mark.parametrize("name", wc.methods())
def test_the_page_of_every_method(run: Any, name: str) -> None:
    method = wc.find(name)
    text = run("methods", name).stdout
    assert text.startswith(name)
    assert " ".join(method.summary().replace("`", "").split()) in " ".join(text.split())
    for field in dataclasses.fields(method):
        assert f"\n{field.name} " in text
    assert ">>> " in text
    assert f"wisecrowd cite {name}" in text


def test_a_page_tells_when_to_choose_it(run: Any) -> None:
    text = " ".join(run("methods", "DawidSkene").stdout.split())
    assert "Choose it when" in text
    assert "pseudo-votes in every cell" in text
    assert "Dawid and Skene 1979" in text
    assert "Maximum Likelihood Estimation of Observer Error-Rates" in text
    assert "`" not in text


def test_a_misspelt_name(run: Any) -> None:
    result = run("methods", "dawid-skeene")
    assert result.exit_code == 2
    assert "Did you mean 'dawid-skene'?" in result.stderr
