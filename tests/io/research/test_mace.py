from __future__ import annotations

from pathlib import Path

import pytest

import wisecrowd as wc
from wisecrowd.errors import InputError


def test_rows_are_tasks_and_columns_workers(tmp_path: Path) -> None:
    path = tmp_path / "matrix.csv"
    path.write_text('NOUN,,VERB\n,,\n\n"a,b",NOUN,\n')
    crowd = wc.read(path, format="mace")
    assert crowd.tasks.tolist() == [0, 1, 2]
    assert list(crowd.to_frame().itertuples(index=False, name=None)) == [
        (0, 0, "NOUN"),
        (0, 2, "VERB"),
        (2, 0, "a,b"),
        (2, 1, "NOUN"),
    ]


def test_numbers(tmp_path: Path) -> None:
    path = tmp_path / "matrix.csv"
    path.write_text("1.5,,2\n,3,\n")
    assert wc.read(path, format="mace", numeric=True).label.tolist() == [1.5, 2, 3]


def test_it_is_never_guessed_but_advised(tmp_path: Path) -> None:
    path = tmp_path / "matrix.csv"
    path.write_text("NOUN,VERB\nNOUN,NOUN\n")
    with pytest.raises(InputError, match='format="mace"'):
        wc.read(path)


@pytest.mark.parametrize(
    ("content", "message"), [(",,\n", "every cell is empty"), ("a,b\na\n", "line 2 has 1 columns, not 2")]
)
def test_bad_input(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "matrix.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        wc.read(path, format="mace")
