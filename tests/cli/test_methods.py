from __future__ import annotations

import re
from typing import Any

import pytest
from typer.testing import CliRunner

import wisecrowd as wc
from wisecrowd.base.fields import parameter_fields


def test_the_table_has_every_method_and_fits_a_terminal(run: Any) -> None:
    result = run("methods")
    assert result.exit_code == 0, result.stderr
    assert "`" not in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    rows = re.split(r"^(?=\S)", result.stdout, flags=re.MULTILINE)
    names = [row.split()[0] for row in rows if row.split() and row.split()[0] in wc.methods()]
    assert sorted(names) == list(wc.methods()), "a name was cut; make room for it"
    assert names == [*wc.methods("aggregate"), *wc.methods("learn"), *wc.methods("complete")]
    told = [row.strip() for row in rows if row.split() and row.split()[0] in wc.methods()]
    assert max(row.count("\n") for row in told) <= 2
    marks = {"[ratings]": "ordinal", "[numbers]": "numeric", "[pairs]": "pairwise", "[sets]": "multilabel"}
    marks |= {f"[{kind}]": kind for kind in ("boxes", "points", "polygons", "spans", "masks", "texts")}
    other_types = {
        name: method.answer_types for name, method in wc.methods().items() if "categorical" not in method.answer_types
    }
    shown = {row.split()[0]: mark for row in told for mark in marks if mark in row}
    assert list(shown) == list(other_types)
    assert all(marks[mark] in other_types[name] for name, mark in shown.items())
    assert all(f"\n{mark} " in result.stdout for mark in marks)


def test_methods_stand_under_the_command_that_takes_them(run: Any) -> None:
    aggregate, rest = run("methods").stdout.split("wisecrowd learn votes.csv --features X.npz -m METHOD")
    learn, complete = rest.split("wisecrowd complete votes.csv -m METHOD")
    assert "wisecrowd aggregate votes.csv -m METHOD" in aggregate
    assert "dawid-skene" in aggregate
    assert "\nraykar " in learn
    assert "\nds-fill " in complete
    assert "wisecrowd learn votes.csv --features X.npz -m raykar -o results" in run("methods", "raykar").stdout
    assert "wisecrowd aggregate votes.csv -m one-coin -o results" in run("methods", "one-coin").stdout
    assert "wisecrowd complete votes.csv -m gmv -o results" in run("methods", "gmv").stdout
    assert "wisecrowd complete votes.csv --features X.npz -m tllc -o results" in run("methods", "tllc").stdout


def test_papers_of_many_authors(run: Any) -> None:
    text = run("methods").stdout
    assert "Ying et al. 2024" in text
    assert "others" not in text.replace("the others", "").replace("other ", "")


def test_numbers_are_read_as_such_in_the_example(run: Any) -> None:
    assert "wisecrowd aggregate ratings.csv --numeric -m median -o results" in run("methods", "median").stdout
    assert (
        "wisecrowd aggregate ratings.csv --ordered -m graded-response -o results"
        in run("methods", "graded-response").stdout
    )
    assert "wisecrowd aggregate arena.csv -m bradley-terry -o results" in run("methods", "bradley-terry").stdout
    assert "--numeric" not in run("methods", "dawid-skene").stdout.partition("On the command line")[2]


@pytest.mark.parametrize("name", wc.methods())
def test_the_page_of_every_method(run: Any, name: str) -> None:
    method = wc.find(name)
    text = run("methods", name).stdout
    assert text.startswith(name)
    assert " ".join(method.summary().replace("`", "").split()) in " ".join(text.split())
    for field in parameter_fields(method):
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


@pytest.mark.parametrize("width", [60, 200])
def test_a_page_is_as_wide_as_the_terminal(app: Any, width: int) -> None:
    result = CliRunner(env={"COLUMNS": str(width)}).invoke(app, ["methods", "dawid-skene"], prog_name="wisecrowd")
    prose = result.stdout.partition("Parameters")[0].splitlines()
    longest = max(len(line) for line in prose if not line.startswith("  "))  # formulas keep their lines
    assert 0.8 * width < longest <= width


def test_a_misspelt_name(run: Any) -> None:
    result = run("methods", "dawid-skeene")
    assert result.exit_code == 2
    assert "Did you mean 'dawid-skene'?" in result.stderr


def test_the_page_shows_parameters_once(run: Any) -> None:
    printed = run("methods", "one-coin").stdout
    assert "-----" not in printed
    assert printed.count("Number of pseudo-votes in every cell") == 1
