"""The Crowd: sorted, immutable, sparse, and the same whatever it was built from."""

from __future__ import annotations

import pickle
from itertools import pairwise

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import InputError, UsageError

TRIPLES = [("t2", "bob", "dog"), ("t1", "ann", "cat"), ("t1", "bob", "dog"), ("t3", "cy", "cat")]
FRAME = pd.DataFrame(TRIPLES, columns=["task", "worker", "label"])


@st.composite
def frames(draw: st.DrawFn) -> pd.DataFrame:
    cells = draw(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 5)), unique=True, min_size=1, max_size=30))
    labels = draw(st.lists(st.sampled_from("abc"), min_size=len(cells), max_size=len(cells)))
    return pd.DataFrame(
        [(f"t{task}", f"w{worker}", label) for (task, worker), label in zip(cells, labels, strict=True)],
        columns=["task", "worker", "label"],
    )


class TestBuilding:
    @pytest.mark.parametrize(
        "frame",
        [
            FRAME,
            pl.DataFrame(FRAME),
            pa.Table.from_pandas(FRAME),
            FRAME.astype("category"),
            pl.DataFrame(FRAME).cast({"label": pl.Categorical, "worker": pl.Categorical}),
            FRAME.to_dict("list"),
        ],
        ids=["pandas", "polars", "pyarrow", "categorical", "polars categorical", "dict"],
    )
    def test_every_dataframe_gives_the_same_crowd(self, frame: object) -> None:
        assert Crowd.from_frame(frame) == Crowd.from_triples(TRIPLES)

    def test_duckdb_relations_work_too(self) -> None:
        relation = duckdb.sql("select 't1' as task, 'ann' as worker, 'cat' as label")
        assert Crowd.from_frame(relation) == Crowd.from_triples([("t1", "ann", "cat")])

    @given(frames(), st.integers(0, 99))
    def test_rows_are_sorted_and_their_order_forgotten(self, frame: pd.DataFrame, seed: int) -> None:
        crowd = Crowd.from_frame(frame)
        keys = list(zip(crowd.task, crowd.worker, strict=True))
        assert keys == sorted(keys)
        assert crowd == Crowd.from_frame(frame.sample(frac=1, random_state=seed))
        wanted = frame.sort_values(["task", "worker"]).reset_index(drop=True)
        pd.testing.assert_frame_equal(crowd.to_frame(), wanted, check_dtype=False)

    def test_arrays_are_read_only_and_the_callers_stay_writeable(self) -> None:
        task, worker, label = np.array([0, 1]), np.array([0, 0]), np.array([1, 0])
        crowd = Crowd.from_codes(task, worker, label, tasks=["a", "b"], workers=["w"], classes=["x", "y"])
        for array in (crowd.task, crowd.worker, crowd.label, crowd.vote_counts, crowd.offset):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0
        task[0] = 1
        assert crowd.task.tolist() == [0, 1]

    def test_vocabularies_fix_order_and_may_name_what_nobody_used(self) -> None:
        crowd = Crowd.from_frame(FRAME, tasks=["t9", "t3", "t2", "t1"], classes=["dog", "cat", "owl"])
        assert crowd.shape == (4, 3)
        assert crowd.vote_counts.tolist() == [[0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 1, 0]]

    def test_ids_outside_a_vocabulary_are_refused_by_name(self) -> None:
        with pytest.raises(InputError, match=r"1 label ids are not in the given vocabulary.*'dog'"):
            Crowd.from_frame(FRAME, classes=["cat"])
        with pytest.raises(InputError, match="repeats 'cat'"):
            Crowd.from_frame(FRAME, classes=["cat", "dog", "cat"])

    def test_text_and_number_are_the_same_id_when_a_vocabulary_says_so(self) -> None:
        frame = pd.DataFrame({"task": ["7", "8"], "worker": ["a", "a"], "label": ["x", "y"]})
        assert Crowd.from_frame(frame, tasks=[7, 8, 9]).vote_counts.tolist() == [[1, 0], [0, 1], [0, 0]]

    def test_integers_that_pandas_turned_into_floats_stay_integers(self) -> None:
        frame = pd.DataFrame({"task": [1.0, 2.0], "worker": [1, 1], "label": [0.0, 1.0]})
        assert Crowd.from_frame(frame).classes.tolist() == [0, 1]

    def test_a_matrix_with_a_missing_value(self) -> None:
        matrix = np.array([[0, -1, 1], [-1, -1, -1], [2, 2, -1]])
        crowd = Crowd.from_matrix(matrix, missing=-1)
        assert crowd.n_votes == 4
        assert crowd.votes_per_task.tolist() == [2, 0, 2]
        with_nan = Crowd.from_matrix(np.where(matrix < 0, np.nan, matrix))
        assert with_nan == crowd
        named = Crowd.from_matrix(pd.DataFrame(matrix, index=list("abc"), columns=list("xyz")), missing=-1)
        assert named.to_frame().iloc[0].to_dict() == {"task": "a", "worker": "x", "label": 0}

    def test_counts_make_a_crowd_without_worker_ids(self) -> None:
        crowd = Crowd.from_counts([[2, 0, 1], [0, 0, 0]])
        assert not crowd.has_workers
        assert crowd.vote_counts.tolist() == [[2, 0, 1], [0, 0, 0]]
        with pytest.raises(UsageError, match="no worker ids"):
            _ = crowd.n_workers

    def test_a_numeric_crowd_holds_numbers(self) -> None:
        crowd = Crowd.from_frame({"task": ["a", "a"], "worker": ["x", "y"], "label": [1.5, 2.5]}, numeric=True)
        assert crowd.is_numeric
        assert crowd.label.tolist() == [1.5, 2.5]
        assert "numeric" in repr(crowd)
        with pytest.raises(UsageError, match="numbers, not classes"):
            _ = crowd.vote_counts


class TestRefusals:
    @pytest.mark.parametrize(
        ("frame", "message"),
        [
            ({"task": ["a"], "worker": ["b"]}, r"no column 'label' among 'task', 'worker'"),
            ({"task": ["a", None], "worker": ["b", "c"], "label": [1, 2]}, r"1 of 2 rows has no task \(row 1\)"),
            ({"task": ["a"], "worker": ["b"], "label": [0.5]}, r"fractional numbers.*numeric=True"),
            ([("a", "b", 1)], "expected a dataframe"),
        ],
    )
    def test_bad_tables(self, frame: object, message: str) -> None:
        with pytest.raises(InputError, match=message):
            Crowd.from_frame(frame)

    def test_the_columns_that_are_there_are_named(self) -> None:
        frame = pd.DataFrame({"task": ["a"], "rater": ["b"], "label": [1]})
        with pytest.raises(InputError, match=r"no column 'worker' among 'task', 'rater', 'label'"):
            Crowd.from_frame(frame)
        with pytest.raises(InputError, match="equal length"):
            Crowd.from_matrix([[0, 1], [1]])

    def test_mixed_types(self) -> None:
        with pytest.raises(InputError, match="mixes types"):
            Crowd.from_frame(pd.DataFrame({"task": [1, "a"], "worker": ["b", "c"], "label": [1, 2]}))

    def test_missing_can_be_dropped(self) -> None:
        frame = {"task": ["a", None, "a"], "worker": ["b", "c", "d"], "label": [1.0, 2.0, float("nan")]}
        assert Crowd.from_frame(frame, missing="drop").n_votes == 1

    def test_triples_must_be_triples(self) -> None:
        with pytest.raises(InputError, match=r"\(task, worker, label\)"):
            Crowd.from_triples([("a", "b")])

    def test_weights_must_be_positive(self) -> None:
        frame = {"task": ["a"], "worker": ["b"], "label": [1], "weight": [-1.0]}
        with pytest.raises(InputError, match="weights must lie between"):
            Crowd.from_frame(frame, weight="weight")

    def test_codes_must_lie_in_their_vocabulary(self) -> None:
        with pytest.raises(InputError, match=r"task codes must lie in 0…0; got 0…3"):
            Crowd.from_codes([0, 3], [0, 0], [0, 0], tasks=["a"], workers=["w"], classes=["x"])
        with pytest.raises(UsageError, match="integer array"):
            Crowd.from_codes([0.5], [0], [0], tasks=["a"], workers=["w"], classes=["x"])

    def test_columns_must_have_one_length(self) -> None:
        with pytest.raises(InputError, match="their lengths differ"):
            Crowd.from_codes([0, 0], [0], [0], tasks=["a"], workers=["w"], classes=["x"])


class TestDuplicates:
    ROWS = (("t", "w", "b"), ("t", "v", "a"), ("t", "w", "a"), ("t", "w", "b"))

    def test_an_error_that_names_the_way_out(self) -> None:
        with pytest.raises(InputError, match=r"2 rows repeat.*worker 'w' labelled task 't' twice.*duplicates='first'"):
            Crowd.from_triples(self.ROWS)

    @pytest.mark.parametrize(
        ("duplicates", "said"), [("first", "ab"), ("last", "ab"), ("distinct", "aab"), ("keep", "aabb")]
    )
    def test_the_ways_out(self, duplicates: str, said: str) -> None:
        crowd = Crowd.from_triples(self.ROWS, duplicates=duplicates)
        assert "".join(sorted(crowd.to_frame()["label"])) == said

    def test_first_and_last_follow_the_file(self) -> None:
        rows = [("t", "w", "a"), ("t", "w", "b"), ("s", "w", "a")]
        assert Crowd.from_triples(rows, duplicates="first").to_frame()["label"].tolist() == ["a", "a"]
        assert Crowd.from_triples(rows, duplicates="last").to_frame()["label"].tolist() == ["a", "b"]

    def test_kept_duplicates_forget_their_order(self) -> None:
        assert Crowd.from_triples(self.ROWS, duplicates="keep") == Crowd.from_triples(
            self.ROWS[::-1], duplicates="keep"
        )


class TestDerived:
    @given(frames())
    def test_everything_derived_agrees_with_pandas(self, frame: pd.DataFrame) -> None:
        crowd = Crowd.from_frame(frame)
        wanted = frame.groupby(["task", "label"]).size().unstack(fill_value=0).reindex(crowd.tasks)
        assert np.array_equal(crowd.vote_counts, wanted.to_numpy())
        assert crowd.votes_per_task.tolist() == frame.groupby("task").size().tolist()
        assert crowd.votes_per_worker.tolist() == frame.groupby("worker").size().tolist()
        rows = crowd.worker_order
        assert (np.diff(crowd.worker[rows]) >= 0).all()
        pairs = crowd.pairs
        assert np.array_equal(pairs.worker[pairs.vote_pairs], crowd.worker)
        assert np.array_equal(pairs.label[pairs.vote_pairs], crowd.label)
        assert len(pairs) == len(frame.drop_duplicates(["worker", "label"]))

    def test_equal_crowds_have_equal_digests(self) -> None:
        crowd = Crowd.from_frame(FRAME)
        assert crowd.digest == pickle.loads(pickle.dumps(crowd)).digest
        assert hash(crowd) == hash(Crowd.from_frame(FRAME))
        assert crowd != Crowd.from_frame(FRAME, classes=["dog", "cat"])
        assert crowd != "a crowd"


class TestSubCrowds:
    CROWD = Crowd.from_triples([(task, worker, (task + worker) % 3) for task in range(10) for worker in range(4)])

    def test_slicing_by_task_keeps_the_order_of_the_index(self) -> None:
        part = self.CROWD[[7, 2]]
        assert part.tasks.tolist() == [7, 2]
        assert np.array_equal(part.vote_counts, self.CROWD.vote_counts[[7, 2]])
        assert self.CROWD[2:4].tasks.tolist() == [2, 3]
        assert self.CROWD[np.arange(10) > 7].tasks.tolist() == [8, 9]

    @pytest.mark.parametrize("index", [[1, 1], 3, [[1, 2]]])
    def test_what_cannot_index_a_crowd(self, index: object) -> None:
        with pytest.raises(UsageError):
            _ = self.CROWD[index]

    def test_scikit_learn_splits_a_crowd(self) -> None:
        from sklearn.model_selection import KFold, train_test_split

        train, test = train_test_split(self.CROWD, test_size=0.3, random_state=0)
        assert (len(train), len(test)) == (7, 3)
        assert sum(len(self.CROWD[test]) for _, test in KFold(4).split(self.CROWD)) == 10

    def test_workers_can_be_selected(self) -> None:
        part = self.CROWD.select_workers([3, 1])
        assert part.shape == (10, 2)
        assert part.votes_per_worker.tolist() == [10, 10]
        with pytest.raises(InputError, match="unknown workers: 9"):
            self.CROWD.select_workers([9])

    def test_hiding_splits_the_votes(self) -> None:
        kept, hidden = self.CROWD.hide(0.25, random_state=3)
        assert (kept.n_votes, hidden.n_votes) == (30, 10)
        assert kept.shape == hidden.shape == self.CROWD.shape
        assert Crowd.concat([kept, hidden]) == self.CROWD
        assert self.CROWD.hide(0.25, random_state=3)[1] == hidden
        with pytest.raises(UsageError, match="between 0 and 1"):
            self.CROWD.hide(1.5)

    @pytest.mark.parametrize("n", [1, 3, 25])
    def test_shards_hold_every_vote_once(self, n: int) -> None:
        shards = self.CROWD.split_tasks(n)
        assert len(shards) == n
        assert sum(shard.n_votes for shard in shards) == self.CROWD.n_votes
        assert Crowd.concat(shards) == self.CROWD

    def test_concat_unites_vocabularies(self) -> None:
        joined = Crowd.concat([self.CROWD[:2], Crowd.from_triples([(99, 7, 5)])])
        assert joined.shape == (3, 5)
        assert joined.classes.tolist() == [0, 1, 2, 5]
        with pytest.raises(InputError, match="repeat"):
            Crowd.concat([self.CROWD, self.CROWD])
        with pytest.raises(UsageError, match="one form"):
            Crowd.concat([self.CROWD, self.CROWD.drop_workers()])

    def test_forgetting_workers_keeps_the_counts(self) -> None:
        assert np.array_equal(self.CROWD.drop_workers().vote_counts, self.CROWD.vote_counts)

    def test_filled_votes_are_marked_and_can_be_dropped(self) -> None:
        crowd = Crowd.from_codes([0, 0], [0, 1], [0, 1], tasks=["t"], workers=["a", "b"], classes=["x", "y"],
                      weight=[1, 0.5], observed=[True, False])  # fmt: skip
        assert "1 filled in" in repr(crowd)
        assert crowd.select_observed().to_frame()["worker"].tolist() == ["a"]
        assert crowd.vote_counts.tolist() == [[1, 0.5]]
        assert crowd.to_frame()["observed"].tolist() == [True, False]

    def test_fields_can_be_replaced(self) -> None:
        same = self.CROWD.replace_fields()
        assert same == self.CROWD
        workers = [f"worker {number}" for number in range(self.CROWD.n_workers)]
        renamed = self.CROWD.replace_fields(workers=workers)
        assert renamed.workers.tolist() == workers
        assert np.array_equal(renamed.label, self.CROWD.label)
        few = self.CROWD.replace_fields([3, 5], weight=[2.0, 0.5])
        assert few.weight.tolist() == [2.0, 0.5]
        assert few.label.tolist() == self.CROWD.label[[3, 5]].tolist()
        assert few.tasks.equals(self.CROWD.tasks)

    def test_replaced_fields_keep_accepted_duplicates(self) -> None:
        crowd = Crowd.from_triples([("t", "w", "a"), ("t", "w", "b")], duplicates="keep")
        assert crowd.replace_fields(classes=["x", "y"]).to_frame()["label"].tolist() == ["x", "y"]

    def test_an_empty_crowd_is_a_crowd(self) -> None:
        empty = self.CROWD.take(np.zeros(40, dtype=bool))
        assert empty.n_votes == 0
        assert empty.vote_counts.sum() == 0
        assert len(empty.pairs) == 0


def test_pieces_of_any_kind_are_joined() -> None:
    rng = np.random.default_rng(0)
    names = {"tasks": range(30), "workers": ["ann", "bob"], "classes": ["x", "y", "z"]}
    votes = np.repeat(np.arange(30), 2), np.tile([0, 1], 30), rng.integers(3, size=60)
    crowd = Crowd.from_codes(*votes, **names)
    half = Crowd.from_codes(
        *votes, **names, weight=np.where(np.arange(60) < 40, 1.0, rng.random(60)), observed=np.arange(60) < 50
    )
    for whole in (crowd, half):  # the first chunks of the second say nothing of weights, or of what was observed
        for cuts in ([], [7], [3, 3, 20], [1, 2, 4, 8, 16]):
            edges = [0, *cuts, 30]
            joined = Crowd.join_chunks(whole[start:stop] for start, stop in pairwise(edges))
            assert joined == whole
            assert joined.digest == whole.digest
    with pytest.raises(UsageError, match="at least one chunk"):
        Crowd.join_chunks([])


class TestOrderedClasses:
    def test_numbers_are_sorted_by_size(self) -> None:
        crowd = Crowd.from_triples([("t1", "ann", "10"), ("t1", "bob", "9"), ("t2", "bob", "2")], ordered=True)
        assert crowd.classes.tolist() == ["2", "9", "10"]
        assert (crowd.answer_type, crowd.is_ordered) == ("ordinal", True)
        assert crowd.to_frame()["label"].tolist() == ["10", "9", "2"]
        assert "3 ordered classes" in repr(crowd)

    def test_names_need_their_order(self) -> None:
        with pytest.raises(InputError, match="the order of the classes 'cat', 'dog' is unknown"):
            Crowd.from_frame(FRAME, ordered=True)
        assert Crowd.from_frame(FRAME, ordered=True, classes=["dog", "cat"]).classes.tolist() == ["dog", "cat"]

    def test_numbers_and_order_exclude_each_other(self) -> None:
        with pytest.raises(UsageError, match="either numeric=True or ordered=True"):
            Crowd.from_triples([("t1", "ann", 1.5)], numeric=True, ordered=True)

    def test_the_order_survives_every_selection(self) -> None:
        crowd = Crowd.from_triples([(task, worker, task % 3) for task in range(6) for worker in "ab"], ordered=True)
        visible, heldout = crowd.hide(0.5)
        parts = [crowd[:3], crowd[[4, 1]], crowd.select_workers(["b"]), crowd.drop_workers(), visible, heldout]
        parts += [Crowd.join_chunks(crowd.split_tasks(2)), Crowd.concat([visible, heldout]), *crowd.split_tasks(2)]
        assert all(part.is_ordered for part in parts)

    def test_the_order_is_part_of_the_content(self) -> None:
        triples = [("t1", "ann", 1), ("t1", "bob", 2)]
        assert Crowd.from_triples(triples, ordered=True) != Crowd.from_triples(triples)

    def test_crowds_with_other_orders_are_not_concatenated(self) -> None:
        low, high = (Crowd.from_triples([(f"t{n}", "ann", n)], ordered=True) for n in (1, 2))
        with pytest.raises(UsageError, match="the first has all classes in their order"):
            Crowd.concat([low, high])
        with pytest.raises(UsageError, match="all numeric, ordinal or categorical"):
            Crowd.concat([low, Crowd.from_triples([("t2", "ann", 1)])])


def test_one_of_each_is_singular() -> None:
    assert (
        repr(Crowd.from_triples([("t1", "ann", "cat")])) == "Crowd(1 vote: 1 task x 1 worker, 1 class, 1.0 votes/task)"
    )
    assert "1 ordered class," in repr(Crowd.from_triples([("t1", "ann", "1")], ordered=True))


def test_tasks_are_put_in_an_order() -> None:
    crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t2", "ann", "dog"), ("t2", "bob", "cat")])
    assert not crowd.has_task_order
    ordered = crowd.order_tasks(pd.DataFrame(index=["t3", "t2", "t1"]))
    assert ordered.has_task_order
    assert ordered.tasks.tolist() == ["t3", "t2", "t1"]
    pd.testing.assert_frame_equal(
        ordered.to_frame().sort_values(["task", "worker"], ignore_index=True), crowd.to_frame(), check_categorical=False
    )
    with pytest.raises(InputError, match="1 tasks with votes are missing in the order, for example 't1'"):
        crowd.order_tasks(["t2"])
    with pytest.raises(InputError, match="tasks occur twice: 't1'"):
        crowd.order_tasks(["t1", "t1", "t2"])


def test_an_order_may_be_text_where_tasks_are_numbers() -> None:
    crowd = Crowd.from_triples([(1, "ann", "cat"), (2, "ann", "dog")])
    assert crowd.order_tasks(["2", "1"]).tasks.tolist() == [2, 1]
    assert crowd.order_tasks(["2", "1", "9"]).tasks.tolist() == ["2", "1", "9"]
