"""Files: whole, of the kind that their names say, and the same bytes for the same plot."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from matplotlib import pyplot

from wisecrowd import plot
from wisecrowd.errors import UsageError

BEGINS = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG", "eps": b"%!PS"}


@pytest.mark.parametrize("kind", BEGINS)
def test_the_name_says_what_it_becomes(kind: str, tmp_path: Path) -> None:
    path = plot.save(plot.votes_per_worker([1, 2, 2]), tmp_path / f"labels.{kind}")
    assert path.read_bytes().startswith(BEGINS[kind])
    assert [file.name for file in tmp_path.iterdir()] == [f"labels.{kind}"], "nothing is left beside it"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["svg", "pdf", "png"])
def test_the_same_plot_is_the_same_file(kind: str, tmp_path: Path) -> None:
    files = [plot.save(plot.votes_per_worker({"a": [1, 2], "$b$": [3]}), tmp_path / f"{n}.{kind}") for n in range(2)]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_text_stays_text(tmp_path: Path) -> None:
    path = plot.save(plot.votes_per_worker({"<b>$x$ & co": [1, 2]}), tmp_path / "labels.svg")
    texts = [element.text for element in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")]
    assert "<b>$x$ & co" in texts


def test_a_part_of_a_figure_is_saved_with_the_whole(tmp_path: Path) -> None:
    figure = pyplot.figure()
    ax = figure.subfigures(1, 2)[0].subplots()
    assert plot.save(plot.votes_per_worker([1], ax=ax), tmp_path / "a.png").exists()


def test_what_cannot_be_saved_is_refused(tmp_path: Path) -> None:
    ax = plot.votes_per_worker([1])
    with pytest.raises(UsageError, match=r"must end in one of .*'pdf'.*got 'labels.docx'"):
        plot.save(ax, tmp_path / "labels.docx")
    with pytest.raises(UsageError, match="Axes or a Figure; got list"):
        plot.save([ax], tmp_path / "labels.png")
    assert list(tmp_path.iterdir()) == []
