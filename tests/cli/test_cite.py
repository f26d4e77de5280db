from __future__ import annotations

from typing import Any


def test_bibtex(run: Any) -> None:
    result = run("cite", "dawid-skene")
    assert result.exit_code == 0
    assert result.stdout.startswith("@article{dawid1979maximum,")


def test_every_paper_once(run: Any) -> None:
    text = run("cite", "dawid-skene", "majority-vote", "DawidSkene").stdout
    assert text.count("@") == 2
    assert "\n\n@inproceedings{sheng2008get," in text


def test_usage(run: Any) -> None:
    assert run("cite").exit_code == 2
    assert run("cite", "nothing").exit_code == 2
