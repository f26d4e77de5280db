"""The contract of methods: parameters, names, saving, citing, and truth and features by id."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import wisecrowd
from wisecrowd import DawidSkene, MajorityVote, OneCoin
from wisecrowd.base.citations import bibliography, cite, short
from wisecrowd.base.fields import parameter_fields
from wisecrowd.base.persistence import load
from wisecrowd.base.provenance import record
from wisecrowd.base.registry import find, kind_of, methods
from wisecrowd.data.alignment import align_features, encode_truth, truth_series
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import InputError, UsageError

CROWD = Crowd.from_triples([(task, worker, "ab"[(task * worker) % 2]) for task in range(6) for worker in range(3)])


class TestParameters:
    def test_get_set_and_repr(self) -> None:
        method = DawidSkene(smoothing=0.5)
        assert method.get_params()["smoothing"] == 0.5
        assert repr(method.set_params(max_iter=7)) == "DawidSkene(smoothing=0.5, max_iter=7)"
        assert repr(DawidSkene(prior=np.array([0.5, 0.5]))) == "DawidSkene(prior=array([0.5, 0.5]))"

    def test_a_misspelt_parameter_gets_advice(self) -> None:
        with pytest.raises(UsageError, match=r"no parameter 'smothing'.*Did you mean 'smoothing'\?"):
            DawidSkene().set_params(smothing=1)

    def test_scikit_learn_understands_a_method(self) -> None:
        from sklearn.base import clone
        from sklearn.utils.validation import check_is_fitted

        method = clone(OneCoin(smoothing=0.2))
        assert method.smoothing == 0.2
        with pytest.raises(ValueError, match="not fitted"):
            check_is_fitted(method)
        check_is_fitted(method.fit(CROWD))

    @pytest.mark.parametrize("name", methods())
    def test_every_parameter_is_explained(self, name: str) -> None:

        for field in parameter_fields(methods()[name]):
            assert field.metadata.get("help"), f"{name} does not say what {field.name} is"


class TestRegistry:
    def test_names_are_found_in_either_spelling(self) -> None:
        assert find("dawid-skene") is find("DawidSkene") is find("dawid_skene") is DawidSkene
        assert kind_of(DawidSkene) == "aggregate"
        with pytest.raises(UsageError, match="Did you mean 'one-coin'"):
            find("one-cion")
        with pytest.raises(UsageError, match="kind must be one of"):
            methods("aggregation")

    @pytest.mark.parametrize("name", methods())
    def test_every_method_is_public_summarised_and_citable(self, name: str) -> None:
        method = methods()[name]
        assert getattr(wisecrowd, method.__name__) is method
        assert method.summary().endswith(".")
        assert method.references, "a method has a paper"
        for key in method.references:
            assert short(key)

    def test_the_bibliography_is_used_and_well_formed(self) -> None:
        used = {key for method in methods().values() for key in method.references}
        for key, entry in bibliography().items():
            assert entry.count("{") == entry.count("}"), key
            assert "title" in entry
        assert used <= set(bibliography())
        assert cite("dawid-skene", DawidSkene, DawidSkene()).count("@") == 1
        with pytest.raises(UsageError, match="no reference"):
            short("nobody1900")


class TestSaving:
    def test_saving_twice_replaces(self, tmp_path: Path) -> None:
        MajorityVote().fit(CROWD).save(tmp_path / "model")
        fitted = DawidSkene(prior=np.array([0.3, 0.7])).fit(CROWD)
        fitted.save(tmp_path / "model")
        again = load(tmp_path / "model")
        assert isinstance(again, DawidSkene)
        assert again.prior.tolist() == [0.3, 0.7]
        assert again.restarts_.equals(fitted.restarts_)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]

    def test_nothing_else_is_overwritten(self, tmp_path: Path) -> None:
        (tmp_path / "thesis.txt").write_text("years of work")
        with pytest.raises(UsageError, match="is something else"):
            MajorityVote().fit(CROWD).save(tmp_path)
        with pytest.raises(UsageError, match="is something else"):
            MajorityVote().fit(CROWD).save(tmp_path / "thesis.txt")

    def test_what_is_no_model_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"no method\.json"):
            load(tmp_path)
        (tmp_path / "method.json").write_text(json.dumps({"version": 99}))
        with pytest.raises(InputError, match="layout 99"):
            load(tmp_path)

    def test_models_hold_no_pickle(self, tmp_path: Path) -> None:
        DawidSkene().fit(CROWD).save(tmp_path / "model")
        with np.load(tmp_path / "model" / "arrays.npz", allow_pickle=False) as arrays:
            assert all(arrays[name].dtype != object for name in arrays.files)

    def test_a_run_is_recorded(self) -> None:
        told = record(DawidSkene().fit(CROWD), CROWD, note="x")
        assert json.loads(json.dumps(told))["converged"] is True
        assert told["input"]["sha256"] == CROWD.digest
        assert told["note"] == "x"
        assert {"wisecrowd", "python", "numpy"} <= set(told["versions"])


class TestTruth:
    @pytest.mark.parametrize(
        "truth",
        [
            {1: "b", 4: "a"},
            pd.Series({1: "b", 4: "a"}),
            pd.DataFrame({"task": [1, 4], "label": ["b", "a"]}),
            {"task": [1, 4], "label": ["b", "a"]},
            pd.Series({"1": "b", "4": "a"}),
            pd.Series({1: "b", 4: "a", 2: None}),
            pd.Series({1: "b", 4: "a", 99: "z"}),
        ],
        ids=["dict", "series", "table", "columns", "ids as text", "with holes", "other tasks"],
    )
    def test_all_usual_forms(self, truth: object) -> None:
        assert encode_truth(truth, CROWD).tolist() == [-1, 1, -1, -1, 0, -1]

    def test_an_array_only_where_order_is_known(self) -> None:
        assert encode_truth(["a"] * 6, CROWD).tolist() == [0] * 6
        named = Crowd.from_triples([("x", "w", 1), ("y", "w", 0)])
        with pytest.raises(InputError, match="must carry task ids"):
            encode_truth([1, 0], named)
        with pytest.raises(InputError, match="task and label"):
            truth_series(pd.DataFrame({"question": [1]}))

    def test_what_cannot_be_matched(self) -> None:
        with pytest.raises(InputError, match="none of the 1 tasks with truth is in the crowd"):
            encode_truth({"no such task": "a"}, CROWD)
        with pytest.raises(InputError, match=r"classes that the crowd does not have: 'z'.*classes=\[...\]"):
            encode_truth({1: "z"}, CROWD)
        with pytest.raises(InputError, match="twice"):
            encode_truth(pd.Series(["a", "b"], index=[1, 1]), CROWD)


class TestFeatures:
    def test_a_table_is_matched_by_id(self) -> None:
        table = pd.DataFrame({"x": np.arange(8.0)}, index=range(7, -1, -1))
        assert align_features(table, CROWD)[:, 0].tolist() == [7, 6, 5, 4, 3, 2]

    def test_an_array_only_where_order_is_known(self) -> None:
        assert align_features(np.ones((6, 2)), CROWD).shape == (6, 2)
        named = Crowd.from_triples([("x", "w", 1), ("y", "w", 0)])
        with pytest.raises(InputError, match="cannot be matched"):
            align_features(np.ones((2, 2)), named)
        given = Crowd.from_triples([("x", "w", 1), ("y", "w", 0)], tasks=["y", "x"])
        assert align_features([[1.0], [2.0]], given).tolist() == [[1], [2]]

    @pytest.mark.parametrize(
        ("features", "message"),
        [
            (np.ones((5, 2)), "6 in all; got 5"),
            (np.full((6, 2), np.nan), "not finite"),
            (pd.DataFrame({"x": [1.0]}, index=[3]), "no features for 5 tasks"),
            (pd.DataFrame({"x": [1.0, 2.0]}, index=[3, 3]), "repeat"),
        ],
    )
    def test_bad_features(self, features: object, message: str) -> None:
        with pytest.raises(InputError, match=message):
            align_features(features, CROWD)
