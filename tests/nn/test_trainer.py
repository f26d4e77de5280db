from __future__ import annotations

import json
import math
import os
import pickle
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wisecrowd.base.checkpoints import METADATA
from wisecrowd.errors import InputError, MissingExtra, UsageError
from wisecrowd.nn.schedules import SCHEDULES
from wisecrowd.nn.seeding import select_device
from wisecrowd.nn.trainer import ParameterGroup, Trainer, TrainingHistory, TrainingSettings, split_by_decay
from wisecrowd.utils import progress

torch = pytest.importorskip("torch")

#: A fit that needs all that a checkpoint holds: dropout, moments, the order of batches, a schedule, validation.
FIT = """
import torch
from wisecrowd.nn.trainer import Trainer, TrainingSettings
from wisecrowd.nn.seeding import fork_random_state

def make(place=None, **settings):
    with fork_random_state(torch.device("cpu"), 1):
        model = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Dropout(0.3), torch.nn.Linear(8, 1))
    settings = {"epochs": 12, "batch_size": 8, "learning_rate": 0.01, "schedule": "cosine", "random_state": 5} | settings
    return Trainer(model, TrainingSettings(**settings), checkpoint=place, owner={"data": "grid"})

def run(trainer, before_loss=lambda trainer: None, **options):
    x = torch.linspace(-1, 1, 90).reshape(30, 3)
    y = x.sum(dim=1, keepdim=True) ** 2
    def loss(rows):
        before_loss(trainer)
        return ((trainer.model(x[rows]) - y[rows]) ** 2).mean()
    trainer.run(loss, 30, validate=lambda: -float(((trainer.model(x) - y) ** 2).mean()), **options)
    return trainer
"""
_space: dict[str, Any] = {}
exec(FIT, _space)
make: Callable[..., Trainer] = _space["make"]
run: Callable[..., Trainer] = _space["run"]


def bits(trainer: Trainer) -> dict[str, bytes]:
    """All of a trainer but how long it took."""
    arrays = trainer.arrays()
    arrays["history"] = arrays["history"][:, :2]
    return {name: array.tobytes() for name, array in arrays.items()}


# ---------------------------------------------------------------------- chance


def test_same_seed_same_bits() -> None:
    assert bits(run(make())) == bits(run(make()))
    assert bits(run(make())) != bits(run(make(random_state=6)))


def test_global_random_state_is_untouched() -> None:
    def states() -> tuple[Any, ...]:
        return torch.get_rng_state().tolist(), random.getstate(), pickle.dumps(np.random.get_state())  # noqa: NPY002

    before = states()
    run(make())
    assert states() == before


def test_global_random_state_does_not_matter() -> None:
    first = bits(run(make()))
    torch.rand(7)
    assert bits(run(make())) == first


# ---------------------------------------------------------------------- batches


@pytest.mark.parametrize(("n_rows", "sizes"), [(20, [8, 8, 4]), (17, [8, 9]), (8, [8]), (1, [1]), (3, [3])])
def test_every_row_once_an_epoch_and_none_alone(n_rows: int, sizes: list[int]) -> None:
    batch: list[Any] = []
    trainer = make(epochs=2)

    def loss(rows: Any) -> Any:
        batch.append(rows.tolist())
        return trainer.model(torch.zeros(len(rows), 3)).mean()

    trainer.run(loss, n_rows)
    assert [len(rows) for rows in batch] == sizes * 2
    half = len(sizes)
    first, second = (list(chain(*batch[:half])), list(chain(*batch[half:])))
    assert sorted(first) == sorted(second) == list(range(n_rows))
    assert n_rows < 8 or first != second


def test_the_mean_loss_weighs_batches_by_their_rows() -> None:
    trainer = make(epochs=1)
    still = torch.nn.Parameter(torch.zeros(()))

    def loss(rows: Any) -> Any:
        return rows.float().mean() + 0 * sum(each.sum() for each in trainer.model.parameters()) + 0 * still

    trainer.run(loss, 30)
    assert trainer.history.to_frame()["loss"].iloc[0] == pytest.approx(np.arange(30).mean())


def test_no_rows_and_a_loss_that_explodes_are_errors() -> None:
    with pytest.raises(UsageError, match="at least one row"):
        make().run(lambda rows: rows.float().mean(), 0)
    trainer = make()
    with pytest.raises(UsageError, match=r"loss is nan after 1 epochs.*lower learning_rate"):
        trainer.run(lambda rows: trainer.model(torch.zeros(len(rows), 3)).mean() * math.nan, 4)


# ---------------------------------------------------------------------- schedules and groups


def rates(schedule: Any, epochs: int = 10) -> list[float]:
    """The learning rate at the start of every epoch, one batch each."""
    found: list[float] = []
    trainer = make(epochs=epochs, schedule=schedule, batch_size=64)
    run(trainer, lambda trainer: found.append(trainer.optimisers[0].param_groups[0]["lr"]))
    return found


def test_schedules_are_those_of_torch() -> None:
    def of_torch(make_schedule: Callable[[Any], Any]) -> list[float]:
        optimiser = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.01)
        schedule, found = make_schedule(optimiser), []
        for _ in range(10):
            found.append(optimiser.param_groups[0]["lr"])
            optimiser.step()
            schedule.step()
        return found

    assert rates("constant") == [0.01] * 10
    cosine = of_torch(lambda optimiser: torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 10))
    assert rates("cosine") == pytest.approx(cosine)
    # Torch puts the last step of its cycle at the end of training, and the top one step before 30 % of the steps.
    cycle = torch.optim.lr_scheduler.OneCycleLR
    fine = make(epochs=1)
    optimiser = torch.optim.SGD(fine.model.parameters(), lr=1.0)
    schedule = cycle(optimiser, max_lr=1.0, total_steps=10_001, cycle_momentum=False)
    theirs = []
    for _ in range(10_000):
        theirs.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        schedule.step()
    ours = [SCHEDULES["onecycle"](step / 10_000) for step in range(10_000)]
    assert ours == pytest.approx(theirs, abs=2e-3)
    assert max(rates("onecycle")) == pytest.approx(0.01)


def test_steps_are_a_tenth_after_two_thirds_of_the_plan() -> None:
    assert rates("step", epochs=9) == pytest.approx([0.01] * 6 + [0.001] * 3)


def test_past_the_plan_the_rate_stays_where_the_schedule_ended() -> None:
    trainer = run(make(epochs=3))
    before = [each.detach().clone() for each in trainer.model.parameters()]
    run(trainer, epochs=2)
    assert len(trainer.history) == 5
    assert all(torch.equal(a, b) for a, b in zip(before, trainer.model.parameters(), strict=True))


def test_groups_differ_in_rate_decay_schedule_and_optimiser() -> None:
    torch.nn.init.ones_((still := torch.nn.Linear(2, 2, bias=False)).weight)
    moving, free = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2))
    still.moving, still.free = moving, free
    groups = [
        ParameterGroup(
            parameters=still.parameters(recurse=False), optimiser="sgd", learning_rate=0.1, weight_decay=0.5
        ),
    ]
    with pytest.raises(UsageError, match="in two of them"):
        Trainer(still, TrainingSettings(), groups=[*groups, ParameterGroup(parameters=[moving])])
    groups = [
        ParameterGroup(parameters=[still.weight], optimiser="sgd", learning_rate=0.1, weight_decay=0.5),
        ParameterGroup(parameters=[moving], schedule="cosine"),
    ]
    with pytest.raises(UsageError, match="free is in none"):
        Trainer(still, TrainingSettings(), groups=groups)
    trainer = Trainer(
        still,
        TrainingSettings(epochs=2, weight_decay=0.5),
        groups=[*groups, ParameterGroup(parameters=[free], weight_decay=0.0)],
    )
    trainer.run(lambda rows: 0 * (still.weight.sum() + free.sum() + moving.sum()), 4)
    # The gradient is zero, so that weights move by their decay alone.
    assert torch.all(still.weight < 1)
    assert torch.all(moving < 1)
    assert torch.all(free == 1)
    kinds = [type(each).__name__ for each in trainer.optimisers]
    assert kinds == ["SGD", "Adam", "Adam"]
    assert [each.param_groups[0]["lr"] for each in trainer.optimisers] == pytest.approx([0.1, 0.0005, 0.001])


def test_biases_and_norms_do_not_decay() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))
    weights, others = split_by_decay(model, learning_rate=0.5)
    assert [each.ndim for each in weights.parameters] == [2, 2]
    assert [each.ndim for each in others.parameters] == [1, 1, 1, 1]
    assert (weights.weight_decay, others.weight_decay, others.learning_rate) == (None, 0.0, 0.5)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"optimiser": "adma"}, "Did you mean 'adam'"),
        ({"schedule": "linear"}, "constant"),
        ({"learning_rate": 0.0}, "learning_rate must be above 0"),
        ({"weight_decay": -1.0}, "weight_decay must be 0 or more"),
        ({"batch_size": 0}, "batch_size"),
        ({"epochs": -1}, "epochs"),
        ({"dtype": "float16"}, "float32"),
    ],
)
def test_bad_settings_say_what_was_wanted(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        TrainingSettings(**wrong)


def test_device_and_precision() -> None:
    assert next(iter(run(make(dtype="float64", device="cpu", epochs=0)).model.parameters())).dtype is torch.float64
    assert select_device("auto").type in ("cpu", "cuda")
    with pytest.raises(UsageError, match="torch cannot use the device 'abacus'"):
        make(device="abacus")
    with pytest.raises(UsageError, match="torch cannot use the device 'meta'"):
        make(device="meta")


# ---------------------------------------------------------------------- validation


def test_early_stopping_keeps_the_best_beside_the_last() -> None:
    scores = iter([0.1, 0.5, 0.3, 0.4, 0.2, 0.9])
    weights: list[Any] = []
    trainer = make(epochs=6, patience=3, schedule="constant")

    def validate() -> float:
        assert not trainer.model.training
        weights.append(trainer.model[0].weight.detach().clone())
        return next(scores)

    history = trainer.run(lambda rows: trainer.model(torch.ones(len(rows), 3)).mean(), 30, validate=validate)
    assert (len(history), history.best_epoch, trainer.is_stopped) == (5, 1, True)
    assert torch.equal(trainer.model[0].weight, weights[4])
    trainer.load_best()
    assert torch.equal(trainer.model[0].weight, weights[1])
    assert not torch.equal(weights[1], weights[4])


def test_without_patience_all_epochs_run_and_the_best_is_still_known() -> None:
    trainer = run(make(epochs=6))
    table = trainer.history.to_frame()
    assert list(table.index) == [1, 2, 3, 4, 5, 6]
    assert trainer.history.best_epoch == int(table["validation"].argmax())
    assert (table["seconds"] > 0).all()


def test_history_without_validation() -> None:
    history = TrainingHistory()
    assert history.best_epoch is None
    history.add(1.0, math.nan, 0.1)
    assert history.best_epoch is None
    assert history.to_frame()["validation"].isna().all()


def test_progress_is_reported() -> None:
    news: list[tuple[str, int, int]] = []
    with progress.listen(lambda what, step, total, detail: news.append((what, step, total))):
        run(make(epochs=3))
    assert news == [("training", 1, 3), ("training", 2, 3), ("training", 3, 3)]


# ---------------------------------------------------------------------- checkpoints


class Interrupted(Exception):
    pass


def stop_in_epoch(number: int) -> Callable[[Trainer], None]:
    batches = iter(range(1000))

    def stop(trainer: Trainer) -> None:
        if next(batches) % 4 == 2 and len(trainer.history) == number:
            raise Interrupted

    return stop


@pytest.mark.parametrize("optimiser", ["adam", "adamw", "radam", "sgd"])
def test_an_interrupted_fit_resumes_to_the_same_bits(optimiser: str, tmp_path: Path) -> None:
    whole = bits(run(make(optimiser=optimiser)))
    place = tmp_path / "deep" / "fit.npz"
    for number in (0, 5, 9):
        with pytest.raises(Interrupted):
            run(make(place, optimiser=optimiser), stop_in_epoch(number))
    assert place.exists()
    assert bits(run(make(place, optimiser=optimiser))) == whole
    finished = make(place, optimiser=optimiser)
    assert bits(finished) == whole
    assert bits(run(finished)) == whole


def test_early_stopping_survives_a_checkpoint(tmp_path: Path) -> None:
    def validated(trainer: Trainer) -> Trainer:
        values = [0.1, 0.5, 0.3, 0.4, 0.2, 0.9]
        score = lambda: values[len(trainer.history)]  # noqa: E731
        trainer.run(lambda rows: trainer.model(torch.ones(len(rows), 3)).mean(), 30, validate=score)
        return trainer

    first = validated(make(tmp_path / "fit.npz", patience=3, epochs=6))
    again = validated(make(tmp_path / "fit.npz", patience=3, epochs=6))
    assert len(again.history) == 5
    assert bits(again) == bits(first)


def test_a_fit_killed_in_the_middle_of_an_epoch_resumes_to_the_same_bits(tmp_path: Path) -> None:
    place = tmp_path / "fit.npz"
    hang = f"""{FIT}
import sys, time
batches = iter(range(1000))
def hang(trainer):
    if len(trainer.history) == 7 and next(batches) == 2:
        print("waiting to be killed", flush=True)
        time.sleep(600)
run(make(sys.argv[1]), hang)
"""
    with subprocess.Popen([sys.executable, "-c", hang, str(place)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting to be killed\n"
        os.kill(process.pid, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert [file.name for file in tmp_path.iterdir()] == ["fit.npz"]
    resumed = make(place)
    assert 0 < len(resumed.history) <= 7
    assert bits(run(resumed)) == bits(run(make()))


def test_a_checkpoint_of_another_fit_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "fit.npz"
    run(make(place, epochs=1))
    with pytest.raises(InputError, match=r"learning_rate is 0\.01 there and 0\.02 here.*delete the file"):
        make(place, epochs=1, learning_rate=0.02)
    place.write_bytes(place.read_bytes()[:100])
    with pytest.raises(InputError, match=r"fit\.npz is damaged"):
        make(place, epochs=1)


def tamper(place: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change arrays of a checkpoint that otherwise belongs to its fit."""
    with np.load(place) as archive:
        stored = dict(archive)
    metadata = json.loads(str(stored.pop(METADATA)))
    arrays = {name: stored[f"array-{number}"] for number, name in enumerate(metadata["names"])}
    change(arrays)
    metadata["names"] = list(arrays)
    columns = {f"array-{number}": array for number, array in enumerate(arrays.values())}
    np.savez(place, **{METADATA: np.array(json.dumps(metadata))}, **columns)  # type: ignore[arg-type]


def move_random_stream(arrays: dict[str, Any]) -> None:
    """Let a Mersenne Twister draw its next number from behind its table."""
    arrays["order"] = arrays["order"].copy()
    arrays["order"][8:12] = np.frombuffer(np.int32(600).tobytes(), dtype=np.uint8)  # remaining words
    arrays["order"][16:24] = np.frombuffer(np.int64(620).tobytes(), dtype=np.uint8)  # drawn words


TRAINER_CHANGES: list[Callable[[dict[str, Any]], object]] = [
    lambda arrays: arrays.update({"model.0.weight": np.full((8, 3), np.nan)}),
    lambda arrays: arrays.update({"model.0.weight": np.zeros((3, 8))}),
    lambda arrays: arrays.update({"model.0.weight": np.full((8, 3), "x")}),
    lambda arrays: arrays.pop("model.0.weight"),
    lambda arrays: arrays.update({"model.9.weight": np.zeros(2)}),
    lambda arrays: arrays.update({"best.0.weight": np.zeros((1, 1))}),
    lambda arrays: arrays.update({"moment.0.0.exp_avg": np.zeros((1, 1))}),
    lambda arrays: arrays.update({"moment.0.0.exp_avg": np.full((8, 3), np.inf)}),
    lambda arrays: arrays.pop("moment.0.0.exp_avg"),
    lambda arrays: arrays.update({"moment.0.99.exp_avg": np.zeros(2)}),
    lambda arrays: arrays.update({"moment.0.x": np.zeros(2)}),
    lambda arrays: arrays.update({"moment.0.0.step": np.zeros(7)}),
    lambda arrays: arrays.update(history=np.zeros(3)),
    lambda arrays: arrays.update(history=np.zeros((2, 4))),
    lambda arrays: arrays.pop("history"),
    lambda arrays: arrays.update(order=np.zeros(3, dtype=np.uint8)),
    lambda arrays: arrays.update(order=np.zeros(len(arrays["order"]))),
    move_random_stream,
    lambda arrays: arrays.update({"random.cpu": np.zeros(9, dtype=np.uint8)}),
    lambda arrays: arrays.pop("random.cpu"),
    lambda arrays: arrays.clear(),
]


@pytest.mark.parametrize("change", TRAINER_CHANGES, ids=range(len(TRAINER_CHANGES)))
def test_a_tampered_checkpoint_is_refused(change: Callable[[dict[str, Any]], object], tmp_path: Path) -> None:
    place = tmp_path / "fit.npz"
    run(make(place, epochs=2))
    tamper(place, change)
    with pytest.raises(InputError, match=r"fit\.npz is damaged.*Delete the file"):
        run(make(place, epochs=2))


def test_without_torch_the_message_is_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r"wisecrowd\[learn\]"):
        Trainer(None, TrainingSettings())  # type: ignore[arg-type]


def test_tables_beside_radam_move_as_under_radam() -> None:
    """Every row is touched in every step, so that lazy and plain moments are the same ones."""
    start = torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(4, 3)
    every = torch.arange(4)

    def moved(optimiser: Any, sparse: bool) -> Any:
        model = torch.nn.Embedding(4, 3, sparse=sparse, _weight=start.clone())
        beside = torch.nn.Linear(1, 1)
        whole = torch.nn.ModuleList([model, beside])
        groups = [
            ParameterGroup(parameters=model.parameters(), optimiser=optimiser),
            ParameterGroup(parameters=beside.parameters()),
        ]
        settings = TrainingSettings(epochs=30, batch_size=2, optimiser="radam", learning_rate=0.01, dtype="float64")
        trainer = Trainer(whole, settings, groups=groups)
        trainer.run(lambda _: ((model(every) - 2) ** 2).mean() + 0 * beside.weight.sum(), n_rows=8)
        return model.weight.detach() - start

    lazy, plain = moved("lazyadam", sparse=True), moved(None, sparse=False)
    # RAdam's first five steps follow the bare gradient, and those of tables rest: 0.01 x 5 x 2 x 3 / 12 at most.
    assert float((lazy - plain).abs().max()) < 0.03
    assert float(plain.abs().min()) > 0.1
