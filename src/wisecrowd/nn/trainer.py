"""The training loop, once. It knows nothing of crowds: a model says what its loss on some rows is, and this lowers it.

    trainer = Trainer(model, Training(epochs=20))
    history = trainer.run(lambda rows: loss(model(X[rows]), y[rows]), n_rows=len(X))

The loss is a function of row numbers, so that a model gathers whatever belongs to a row (features, targets, the votes of
a task) itself. Same seed, same bits, as long as torch computes with the same number of threads on the same machine; the
random state of whoever calls is left as it was. Processes that were started together (by ``torchrun``, by Ray Train)
divide every batch, and come to what one would, up to the order of sums.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import pandas as pd

from wisecrowd.errors import UsageError, one_of
from wisecrowd.nn.backend import need_torch, threads
from wisecrowd.nn.checkpoint import Arrays, Checkpoint, plain
from wisecrowd.nn.distributed import gradients, sharing
from wisecrowd.nn.process_group import my_team
from wisecrowd.nn.schedules import SCHEDULES as SCHEDULES
from wisecrowd.nn.schedules import ScheduleName as ScheduleName
from wisecrowd.nn.schedules import rectified
from wisecrowd.nn.seeding import chosen_device, own_chance
from wisecrowd.utils import progress

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn
    from torch.optim import Optimizer

#: Row numbers -> the mean loss of those rows.
Loss = Callable[["Tensor"], "Tensor"]

#: What is said of processes that took the same steps and are not where the others are.
DRIFTED = (
    "after an epoch their weights or random streams differ. Does the network draw by itself, as torch.nn.functional.dropout "
    "does? Use layers such as torch.nn.Dropout, or train it in one process"
)

OptimiserName = Literal["adam", "adamw", "radam", "sgd", "lazyadam"]

# ---------------------------------------------------------------------- settings


@dataclass(frozen=True, kw_only=True)
class Training:
    """How to train; every parameter group may differ in what `Group` names.

    >>> Training(epochs=20, schedule="cosine").learning_rate
    0.001
    """

    epochs: int = 50
    """Length of the plan, over which the schedule runs; past it, the rate stays where the schedule ended."""
    batch_size: int = 64
    optimiser: OptimiserName = "adam"
    """ "lazyadam" is Adam for large tables with sparse gradients: rows that a batch does not touch rest, moments and all;
    beside a "radam" it warms up as that does."""
    learning_rate: float = 1e-3
    schedule: ScheduleName = "constant"
    weight_decay: float = 0.0
    momentum: float = 0.9
    """Of "sgd"."""
    patience: int = 0
    """Epochs without a better validation after which to stop; 0 goes on to the end."""
    random_state: int = 0
    device: str = "auto"
    """ "cpu", "cuda", ..., or the fastest there is."""
    dtype: Literal["float32", "float64"] = "float32"
    threads: int | None = None
    """Of torch while it trains; over small tensors, several would only wait for each other. None leaves them."""

    def __post_init__(self) -> None:
        _check(self.optimiser, self.schedule, self.learning_rate, self.weight_decay)
        one_of("dtype", self.dtype, ("float32", "float64"))
        if self.epochs < 0 or self.patience < 0 or self.batch_size < 1:
            raise UsageError(
                "epochs and patience must not be negative, and batch_size must be 1 or more; "
                f"got {self.epochs}, {self.patience} and {self.batch_size}"
            )


@dataclass(frozen=True, kw_only=True, eq=False)
class Group:
    """Parameters that are trained alike; what is None is as in `Training`.

    >>> Group(parameters=[], weight_decay=0.0).learning_rate is None
    True
    """

    parameters: Iterable[Any]
    optimiser: OptimiserName | None = None
    learning_rate: float | None = None
    schedule: ScheduleName | None = None
    weight_decay: float | None = None


def weights_and_biases(module: nn.Module, **settings: Any) -> list[Group]:
    """Two groups: weights, and biases and scales of norms, which no decay draws toward zero.

    >>> torch = need_torch()
    >>> [len(group.parameters) for group in weights_and_biases(torch.nn.Linear(3, 2), learning_rate=0.01)]
    [1, 1]
    """
    trained = [parameter for parameter in module.parameters() if parameter.requires_grad]
    weights = [parameter for parameter in trained if parameter.ndim > 1]
    others = [parameter for parameter in trained if parameter.ndim <= 1]
    groups = [Group(parameters=weights, **settings), Group(parameters=others, **settings | {"weight_decay": 0.0})]
    return [group for group in groups if group.parameters]


def _check(optimiser: object, schedule: object, learning_rate: float, weight_decay: float) -> None:
    one_of("optimiser", optimiser, get_args(OptimiserName))
    one_of("schedule", schedule, SCHEDULES)
    if not learning_rate > 0 or not weight_decay >= 0:
        raise UsageError(
            f"learning_rate must be positive and weight_decay not negative; got {learning_rate} and {weight_decay}"
        )


# ---------------------------------------------------------------------- the loop


@dataclass
class History:
    """What every epoch came to.

    >>> history = History()
    >>> history.add(0.7, 0.5, 0.1)
    >>> history.add(0.6, 0.8, 0.1)
    >>> history.best, len(history)
    (1, 2)
    >>> list(history.table().columns)
    ['loss', 'validation', 'seconds']
    """

    rows: list[tuple[float, float, float]] = field(default_factory=list)
    """(mean loss, validation, seconds) by epoch; validation is NaN where there was none."""

    def add(self, loss: float, validation: float, seconds: float) -> None:
        """One more epoch."""
        self.rows.append((loss, validation, seconds))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def best(self) -> int | None:
        """The first epoch (from 0) with the highest validation, if there was any."""
        validation = np.array([row[1] for row in self.rows])
        return None if np.isnan(validation).all() else int(np.nanargmax(validation))

    def table(self) -> pd.DataFrame:
        """By epoch, from 1."""
        index = pd.RangeIndex(1, len(self) + 1, name="epoch")
        return pd.DataFrame(self.rows, columns=["loss", "validation", "seconds"], index=index, dtype=np.float64)


class Trainer:
    """Lowers a loss of a model, epoch by epoch, and can stop and go on at any of them.

    After `run`, the model holds the weights of the last epoch; those of the best validation are in ``best`` (a state
    dict), and `keep_best` takes them. With a ``checkpoint`` file, a process that is killed goes on where it was: make
    the same trainer again and run it again. ``belongs`` says what the file is of beyond the settings, so that nobody
    goes on with other data by accident (see `fingerprint`).

    >>> torch = need_torch()
    >>> with own_chance(torch.device("cpu"), 0):
    ...     model = torch.nn.Linear(1, 1)
    >>> x = torch.linspace(-1, 1, 32)[:, None]
    >>> trainer = Trainer(model, Training(epochs=60, learning_rate=0.05, batch_size=8))
    >>> history = trainer.run(lambda rows: ((model(x[rows]) - 2 * x[rows]) ** 2).mean(), n_rows=32)
    >>> len(history), bool(history.table()["loss"].iloc[-1] < 1e-3)
    (60, True)
    """

    def __init__(
        self,
        model: nn.Module,
        settings: Training,
        *,
        groups: Sequence[Group] | None = None,
        checkpoint: str | Path | None = None,
        belongs: dict[str, Any] | None = None,
        what: str = "training",
    ) -> None:
        torch = need_torch()
        self.settings, self.what = settings, what
        self.device = chosen_device(settings.device)
        self.model = model.to(self.device, getattr(torch, settings.dtype))
        self.groups = list(groups) if groups is not None else weights_and_biases(model)
        self.optimisers = [self._optimiser(group) for group in self.groups]
        self._check_groups()
        self.history = History()
        self.best: dict[str, Tensor] | None = None
        self._order: Generator = torch.Generator().manual_seed(settings.random_state)
        with own_chance(self.device, settings.random_state) as where:
            self._chance = where()
        self.checkpoint: Checkpoint | None = None
        if checkpoint is not None:
            owner = plain(settings) | {"parameters": self._shapes()} | (belongs or {})
            self.checkpoint = Checkpoint(checkpoint, owner)
            kept = self.checkpoint.read()
            if kept is not None:
                self.restore(kept)

    def _optimiser(self, group: Group) -> Optimizer:
        optim, common = need_torch().optim, self.settings
        name = group.optimiser or common.optimiser
        rate = common.learning_rate if group.learning_rate is None else group.learning_rate
        decay = common.weight_decay if group.weight_decay is None else group.weight_decay
        _check(name, group.schedule or common.schedule, rate, decay)
        kinds = {"adam": optim.Adam, "adamw": optim.AdamW, "radam": optim.RAdam, "sgd": optim.SGD,
                 "lazyadam": optim.SparseAdam}  # fmt: skip
        further = {"weight_decay": decay} | ({"momentum": common.momentum} if name == "sgd" else {})
        if name == "lazyadam":
            if decay:
                raise UsageError(f"lazyadam has no weight decay: rows that rest would not decay; got {decay}")
            further = {}
        made: Optimizer = kinds[name](list(group.parameters), lr=rate, **further)
        made.param_groups[0]["initial_lr"] = rate
        return made

    def _check_groups(self) -> None:
        held = [id(each) for made in self.optimisers for each in made.param_groups[0]["params"]]
        missing = [name for name, each in self.model.named_parameters() if each.requires_grad and id(each) not in held]
        if missing or len(set(held)) < len(held):
            raise UsageError(
                "every parameter belongs to one group; "
                + (f"{', '.join(missing[:3])} is in none" if missing else "one is in two of them")
            )

    def _shapes(self) -> str:
        return str({name: tuple(each.shape) for name, each in self.model.state_dict().items()})

    # ------------------------------------------------------------------ running

    @property
    def stopped(self) -> bool:
        """Whether validation has not improved for as long as patience lasts."""
        best, patience = self.history.best, self.settings.patience
        return patience > 0 and best is not None and len(self.history) - 1 - best >= patience

    def run(
        self,
        loss: Loss,
        n_rows: int,
        *,
        epochs: int | None = None,
        validate: Callable[[], float] | None = None,
        weigh: Callable[[Tensor], Tensor] | None = None,
        separable: bool = True,
    ) -> History:
        """Go through all rows ``epochs`` times more (to the end of the plan unless told), in batches in random order.

        ``loss`` is given row numbers and gives their mean loss. ``validate`` is called after every epoch with the
        model in eval mode, and gives a number that is higher when the model is better, say how often votes of
        held-out tasks are predicted.

        The rest is for processes that train together. ``weigh`` gives the weight of each row in the mean, if they differ.
        A loss in which rows depend on each other is not ``separable``: all compute it, and divide the network alone
        (see `_divided`).
        """
        if n_rows < 1:
            raise UsageError("training needs at least one row")
        done = len(self.history)
        until = max(self.settings.epochs, done) if epochs is None else done + epochs
        team, (dense, sparse) = my_team(), self._dense_and_sparse()

        def learn(rows: Tensor) -> Tensor:
            return gradients(team, loss, rows, weigh, dense, sparse, separable=separable)

        team.same(
            "weights, settings or checkpoints differ", self.model.state_dict(), self.settings, n_rows, done, until
        )
        with threads(self.settings.threads), own_chance(self.device, self._chance) as where, sharing(self.model, team):
            while len(self.history) < until and not self.stopped:
                begun = time.perf_counter()
                mean = self._epoch(learn, n_rows)
                validation = float(team.word(np.array(self._validation(validate)), self.device))
                self.history.add(mean, validation, time.perf_counter() - begun)
                if self.history.best == len(self.history) - 1:
                    self.best = {name: each.detach().clone() for name, each in self.model.state_dict().items()}
                self._chance = where()
                team.same(DRIFTED, self.model.state_dict(), self._chance)
                if self.checkpoint is not None:
                    self.checkpoint.offer(self.arrays, last=len(self.history) == until or self.stopped)
                progress.report(self.what, len(self.history), until, f"loss {mean:.4f}")
        self.model.eval()
        return self.history

    def _dense_and_sparse(self) -> tuple[list[Tensor], list[Tensor]]:
        """Parameters by what kind of gradient they get."""
        lazy = need_torch().optim.SparseAdam
        kinds: tuple[list[Tensor], list[Tensor]] = ([], [])
        for optimiser in self.optimisers:
            kinds[isinstance(optimiser, lazy)].extend(optimiser.param_groups[0]["params"])
        return kinds

    def _epoch(self, learn: Loss, n_rows: int) -> float:
        torch = need_torch()
        self.model.train()
        order = torch.randperm(n_rows, generator=self._order).to(self.device)
        batches = list(order.split(self.settings.batch_size))
        if len(batches) > 1 and len(batches[-1]) == 1:  # batch norms cannot train on a row that is alone
            batches[-2:] = [torch.cat(batches[-2:])]
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        for number, rows in enumerate(batches):
            passes = len(self.history) + number / len(batches)
            self._set_rates(passes / max(self.settings.epochs, 1), step=round(passes * len(batches)) + 1)
            for optimiser in self.optimisers:
                optimiser.zero_grad(set_to_none=True)
            value = learn(rows)
            for optimiser in self.optimisers:
                optimiser.step()
            total += value.to(total) * len(rows)
        mean = float(total) / n_rows
        if not math.isfinite(mean):
            raise UsageError(
                f"the loss is {mean} after {len(self.history) + 1} epochs of {self.what}; lower learning_rate, and look "
                "for features of very different size"
            )
        return mean

    def _set_rates(self, done: float, step: int) -> None:
        for optimiser, group in zip(self.optimisers, self.groups, strict=True):
            schedule = SCHEDULES[group.schedule or self.settings.schedule]
            factor = schedule(min(done, 1.0))
            if group.optimiser == "lazyadam" and self.settings.optimiser == "radam":
                factor *= rectified(step)  # so that tables do not run ahead of a network that warms up
            for part in optimiser.param_groups:
                part["lr"] = part["initial_lr"] * factor

    def _validation(self, validate: Callable[[], float] | None) -> float:
        if validate is None:
            return math.nan
        self.model.eval()
        with need_torch().no_grad():
            return float(validate())

    def keep_best(self) -> None:
        """Give the model the weights of the epoch with the best validation; without validation, leave it as it is."""
        if self.best is not None:
            self.model.load_state_dict(self.best)

    # ------------------------------------------------------------------ stopping and going on

    def arrays(self) -> Arrays:
        """All that the next epoch depends on: weights, moments of the optimisers, random streams, history."""
        found: Arrays = {"history": np.array(self.history.rows, dtype=np.float64).reshape(-1, 3)}
        found["order"] = self._order.get_state().numpy()
        found |= {f"chance.{name}": state for name, state in self._chance.items()}
        found |= {f"model.{name}": _array(each) for name, each in self.model.state_dict().items()}
        if self.best is not None:
            found |= {f"best.{name}": _array(each) for name, each in self.best.items()}
        for number, optimiser in enumerate(self.optimisers):
            for place, moments in optimiser.state_dict()["state"].items():
                for name, moment in moments.items():
                    if moment is not None:  # the momentum of sgd before its first step
                        found[f"moment.{number}.{place}.{name}"] = _array(moment)
        return found

    def restore(self, arrays: Arrays) -> None:
        """Take back what `arrays` gave, and go on to the same bits."""
        torch = need_torch()
        self.history = History([(float(a), float(b), float(c)) for a, b, c in arrays["history"]])
        self._order.set_state(torch.from_numpy(arrays["order"].copy()))
        self._chance = part_of(arrays, "chance")
        tensors = {name: torch.from_numpy(each.copy()) for name, each in part_of(arrays, "model").items()}
        self.model.load_state_dict(tensors)
        best = part_of(arrays, "best")
        self.best = {name: torch.from_numpy(each.copy()).to(self.device) for name, each in best.items()} or None
        for number, optimiser in enumerate(self.optimisers):
            state: dict[int, dict[str, Tensor | int]] = {}
            for name, moment in part_of(arrays, f"moment.{number}").items():
                place, _, kind = name.partition(".")
                whole = moment.dtype.kind == "i"  # the step of lazyadam, which it counts in Python's numbers
                state.setdefault(int(place), {})[kind] = int(moment) if whole else torch.from_numpy(moment.copy())
            optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})


def part_of(arrays: Arrays, name: str) -> Arrays:
    """The arrays whose names start with ``name`` and a dot, by the rest of their names.

    >>> part_of({"model.weight": np.zeros(1), "order": np.zeros(1)}, "model")
    {'weight': array([0.])}
    """
    return {key.removeprefix(f"{name}."): array for key, array in arrays.items() if key.startswith(f"{name}.")}


def _array(tensor: Any) -> Any:
    return np.array(tensor.detach().cpu().numpy()) if hasattr(tensor, "detach") else np.asarray(tensor)
