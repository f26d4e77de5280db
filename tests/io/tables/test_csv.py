from __future__ import annotations

import bz2
import gzip
from pathlib import Path

import pytest

import wisecrowd as wc
from wisecrowd.errors import InputError

VOTES = "task,worker,label\nt1,ann,cat\nt1,bob,dog\nt2,ann,cat\n"


@pytest.fixture
def votes(tmp_path: Path) -> Path:
    path = tmp_path / "votes.csv"
    path.write_text(VOTES, encoding="utf-8")
    return path


def said(path: Path, **options: object) -> list[tuple[str, str, str]]:
    return list(wc.read(path, **options).to_frame().itertuples(index=False, name=None))


def test_read(votes: Path) -> None:
    assert said(votes) == [("t1", "ann", "cat"), ("t1", "bob", "dog"), ("t2", "ann", "cat")]


def test_ids_and_labels_stay_text(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("task,worker,label\n007,1,NA\n7,1,null\n08,1,None\n9,1,1.0\n")
    assert said(path) == [("007", "1", "NA"), ("08", "1", "None"), ("7", "1", "null"), ("9", "1", "1.0")]


def test_an_empty_cell_is_a_hole_and_quotes_an_empty_text(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text('task,worker,label\nt1,ann,""\nt2,ann,\n')
    assert said(path, missing="drop") == [("t1", "ann", "")]
    with pytest.raises(InputError, match=r"votes\.csv: 1 of 2 rows has no label \(line 3\).*missing=\"drop\""):
        wc.read(path)


@pytest.mark.filterwarnings("ignore:.*but count as different:wisecrowd.errors.DataWarning")
def test_spaces_and_case_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("task,worker,label\nt1,ann, cat\nt1,bob,Cat\nt1,cy,cat\n")
    assert wc.read(path).classes.tolist() == [" cat", "Cat", "cat"]


@pytest.mark.parametrize("separator", [";", "\t", "|", ","])
@pytest.mark.parametrize("suffix", ["csv", "tsv", "txt"])
def test_the_header_shows_the_separator(tmp_path: Path, separator: str, suffix: str) -> None:
    path = tmp_path / f"votes.{suffix}"
    path.write_text(VOTES.replace(",", separator))
    if separator in ";|" and suffix == "txt":
        with pytest.raises(InputError, match="is not recognised"):
            wc.read(path)
    assert wc.read(path, format="csv").n_votes == 3


def test_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(VOTES, encoding="utf-8-sig")
    assert wc.read(path).n_votes == 3


@pytest.mark.parametrize(("suffix", "compress"), [(".gz", gzip.compress), (".bz2", bz2.compress)])
def test_compressed(tmp_path: Path, suffix: str, compress: object) -> None:
    path = tmp_path / f"votes.csv{suffix}"
    path.write_bytes(compress(VOTES.encode()))  # type: ignore[operator]
    assert wc.read(path).n_votes == 3
    copy = tmp_path / f"copy.csv{suffix}"
    wc.write(wc.read(path), copy)
    assert wc.read(copy) == wc.read(path)
    assert copy.read_bytes()[:2] == path.read_bytes()[:2]


def test_weights_by_name_and_by_argument(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("task,worker,label,weight,sure\nt1,ann,cat,0.5,2\nt1,bob,dog,1.5,3\n")
    assert wc.read(path).weight.tolist() == [0.5, 1.5]
    assert wc.read(path, weight="sure").weight.tolist() == [2, 3]


def test_a_weight_must_be_a_number(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("task,worker,label,weight\nt1,ann,cat,much\n")
    with pytest.raises(InputError, match=r"the weight column must hold numbers.*much"):
        wc.read(path)


def test_columns_by_argument(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("photo,who,what,label\n1,ann,cat,x\n")
    assert said(path, task="photo", worker="who", label="what") == [("1", "ann", "cat")]


def test_recognised_columns_are_told(votes: Path, caplog: pytest.LogCaptureFixture) -> None:
    votes.write_text("question,worker,answer\n1,ann,cat\n")
    with caplog.at_level("INFO", logger="wisecrowd.io"):
        wc.read(votes)
    assert "read 'question' as the task column" in caplog.text
    assert "read 'answer' as the label column" in caplog.text


def test_without_worker_ids(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("task,label\nt1,cat\nt1,cat\nt1,dog\n")
    with pytest.raises(InputError, match=r"worker=False \(--no-workers\) if the votes have no worker ids"):
        wc.read(path)
    crowd = wc.read(path, worker=False)
    assert not crowd.has_workers
    assert crowd.vote_counts.tolist() == [[2, 1]]


def test_numbers(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("task,worker,label\nt1,ann,0.25\nt1,bob,-3e2\n")
    assert wc.read(path, numeric=True).label.tolist() == [0.25, -300]
    path.write_text("task,worker,label\nt1,ann,0.25\nt1,bob,much\n")
    with pytest.raises(InputError, match=r"the label column must hold numbers; got 'much' \(line 3\)"):
        wc.read(path, numeric=True)
    path.write_text("task,worker,label\nt1,ann,0.25\nt1,bob,nan\n")
    with pytest.raises(InputError, match="1 of 2 rows has no label"):
        wc.read(path, numeric=True)


def test_other_columns_may_hold_anything(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text('when,task,"a ""note""",worker,label\n2020,t1,"x,\ny",ann,cat\n')
    assert said(path) == [("t1", "ann", "cat")]


def test_filled_in_votes_are_marked(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("task,worker,label,weight,observed\nt1,ann,cat,1,true\nt1,bob,dog,0.5,False\n")
    assert wc.read(path).observed.tolist() == [True, False]


def test_an_unrelated_column_called_observed_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("task,worker,label,observed\nt1,ann,cat,monday\n")
    with caplog.at_level("INFO", logger="wisecrowd.io"):
        assert wc.read(path).observed.tolist() == [True]
    assert "left out the column 'observed'" in caplog.text


# ---------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"task,worker,label\n", "there are no votes in it"),
        (b"task,worker,label", "there are no votes in it"),
        (b"q,who,what\n1,ann,cat\n", "no task, worker and label columns; the columns are 'q', 'who', 'what'"),
        (b"task worker label\n1 ann cat\n", "perhaps because ' ' separates the values"),
        (b"task,worker,label\nt1,ann,cat,extra\n", "line 2 has 4 columns, not 3: 't1,ann,cat,extra'"),
        (b"task,worker,label\nt1,ann\n", "line 2 has 2 columns, not 3"),
        (b"task,worker,label,label\nt1,ann,cat,dog\n", "several columns called 'label'"),
        ("task,worker,label\nt1,ann,café\n".encode("latin-1"), "not in UTF-8.*iconv"),
        ("tâche,worker,label\nt1,ann,x\n".encode("latin-1"), "not in UTF-8"),
        ("task,worker,label\nt1,ann,x\n".encode("utf-16"), "text in UTF-16; save it as UTF-8"),
        (bytes(range(256)) * 4, "zero bytes|not in UTF-8"),
        (b"\x1f\x8b\x08\x00rubbish", "compressed by gzip, but not called .gz"),
        (b"PK\x03\x04rubbish", "a zip or Excel file"),
        (b'task,worker,label\n"t1,ann,cat\n', "quotation mark on line 2 is never closed"),
    ],
)
def test_bad_input(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "votes.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"(?s)votes.csv.*({message})"):
        wc.read(path)


def test_bad_encoding_far_into_the_file(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    rows = "".join(f"t{row},ann,cat\n" for row in range(20_000))
    path.write_bytes(f"task,worker,label\n{rows}".encode() + b"last,bob,caf\xe9\n")
    with pytest.raises(InputError, match="not in UTF-8"):
        wc.read(path)


def test_a_bad_row_far_into_the_file_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    rows = "".join(f"t{row},ann,cat\n" for row in range(20_000))
    path.write_text(f"task,worker,label\n{rows}last,bob\n")
    with pytest.raises(InputError, match="line 20002 has 2 columns, not 3: 'last,bob'"):
        wc.read(path)


def test_damaged_compression(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv.gz"
    path.write_bytes(gzip.compress(VOTES.encode() * 1000)[:60])
    with pytest.raises(InputError, match=r"votes\.csv\.gz"):
        wc.read(path)


def test_a_repeated_vote_needs_a_decision(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("task,worker,label\nt1,ann,cat\nt1,ann,dog\nt1,ann,dog\n")
    with pytest.raises(InputError, match="duplicates='first' or 'last'"):
        wc.read(path)
    counts = {how: wc.read(path, duplicates=how).n_votes for how in ("first", "last", "distinct", "keep")}
    assert counts == {"first": 1, "last": 1, "distinct": 2, "keep": 3}


def test_long_files_are_written_in_portions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from wisecrowd.io.tables import crowd_tables as tables

    monkeypatch.setattr(tables, "_PORTION_VOTES", 3)
    crowd = wc.Crowd.from_triples([(f"t{n}", "ann", "x") for n in range(10)])
    wc.write(crowd, tmp_path / "votes.csv")
    assert wc.read(tmp_path / "votes.csv") == crowd


def test_messages_name_the_line_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text('task,worker,label,weight\n\nt1,ann,"a\nb",1\nt1,bob,,1\nt2,ann,x,-1\nt2,,y,1\n')
    with pytest.raises(InputError, match=r"1 of 4 rows has no worker \(line 7\)"):
        wc.read(path)
    with pytest.raises(InputError, match=r"1 of 4 weights do not lie between .* \(line 6\)"):
        wc.read(path, missing="drop")
    messages = [finding.message for finding in wc.check_votes(path).errors]
    assert [message.rpartition("(")[2] for message in messages] == ["line 7)", "line 5)", "line 6)"]
    path.write_text("task,worker,label,weight\nt1,ann,,1\nt1,bob,x,heavy\n")
    with pytest.raises(InputError, match=r"the weight column must hold numbers; got 'heavy' \(line 3\)"):
        wc.read(path)
    path.write_text("task,worker,label\nt1,ann,\n\nt1,bob,x\n")
    assert "got 'x' (line 4)" in str(wc.check_votes(path, numeric=True))


def test_a_ragged_row_after_blank_lines_and_breaks(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text('task,worker,label\n\nt1,ann,"a\nb"\n\nt1,bob\n')
    with pytest.raises(InputError, match="line 6 has 2 columns, not 3: 't1,bob'"):
        wc.read(path)


def test_blank_lines_behind_a_byte_order_mark_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "truth.csv"
    path.write_bytes(b"\xef\xbb\xbf\n\n")
    with pytest.raises(InputError, match="blank lines only"):
        wc.read_truth(path)


@pytest.mark.parametrize(
    ("row", "advice"),
    [("t2,ann", "complete the row, or remove it"), ("t2,ann,a,b", "put quotes around values that hold ','")],
)
def test_advice_on_rows_of_another_length(tmp_path: Path, row: str, advice: str) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(f"task,worker,label\nt1,ann,x\n{row}\n")
    with pytest.raises(InputError, match=f"line 3 has .* columns, not 3.*; {advice}$"):
        wc.read(path)


def test_a_file_that_is_cut_off_in_a_row_is_named_so(votes: Path) -> None:
    votes.write_text(VOTES + "t2,bo")
    with pytest.raises(
        InputError, match=r"line 5 has 2 columns, not 3: 't2,bo'; the file ends there .* seems to be cut off"
    ):
        wc.read(votes)
    votes.write_text(VOTES + "t2,bo\n")
    with pytest.raises(InputError, match="'t2,bo'; complete the row, or remove it"):
        wc.read(votes)
