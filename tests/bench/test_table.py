"""Tables of benchmarks: figures, ranks, notes and formats."""

from __future__ import annotations

from typing import Any

import pytest

from wisecrowd.bench.benchmark import Benchmark, parse_published_table
from wisecrowd.bench.data import StoredDataset
from wisecrowd.bench.entries import UnavailableMethod
from wisecrowd.bench.render import render_text
from wisecrowd.bench.table import BenchmarkScores, format_number, format_seconds

ENTRIES = {name: UnavailableMethod("") for name in ("MV", "DS", "KOS")}
DATA = {
    "birds": StoredDataset("b", "keep"),
    "dogs": StoredDataset("d", "keep"),
    "rents": StoredDataset("r", "keep", ("mae", "rmse")),
}


def row(entry: str, data: str, seed: int = 0, **figures: float) -> dict[str, Any]:
    return {
        "entry": entry, "data": data, "seed": seed, "status": "ok", "seconds": 0.5, "figures": figures,
        "finished": "2025-01-02", "machine": "a computer", "wisecrowd": "1",
    }  # fmt: skip


def refusal(entry: str, data: str, status: str = "declined") -> dict[str, Any]:
    return row(entry, data) | {"status": status, "reason": "only two classes"}


ROWS = [
    row("MV", "birds", accuracy=0.7512),
    row("DS", "birds", accuracy=0.9),
    refusal("KOS", "birds"),
    row("MV", "dogs", accuracy=0.5),
    row("DS", "dogs", accuracy=0.5),
    row("KOS", "dogs", accuracy=0.4),
]


def made(**more: Any) -> Benchmark:
    data = {title: DATA[title] for title in ("birds", "dogs")}
    return Benchmark(**({"title": "A table", "name": "small", "entries": ENTRIES, "data": data} | more))


def test_paper_ours_difference() -> None:
    text = render_text(made(published=parse_published_table("birds dogs\nMV .75 .\nDS .89 .")), ROWS)
    assert text.splitlines()[:6] == [
        "        birds               dogs  seconds",
        "method  paper  ours  diff.",
        "─────────────────────────────────────────",
        "MV      .750   .751  +.001  .500  1.00",
        "DS      .890   .900  +.010  .500  1.00",
        "KOS            –¹           .400  0.50",
    ]
    assert text.splitlines()[-1] == "1. only two classes"


def test_data_down_the_side_with_means_and_times() -> None:
    text = render_text(made(rows="data", published=parse_published_table("birds dogs\nMV .75 .52")), ROWS)
    assert text.splitlines() == [
        "         MV                  DS    KOS",
        "data     paper  ours  diff.",
        "───────────────────────────────────────",
        "birds    .750   .751  +.001  .900  –¹",
        "dogs     .520   .500  -.020  .500  .400",
        "",
        "seconds         1.00         1.00  0.50",
        "",
        "1. only two classes",
    ]


def test_means_are_over_rows_that_are_complete() -> None:
    rows = [*ROWS, row("KOS", "birds", accuracy=0.8)]
    text = render_text(made(rows="data"), [one for one in rows if one["status"] == "ok"])
    assert "mean of 2 datasets  .626  .700  .600" in text


def test_ranks_share_ties_and_leave_out_who_answers_little() -> None:
    scores = BenchmarkScores(made(rows="data", ranked=True), ROWS)
    ranks = scores.ranks()
    assert "KOS" not in ranks.columns  # one answer of two
    assert ranks.loc["birds"].to_dict() == {"MV": 2.0, "DS": 1.0}
    assert ranks.loc["dogs"].to_dict() == {"MV": 1.5, "DS": 1.5}
    text = render_text(made(rows="data", ranked=True), ROWS)
    first = text.splitlines()[2].split()
    assert first[:3] == ["DS", "1.2", ".700"]  # the best comes first
    assert "mean rank (2 datasets)" in text


def test_lower_errors_rank_higher() -> None:
    rows = [row("MV", "rents", mae=3.0, rmse=4.0), row("DS", "rents", mae=2.0, rmse=5.0)]
    scores = BenchmarkScores(made(data={"rents": DATA["rents"]}, ranked=True), rows)
    assert scores.ranks().loc["rents"].to_dict() == {"MV": 2.0, "DS": 1.0}
    assert "rents MAE" in render_text(made(data={"rents": DATA["rents"]}), rows)


def test_seeds_give_mean_and_spread() -> None:
    rows = [row("MV", "birds", seed, accuracy=value) for seed, value in enumerate([0.7, 0.8, 0.9])]
    assert ".800±.100" in render_text(made(), rows)


@pytest.mark.parametrize(("status", "shown"), [("failed", "failed¹"), ("too slow", "slow¹"), ("declined", "–¹")])
def test_what_did_not_answer_says_why(status: str, shown: str) -> None:
    text = render_text(made(), [refusal("MV", "birds", status)])
    assert shown in text
    assert text.endswith("1. only two classes")


def test_notes_stand_where_they_belong_and_are_said_once() -> None:
    notes = {"birds": "other gold", "DS": "twenty passes", ("MV", "dogs"): "a tie"}
    text = render_text(made(notes=notes), ROWS)
    assert "birds¹" in text
    assert "DS³" in text
    assert ".500²" in text
    assert text.splitlines()[-4:] == ["1. other gold", "2. a tie", "3. twenty passes", "4. only two classes"]


def test_incomparable_figures_have_no_difference() -> None:
    published = parse_published_table("birds dogs\nMV .3 .5")
    text = render_text(made(published=published, incomparable=frozenset({"birds"})), ROWS)
    assert "MV      .300   .751         .500   .500  .000" in text


def test_only_some() -> None:
    text = render_text(made(), ROWS, only=({"MV"}, {"dogs"}))
    assert "MV" in text
    assert not any(word in text for word in ("DS", "birds", "KOS"))


def test_data_of_another_machine_are_shown() -> None:
    rows = [*ROWS, row("MV", "cats", accuracy=0.1)]
    assert "cats" in render_text(made(data_at_hand=True), rows)
    assert "cats" not in render_text(made(), rows)


@pytest.mark.parametrize(
    ("value", "sign", "text"),
    [(0.5, False, ".500"), (1.0, False, "1.000"), (-0.0001, True, ".000"), (0.02, True, "+.020"), (-1.5, True, "-1.500")],
)  # fmt: skip
def test_numbers_as_tables_print_them(value: float, sign: bool, text: str) -> None:
    assert format_number(value, 3, sign=sign) == text


def test_seconds_as_tables_print_them() -> None:
    assert [format_seconds(value) for value in (0.0, 0.123, 12.3, 1234.0)] == ["", "0.12", "12", "1,234"]
