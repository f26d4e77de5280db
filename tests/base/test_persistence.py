"""Saved methods."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from wisecrowd import GLAD, DawidSkene, DSFill, MajorityVote, Median, Raykar
from wisecrowd.base import persistence
from wisecrowd.base.persistence import load
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import InputError, NotFitted, UsageError
from wisecrowd.utils import files
from wisecrowd.utils.stored_files import write_table

CROWD = Crowd.from_triples([(task, worker, "ab"[(task * worker) % 2]) for task in range(6) for worker in range(3)])


def test_saving_twice_replaces(tmp_path: Path) -> None:
    MajorityVote().fit(CROWD).save(tmp_path / "model")
    fitted = DawidSkene(prior=np.array([0.3, 0.7])).fit(CROWD)
    fitted.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert isinstance(again, DawidSkene)
    assert again.prior.tolist() == [0.3, 0.7]
    assert again.restarts_.equals(fitted.restarts_)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]


def test_nothing_else_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(UsageError, match="exists and is not a saved method"):
        MajorityVote().fit(CROWD).save(tmp_path)
    with pytest.raises(UsageError, match="exists and is not a saved method"):
        MajorityVote().fit(CROWD).save(tmp_path / "thesis.txt")


def test_a_file_that_somebody_put_into_a_saved_method_is_not_removed(tmp_path: Path) -> None:
    MajorityVote().fit(CROWD).save(tmp_path / "model")
    (tmp_path / "model" / "thesis.txt").write_text("years of work")
    with pytest.raises(UsageError, match=r"is not a saved method \('thesis\.txt'\)"):
        MajorityVote().fit(CROWD).save(tmp_path / "model")
    assert (tmp_path / "model" / "thesis.txt").read_text() == "years of work"


def test_a_link_to_a_folder_stays_a_link(tmp_path: Path) -> None:
    MajorityVote().fit(CROWD).save(tmp_path / "elsewhere" / "model")
    (tmp_path / "model").symlink_to(tmp_path / "elsewhere" / "model")
    DawidSkene().fit(CROWD).save(tmp_path / "model")
    assert (tmp_path / "model").is_symlink()
    assert isinstance(load(tmp_path / "elsewhere" / "model"), DawidSkene)


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no method\.json"):
        load(tmp_path)
    (tmp_path / "method.json").write_text(json.dumps({"version": 99}))
    with pytest.raises(InputError, match="layout 99"):
        load(tmp_path)


def test_models_hold_no_pickle(tmp_path: Path) -> None:
    DawidSkene().fit(CROWD).save(tmp_path / "model")
    with np.load(tmp_path / "model" / "arrays.npz", allow_pickle=False) as arrays:
        assert all(arrays[name].dtype != object for name in arrays.files)


# ---------------------------------------------------------------------- one step, many at once


def cannot_exchange(source: Path, target: Path) -> None:  # noqa: ARG001
    raise OSError(errno.ENOSYS, "Function not implemented")


@pytest.mark.parametrize("exchange", [True, False])
def test_an_interrupted_save_leaves_the_old_model(
    exchange: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupt a save at every call that changes a folder."""
    if not exchange:
        monkeypatch.setattr(files, "_exchange", cannot_exchange)
    MajorityVote().fit(CROWD).save(tmp_path / "model")
    fitted = DawidSkene().fit(CROWD)
    real = {name: getattr(Path, name) for name in ("rename", "mkdir")} | {"_exchange": files._exchange}
    for stop in range(20):
        calls = 0

        def interrupt(name: str) -> Callable[..., Any]:
            def call(*arguments: Any, **options: Any) -> Any:
                nonlocal calls
                calls += 1
                if calls > stop:  # noqa: B023
                    raise KeyboardInterrupt
                return real[name](*arguments, **options)

            return call

        with monkeypatch.context() as patched:
            for name in ("rename", "mkdir"):
                patched.setattr(Path, name, interrupt(name))
            patched.setattr(files, "_exchange", interrupt("_exchange"))
            try:
                fitted.save(tmp_path / "model")
                finished = True
            except KeyboardInterrupt:
                finished = False
        loaded = load(tmp_path / "model")
        assert isinstance(loaded, DawidSkene if finished else MajorityVote)
        if finished:
            break
    assert stop > 2
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.slow
@pytest.mark.parametrize("can_exchange", [True, False], ids=["in one step", "in two steps"])
def test_many_savers_and_readers_at_once(tmp_path: Path, can_exchange: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Path) -> None:
        raise OSError(errno.EINVAL, "not supported")

    if not can_exchange:
        monkeypatch.setattr(files, "_exchange", refuse)
    models = [DawidSkene(smoothing=0.01 * number).fit(CROWD) for number in range(1, 5)]
    models[0].save(tmp_path / "model")
    stop = threading.Event()

    def read() -> int:
        n_read = 0
        while not stop.is_set():
            loaded: Any = load(tmp_path / "model")
            wanted = models[round(100 * loaded.smoothing) - 1]
            assert np.array_equal(loaded.posterior_, wanted.posterior_)
            n_read += 1
        return n_read

    with ThreadPoolExecutor(5) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        try:
            list(pool.map(lambda number: models[number % 4].save(tmp_path / "model"), range(40)))
        finally:
            stop.set()
        assert all(reader.result() > 0 for reader in readers)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_folder_that_others_replace_while_it_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    MajorityVote().fit(CROWD).save(tmp_path / "model")
    real_list, calls = Path.iterdir, []

    def replace_and_list(path: Path) -> Any:
        calls.append(path)
        if len(calls) == 1:  # the saver sees what is left of a folder that another process replaces and removes
            (tmp_path / "model").rename(tmp_path / "old")
            (tmp_path / "old" / "method.json").unlink()
            shutil.copytree(tmp_path / "saved", tmp_path / "model")
            return real_list(tmp_path / "old")
        return real_list(path)

    shutil.copytree(tmp_path / "model", tmp_path / "saved")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "iterdir", replace_and_list)
        DawidSkene().fit(CROWD).save(tmp_path / "model")
    assert isinstance(load(tmp_path / "model"), DawidSkene)


def test_a_model_that_is_being_replaced_in_two_steps_is_read(tmp_path: Path) -> None:
    MajorityVote().fit(CROWD).save(tmp_path / "model")
    (tmp_path / "model").rename(files.get_replaced_path(tmp_path / "model"))  # killed after the first step
    assert isinstance(load(tmp_path / "model"), MajorityVote)
    DawidSkene().fit(CROWD).save(tmp_path / "model")
    assert isinstance(load(tmp_path / "model"), DawidSkene)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


# ---------------------------------------------------------------------- models from a stranger


def seal(folder: Path) -> None:
    """Give a changed model the digests of its files: an attacker who changes files can compute digests."""
    state = json.loads((folder / "method.json").read_text())
    for name in state["sha256"]:
        if (folder / name).exists():
            state["sha256"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    (folder / "method.json").write_text(json.dumps(state))


def change_state(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    state = json.loads((folder / "method.json").read_text())
    change(state)
    (folder / "method.json").write_text(json.dumps(state))


def change_arrays(folder: Path, file: str = "arrays.npz", **arrays: Any) -> None:
    with np.load(folder / file) as stored:
        content = dict(stored)
    np.savez(folder / file, **{name: array for name, array in (content | arrays).items() if array is not None})
    seal(folder)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A saved model, valid."""
    DawidSkene().fit(CROWD).save(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("name", ["arrays.npz", "classes_.arrow", "task_index_.arrow", "restarts_.arrow"])
def test_a_changed_file_is_named(name: str, model: Path) -> None:
    content = bytearray((model / name).read_bytes())
    content[len(content) // 2] ^= 255
    (model / name).write_bytes(content)
    with pytest.raises(InputError, match=rf"{name} was changed after it was written"):
        load(model)
    (model / name).unlink()
    with pytest.raises(InputError, match=rf"{name} does not exist"):
        load(model)


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        (
            {"posterior_": np.ones((6, 3))},
            r"posterior_ must have the shape \(n_tasks, n_classes\) = \(6, 2\); got",
        ),
        ({"posterior_": np.ones((5, 2))}, "posterior_ must have the shape"),
        ({"posterior_": np.ones(12)}, "posterior_ must have the shape"),
        ({"posterior_": np.full((6, 2), np.nan)}, "posterior_ must hold finite numbers"),
        ({"posterior_": np.array(["a"])}, "posterior_ must be of the type"),
        ({"tally_": np.full((6, 2), np.inf)}, "tally_ must"),
        ({"tally_": np.ones((0, 2))}, "tally_ must have the shape"),
        (
            {"pair_worker_": np.array([-1, 0, 1, 1, 2, 2], dtype=np.int32)},
            "pair_worker_ must hold codes in 0…2; got -1…2",
        ),
        (
            {"pair_worker_": np.array([0, 0, 1, 1, 2, 9], dtype=np.int32)},
            "pair_worker_ must hold codes in 0…2; got 0…9",
        ),
        ({"pair_label_": np.array([0, 1, 0, 1, 0, 2], dtype=np.int32)}, "pair_label_ must hold codes in 0…1"),
        ({"pair_label_": np.zeros(6, dtype=np.int32)}, "repeated or not in ascending order"),
        ({"pair_label_": np.zeros(6)}, "pair_label_ must be of the type"),
        ({"prior_": np.ones(3)}, "prior_ must have the shape"),
        ({"prior_": np.array([0.5, np.nan])}, "prior_ must hold finite numbers"),
        ({"prior_": np.ones(2, dtype=np.longdouble)}, "prior_ must be of the type"),
        ({"n_iter_": np.ones(2)}, "'n_iter_' is listed twice"),
        ({"other_": np.ones(2)}, "has no attribute 'other_'"),
        ({"fit": np.ones(2)}, "'fit' is not the name of a fitted attribute"),
        ({"__class__": np.ones(2)}, "is not the name of a fitted attribute"),
    ],
    ids=range(19),
)
def test_tampered_arrays_are_refused(arrays: dict[str, Any], reason: str, tmp_path: Path) -> None:
    model = tmp_path / "model"
    grid = [(task, worker) for task in range(6) for worker in range(3)]
    fitted = DawidSkene().fit(Crowd.from_triples([(task, worker, "ab"[(task + worker) % 2]) for task, worker in grid]))
    assert fitted.tally_.shape == (6, 2)
    fitted.save(model)
    change_arrays(model, **arrays)
    with pytest.raises(InputError, match=reason):
        load(model)


@pytest.mark.parametrize("name", ["posterior_", "tally_", "pair_worker_", "pair_label_", "e_step_prior_"])
def test_a_missing_array_is_a_clear_error(name: str, model: Path) -> None:
    change_arrays(model, **{name: None})
    uses: list[Callable[[Any], Any]] = [
        lambda fitted: fitted.labels_, lambda fitted: fitted.workers_, lambda fitted: fitted.confusion_,
        lambda fitted: fitted.predict(CROWD), lambda fitted: DawidSkene().fit(CROWD, start=fitted),
    ]  # fmt: skip
    n_errors = 0
    for use in uses:
        try:
            use(load(model))
        except UsageError:  # anything else is no clear error
            n_errors += 1
    assert n_errors > 0


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state.update(version=1),
        lambda state: state.update(version=[]),
        lambda state: state.update(method="../../etc"),
        lambda state: state.update(method=None),
        lambda state: state.update(method="\ud800"),
        lambda state: state.update(parameters=[]),
        lambda state: state["parameters"].update(no_such_parameter=1),
        lambda state: state["parameters"].update(prior={"array": [[1], [1, 2]]}),
        lambda state: state["parameters"].update(prior={"method": "dawid-skene", "parameters": 7}),
        lambda state: state.update(tables=[]),
        lambda state: state["tables"].update(classes_="Pickle"),
        lambda state: state["tables"].update(classes_="DataFrame"),
        lambda state: state["tables"].update(absent_="Index"),
        lambda state: state["tables"].pop("classes_"),
        lambda state: state["values"].update(n_iter_="many"),
        lambda state: state["values"].update(n_iter_=True),
        lambda state: state["values"].update(posterior_=[1, 2]),
        lambda state: state["values"].update(unknown_=1),
        lambda state: state["values"].update(classes_=1),
        lambda state: state.update(methods=["learner_"]),
        lambda state: state.update(methods=[7]),
        lambda state: state.update(parts=["classifier_"]),
        lambda state: state.pop("sha256"),
        lambda state: state["sha256"].clear(),
        lambda state: state["sha256"].update({"arrays.npz": None}),
    ],
    ids=range(25),
)
def test_tampered_states_are_refused(change: Callable[[dict[str, Any]], object], model: Path) -> None:
    change_state(model, change)
    with pytest.raises(InputError, match="model"):
        load(model)


@pytest.mark.parametrize("parameter", [{"min_votes": []}, {"random_state": "x"}, {"fill_mode": 7}, {"fill_weight": -1}])
def test_parameters_of_another_type_are_refused(parameter: dict[str, Any], tmp_path: Path) -> None:
    DSFill().fit(CROWD).save(tmp_path / "model")
    change_state(tmp_path / "model", lambda state: state["parameters"].update(parameter))
    with pytest.raises((InputError, UsageError), match="must be"):
        load(tmp_path / "model")


def test_a_missing_array_of_numbers_is_a_clear_error(tmp_path: Path) -> None:
    Median().fit(Crowd.from_triples([("t1", "ann", 1.5), ("t1", "bob", 2.5)], numeric=True)).save(tmp_path / "model")
    change_arrays(tmp_path / "model", mae_=None)
    with pytest.raises(NotFitted, match="this Median has no workers_"):
        _ = load(tmp_path / "model").workers_


@pytest.mark.parametrize("text", ["[" * 100_000, '{"version": ' + "1" * 5000 + "}", '{"version": NaN}', ""])
def test_json_that_no_parser_likes_is_refused(text: str, model: Path) -> None:
    (model / "method.json").write_text(text)
    with pytest.raises(InputError, match=r"method\.json is damaged"):
        load(model)


@pytest.mark.parametrize(
    "ids", [["a", "a"], ["a", None], [], ["a"], ["a", "b", "c"], [[1], [2]], [0.5, np.nan]], ids=str
)
def test_classes_that_do_not_fit_are_refused(ids: list[Any], model: Path) -> None:
    column = pa.array(ids)
    if pa.types.is_list(column.type):
        with (
            pa.OSFile(str(model / "classes_.arrow"), "wb") as sink,
            pa.ipc.new_file(sink, pa.schema([("value", column.type)])) as writer,
        ):
            writer.write_table(pa.table({"value": column}))
    else:
        write_table(model / "classes_.arrow", {"value": column})
    seal(model)
    with pytest.raises(InputError, match="model"):
        load(model)


def test_huge_sizes_are_refused_before_memory_is_allocated(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    crowd = Crowd.from_triples([(task, worker, (task + worker) % 2) for task in range(30) for worker in range(3)])
    Raykar(max_iter=2, tol=0).fit(rng.normal(size=(30, 3)), crowd).save(tmp_path / "model")
    for shape in ([10**9], [10**5, 10**5], [-3], [3.0], [True], [], [1] * 40, ["3"], 3):
        change_state(tmp_path / "model", lambda state: state["values"].update(feature_shape_=shape))  # noqa: B023
        with pytest.raises(InputError, match="feature_shape_"):
            load(tmp_path / "model")
    change_state(tmp_path / "model", lambda state: state["values"].update(feature_shape_=[4]))
    with pytest.raises(InputError, match="model"):
        load(tmp_path / "model")


@pytest.mark.parametrize(
    "arrays",
    [
        {"coefficients": np.ones((4, 3))}, {"coefficients": np.ones(4)}, {"coefficients": np.full((4, 2), np.nan)},
        {"mean": np.ones(2)}, {"scale": np.ones((3, 1))}, {"mean": None}, {"coefficients": np.array(["x"])},
    ],
    ids=range(7),
)  # fmt: skip
def test_a_classifier_that_does_not_fit_is_refused(arrays: dict[str, Any], tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    crowd = Crowd.from_triples([(task, worker, (task + worker) % 2) for task in range(30) for worker in range(3)])
    Raykar(max_iter=2, tol=0).fit(rng.normal(size=(30, 3)), crowd).save(tmp_path / "model")
    change_arrays(tmp_path / "model", "classifier_.npz", **arrays)
    with pytest.raises(InputError, match="model"):
        load(tmp_path / "model")


@pytest.mark.parametrize("name", ["vote_task_", "vote_worker_", "vote_label_"])
def test_votes_of_a_completer_are_checked(name: str, tmp_path: Path) -> None:
    fitted: Any = DSFill().fit(CROWD)
    for value in (-1, 100):
        fitted.save(tmp_path / "model")
        codes = np.array(getattr(fitted, name))
        codes[0] = value
        change_arrays(tmp_path / "model", **{name: codes})
        with pytest.raises(InputError, match=f"{name} must hold codes"):
            load(tmp_path / "model")
    fitted.save(tmp_path / "model")
    change_arrays(tmp_path / "model", vote_weight_=np.ones(3))
    with pytest.raises(InputError, match="vote_weight_ must be empty or have one value per vote"):
        load(tmp_path / "model")


def test_links_that_lead_nowhere_or_round_are_refused(model: Path) -> None:
    shutil.copy(model / "arrays.npz", model.parent / "copy.npz")
    (model / "arrays.npz").unlink()
    (model / "arrays.npz").symlink_to("arrays.npz")
    with pytest.raises(InputError, match=r"arrays\.npz"):
        load(model)
    (model / "arrays.npz").unlink()
    os.mkfifo(model / "arrays.npz")
    with pytest.raises(InputError, match=r"arrays\.npz is not a regular file"):
        load(model)


def test_methods_are_not_nested_without_end(tmp_path: Path) -> None:
    from wisecrowd.complete.mmlc_fill import MMLCFill

    DSFill().fit(CROWD).save(tmp_path / "model")
    folder = tmp_path / "model"
    change_state(folder, lambda state: state.update(method=MMLCFill.name, methods=["learner_"], parameters={}))
    (folder / "learner_").symlink_to(folder)
    for _ in range(3):
        change_state(folder, lambda state: state["sha256"].update({"learner_/method.json": ""}))
        seal(folder)
    with pytest.raises(InputError, match="model"):
        load(folder)


# ---------------------------------------------------------------------- files and clusters of the fit


def test_a_checkpoint_of_the_fit_is_not_used_by_a_later_fit(tmp_path: Path) -> None:
    place = tmp_path / "fit.npz"
    for method in (DawidSkene(checkpoint=str(place)), GLAD(checkpoint=str(place))):
        method.fit(CROWD).save(tmp_path / "model")
        assert str(place) not in (tmp_path / "model" / "method.json").read_text()
        place.unlink()
        loaded: Any = load(tmp_path / "model")
        assert loaded.checkpoint is None
        loaded.fit(CROWD)
        assert not place.exists()
        loaded.set_params(checkpoint=str(place)).fit(CROWD)
        assert place.exists()
        place.unlink()


def test_a_model_cannot_choose_a_file_or_a_cluster(model: Path, tmp_path: Path) -> None:
    place = tmp_path / "victim.npz"
    place.write_text("not yours")
    change_state(model, lambda state: state["parameters"].update(checkpoint=str(place), engine="ray:evil.example:6379"))
    loaded: Any = load(model)
    assert (loaded.checkpoint, loaded.engine) == (None, "local")
    loaded.fit(CROWD)
    assert place.read_text() == "not yours"
    change_state(model, lambda state: state["parameters"].update(engine="ray"))
    assert load(model).engine == "ray"  # type: ignore[attr-defined]  # starts a cluster on this machine only


def test_a_nested_method_has_no_checkpoint_either(tmp_path: Path) -> None:
    DSFill(aggregator=DawidSkene(checkpoint=str(tmp_path / "fit.npz"))).fit(CROWD).save(tmp_path / "model")
    loaded: Any = load(tmp_path / "model")
    assert loaded.aggregator.checkpoint is None


def test_an_attribute_that_is_not_there_is_explained() -> None:
    with pytest.raises(NotFitted, match="this DawidSkene has no prior_; call fit first"):
        _ = DawidSkene().prior_
    assert not hasattr(DawidSkene(), "prior_")
    with pytest.raises(AttributeError, match="'DawidSkene' object has no attribute 'priors_'"):
        _ = DawidSkene().priors_  # type: ignore[attr-defined]  # the error


def test_tables_are_read_as_they_were_written(tmp_path: Path) -> None:
    crowd = Crowd.from_triples([(pd.Timestamp("2024-01-01"), "ann", True), (pd.Timestamp("2024-01-02"), "bob", False)])
    MajorityVote().fit(crowd).save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.task_index_.tolist() == crowd.tasks.tolist()
    assert loaded.classes_.tolist() == [False, True]
    categories = Crowd.from_triples([("t", "ann", "x")], classes=pd.CategoricalIndex(["x", "y"]))
    MajorityVote().fit(categories).save(tmp_path / "model")
    assert load(tmp_path / "model").classes_.tolist() == ["x", "y"]


@pytest.mark.slow
def test_a_folder_that_is_replaced_all_the_time_is_read_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    MajorityVote().fit(CROWD).save(tmp_path / "model")
    identities = iter(range(1000))
    monkeypatch.setattr(persistence, "_find_folder", lambda source: (source, next(identities)))
    assert isinstance(load(tmp_path / "model"), MajorityVote)
