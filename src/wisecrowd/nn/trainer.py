"""Training loop for networks.

The loop knows nothing of crowds. A model supplies a function from row numbers to their mean loss, so that it gathers
whatever belongs to a row (features, targets, the votes on a task) itself:

    trainer = Trainer(model, TrainingSettings(epochs=20))
    history = trainer.run(lambda rows: loss(model(X[rows]), y[rows]), n_rows=len(X))

The same seed gives the same bits on the same machine with the same number of threads, and the random state of the
caller stays unchanged. Processes that were started together (by ``torchrun`` or Ray Train) divide every batch; their
result equals that of one process up to the order of sums.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import pandas as pd

from wisecrowd.base.checkpoints import Arrays, Checkpoint, CheckpointState
from wisecrowd.errors import UsageError, check_choice, preview
from wisecrowd.nn.backend import import_torch, limit_threads
from wisecrowd.nn.distributed import compute_gradients, synchronize_layers
from wisecrowd.nn.modules import check_weights
from wisecrowd.nn.optimiser_steps import make_step
from wisecrowd.nn.process_group import current_process_group
from wisecrowd.nn.schedules import SCHEDULES, ScheduleName, compute_rectification
from wisecrowd.nn.seeding import check_random_state, fork_random_state, get_sum_dtype, select_device
from wisecrowd.utils import progress

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn
    from torch.optim import Optimizer

#: Function from row numbers to the mean loss of those rows.
RowLoss = Callable[["Tensor"], "Tensor"]

#: Message for processes that took the same steps and arrived at different weights.
DIFFERENT_WEIGHTS = (
    "weights or random states differ after an epoch. The network may draw random numbers outside of layers, as "
    "torch.nn.functional.dropout does; use layers such as torch.nn.Dropout, or train it in one process"
)

OptimiserName = Literal["adam", "adamw", "radam", "sgd", "lazyadam"]

# ---------------------------------------------------------------------- settings


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """Settings of a `Trainer`; a `ParameterGroup` may differ from some of them.

    Parameters
    ----------
    epochs : int, default 50
        Number of epochs over which the schedule runs. The rate stays constant in later epochs.
    batch_size : int, default 64
        Rows per step.
    optimiser : {"adam", "adamw", "radam", "sgd", "lazyadam"}, default "adam"
        "lazyadam" is Adam for large tables with sparse gradients: a step changes neither the values nor the moments
        of rows that the batch does not touch. Beside "radam" it warms up as that does.
    learning_rate : float, default 1e-3
        Step size.
    schedule : {"constant", "cosine", "onecycle", "step"}, default "constant"
        Schedule of the step size.
    weight_decay : float, default 0
        L2 penalty of the optimiser.
    momentum : float, default 0.9
        Momentum of "sgd".
    patience : int, default 0
        Number of epochs without a better validation score after which training stops; 0 never stops early.
    random_state : int, default 0
        Seed of the batches and of the layers.
    device : str, default "auto"
        "cpu", "cuda", …, or "auto" for a GPU if there is one.
    dtype : {"float32", "float64"}, default "float32"
        Floating point type of the model.
    n_threads : int or None, default None
        Number of torch threads; None leaves it unchanged.

    Examples
    --------
    >>> TrainingSettings(epochs=20, schedule="cosine").learning_rate
    0.001
    """

    epochs: int = 50
    batch_size: int = 64
    optimiser: OptimiserName = "adam"
    learning_rate: float = 1e-3
    schedule: ScheduleName = "constant"
    weight_decay: float = 0.0
    momentum: float = 0.9
    patience: int = 0
    random_state: int = 0
    device: str = "auto"
    dtype: Literal["float32", "float64"] = "float32"
    n_threads: int | None = None

    def __post_init__(self) -> None:
        _check_settings(self.optimiser, self.schedule, self.learning_rate, self.weight_decay)
        check_choice("dtype", self.dtype, ("float32", "float64"))
        if self.epochs < 0 or self.patience < 0 or self.batch_size < 1:
            raise UsageError(
                "epochs and patience must not be negative, and batch_size must be 1 or more; "
                f"got {self.epochs}, {self.patience} and {self.batch_size}"
            )

    def describe(self) -> dict[str, Any]:
        """Return the settings as JSON values.

        Returns
        -------
        dict
            Settings by name; values that JSON does not support are replaced by their ``repr``.
        """
        settings = {setting.name: getattr(self, setting.name) for setting in fields(self)}
        return {
            name: value if isinstance(value, str | int | float | None) else repr(value)
            for name, value in settings.items()
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class ParameterGroup:
    """Parameters with common settings; a setting of None is that of `TrainingSettings`.

    Attributes
    ----------
    parameters : iterable of torch.nn.Parameter
        Parameters of the group.
    optimiser : {"adam", "adamw", "radam", "sgd", "lazyadam"} or None, default None
        Optimiser.
    learning_rate : float or None, default None
        Step size.
    schedule : {"constant", "cosine", "onecycle", "step"} or None, default None
        Schedule of the step size.
    weight_decay : float or None, default None
        L2 penalty of the optimiser.

    Examples
    --------
    >>> ParameterGroup(parameters=[], weight_decay=0.0).learning_rate is None
    True
    """

    parameters: Iterable[Any]
    optimiser: OptimiserName | None = None
    learning_rate: float | None = None
    schedule: ScheduleName | None = None
    weight_decay: float | None = None


def split_by_decay(module: nn.Module, **settings: Any) -> list[ParameterGroup]:
    """Return the parameters of a module in two groups: weights, and biases and scales, which have no weight decay.

    Parameters
    ----------
    module : torch.nn.Module
        Module; its frozen parameters are left out.
    **settings
        Settings of both groups (see `ParameterGroup`).

    Returns
    -------
    list of ParameterGroup
        Groups that are not empty.

    Examples
    --------
    >>> torch = import_torch()
    >>> [len(group.parameters) for group in split_by_decay(torch.nn.Linear(3, 2), learning_rate=0.01)]
    [1, 1]
    """
    trainable = [parameter for parameter in module.parameters() if parameter.requires_grad]
    weights = [parameter for parameter in trainable if parameter.ndim > 1]
    others = [parameter for parameter in trainable if parameter.ndim <= 1]
    groups = [
        ParameterGroup(parameters=weights, **settings),
        ParameterGroup(parameters=others, **settings | {"weight_decay": 0.0}),
    ]
    return [group for group in groups if group.parameters]


def _check_settings(optimiser: object, schedule: object, learning_rate: float, weight_decay: float) -> None:
    """Raise if a setting of an optimiser is invalid."""
    check_choice("optimiser", optimiser, get_args(OptimiserName))
    check_choice("schedule", schedule, SCHEDULES)
    if not learning_rate > 0:
        raise UsageError(f"learning_rate must be above 0; got {learning_rate}")
    if not weight_decay >= 0:
        raise UsageError(f"weight_decay must be 0 or more; got {weight_decay}")


# ---------------------------------------------------------------------- the loop


@dataclass
class TrainingHistory:
    """Loss, validation score and duration of every epoch.

    Attributes
    ----------
    rows : list of tuple
        (mean loss, validation score, seconds) by epoch; the score is NaN without validation.

    Examples
    --------
    >>> history = TrainingHistory()
    >>> history.add(0.7, 0.5, 0.1)
    >>> history.add(0.6, 0.8, 0.1)
    >>> history.best_epoch, len(history)
    (1, 2)
    >>> list(history.to_frame().columns)
    ['loss', 'validation', 'seconds']
    """

    rows: list[tuple[float, float, float]] = field(default_factory=list)

    def add(self, loss: float, validation: float, seconds: float) -> None:
        """Append an epoch.

        Parameters
        ----------
        loss : float
            Mean loss.
        validation : float
            Validation score, or NaN.
        seconds : float
            Duration.
        """
        self.rows.append((loss, validation, seconds))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def best_epoch(self) -> int | None:
        """First epoch, counted from 0, with the highest validation score; None without validation."""
        validation = np.array([row[1] for row in self.rows])
        return None if np.isnan(validation).all() else int(np.nanargmax(validation))

    def to_frame(self) -> pd.DataFrame:
        """Return the history as a table indexed by epoch, counted from 1.

        Returns
        -------
        pandas.DataFrame
            Columns ``loss``, ``validation`` and ``seconds``.
        """
        index = pd.RangeIndex(1, len(self) + 1, name="epoch")
        return pd.DataFrame(self.rows, columns=["loss", "validation", "seconds"], index=index, dtype=np.float64)


class Trainer:
    """Minimiser of a loss of a model, epoch by epoch, that can stop and resume after any epoch.

    After `run`, the model holds the weights of the last epoch. ``best_weights`` holds those with the best validation
    score, and `load_best` loads them into the model.

    Parameters
    ----------
    model : torch.nn.Module
        Model to train.
    settings : TrainingSettings
        Settings.
    groups : sequence of ParameterGroup, optional
        Groups that cover all parameters of the model; by default those of `split_by_decay`.
    checkpoint : path-like, optional
        Checkpoint file. An interrupted fit resumes when the same trainer is created and run again.
    owner : dict, optional
        Description of the fit beyond its settings, such as a `compute_fingerprint` of the data. A checkpoint with
        another owner is refused.
    title : str, default "training"
        Title of the progress bar.

    Examples
    --------
    >>> torch = import_torch()
    >>> with fork_random_state(torch.device("cpu"), 0):
    ...     model = torch.nn.Linear(1, 1)
    >>> x = torch.linspace(-1, 1, 32)[:, None]
    >>> trainer = Trainer(model, TrainingSettings(epochs=60, learning_rate=0.05, batch_size=8))
    >>> history = trainer.run(lambda rows: ((model(x[rows]) - 2 * x[rows]) ** 2).mean(), n_rows=32)
    >>> len(history), bool(history.to_frame()["loss"].iloc[-1] < 1e-3)
    (60, True)
    """

    def __init__(
        self,
        model: nn.Module,
        settings: TrainingSettings,
        *,
        groups: Sequence[ParameterGroup] | None = None,
        checkpoint: str | Path | None = None,
        owner: dict[str, Any] | None = None,
        title: str = "training",
    ) -> None:
        torch = import_torch()
        self.settings, self.title = settings, title
        self.device = select_device(settings.device)
        self.model = model.to(self.device, getattr(torch, settings.dtype))
        self.groups = list(groups) if groups is not None else split_by_decay(model)
        self.optimisers = [self._make_optimiser(group) for group in self.groups]
        self._check_groups()
        self.history = TrainingHistory()
        self.best_weights: dict[str, Tensor] | None = None
        self._order: Generator = torch.Generator().manual_seed(settings.random_state)
        with fork_random_state(self.device, settings.random_state) as get_state:
            self._random_state = get_state()
        process_group = current_process_group()
        description = settings.describe() | {"parameters": self._describe_shapes()} | (owner or {})
        self.checkpoint = Checkpoint(checkpoint, description, writes=process_group.is_first)
        if checkpoint is not None:
            process_group.wait()  # the process that writes may not have finished
            state = self.checkpoint.read()
            if state is not None:
                with self.checkpoint.refuse_damage():
                    self.restore(state.arrays)

    def _make_optimiser(self, group: ParameterGroup) -> Optimizer:
        """Return the optimiser of a parameter group."""
        optim, common = import_torch().optim, self.settings
        name = group.optimiser or common.optimiser
        rate = common.learning_rate if group.learning_rate is None else group.learning_rate
        decay = common.weight_decay if group.weight_decay is None else group.weight_decay
        _check_settings(name, group.schedule or common.schedule, rate, decay)
        kinds = {"adam": optim.Adam, "adamw": optim.AdamW, "radam": optim.RAdam, "sgd": optim.SGD,
                 "lazyadam": optim.SparseAdam}  # fmt: skip
        options = {"weight_decay": decay} | ({"momentum": common.momentum} if name == "sgd" else {})
        if name == "lazyadam":
            if decay:
                raise UsageError(
                    f"lazyadam does not support weight decay, since it skips untouched rows; got weight_decay={decay}"
                )
            options = {}
        optimiser: Optimizer = kinds[name](list(group.parameters), lr=rate, **options)
        optimiser.param_groups[0]["initial_lr"] = rate
        return optimiser

    def _check_groups(self) -> None:
        """Raise unless every trainable parameter is in exactly one group."""
        grouped = [id(parameter) for optimiser in self.optimisers for parameter in optimiser.param_groups[0]["params"]]
        missing = [
            name
            for name, parameter in self.model.named_parameters()
            if parameter.requires_grad and id(parameter) not in grouped
        ]
        if missing or len(set(grouped)) < len(grouped):
            raise UsageError(
                "every parameter must be in exactly one group; "
                + (f"{', '.join(missing[:3])} is in none" if missing else "one is in two of them")
            )

    def _describe_shapes(self) -> str:
        """Return the shapes of all weights as text."""
        return str({name: tuple(weight.shape) for name, weight in self.model.state_dict().items()})

    # ------------------------------------------------------------------ running

    @property
    def is_stopped(self) -> bool:
        """True after ``patience`` epochs without a better validation score."""
        best, patience = self.history.best_epoch, self.settings.patience
        return patience > 0 and best is not None and len(self.history) - 1 - best >= patience

    def run(
        self,
        loss: RowLoss,
        n_rows: int,
        *,
        epochs: int | None = None,
        validate: Callable[[], float] | None = None,
        row_weights: Callable[[Tensor], Tensor] | None = None,
        separable: bool = True,
    ) -> TrainingHistory:
        """Train for a number of epochs, in batches in random order.

        Parameters
        ----------
        loss : callable
            Function from row numbers to their mean loss.
        n_rows : int
            Number of rows.
        epochs : int, optional
            Number of further epochs; by default all that remain of ``settings.epochs``.
        validate : callable, optional
            Function that returns a score after every epoch, higher for a better model. The model is in evaluation mode.
        row_weights : callable, optional
            Function from row numbers to their weights in the mean loss. Several processes need it to divide a batch.
        separable : bool, default True
            Whether the loss is the weighted mean over rows. If rows depend on each other, several processes divide
            only the network.

        Returns
        -------
        TrainingHistory
        """
        if n_rows < 1:
            raise UsageError("training needs at least one row")
        n_completed = len(self.history)
        last_epoch = max(self.settings.epochs, n_completed) if epochs is None else n_completed + epochs
        group, (dense, sparse) = current_process_group(), self._split_by_gradient()

        def step(rows: Tensor) -> Tensor:
            return compute_gradients(group, loss, rows, row_weights, dense, sparse, separable=separable)

        group.check_equal(
            "weights, settings or checkpoints differ",
            self.model.state_dict(), self.settings, n_rows, n_completed, last_epoch,
        )  # fmt: skip
        with (
            limit_threads(self.settings.n_threads),
            fork_random_state(self.device, self._random_state) as get_state,
            synchronize_layers(self.model, group),
        ):
            while len(self.history) < last_epoch and not self.is_stopped:
                start = time.perf_counter()
                mean_loss = self._run_epoch(step, n_rows)
                validation = float(group.broadcast(np.array(self._score(validate)), self.device))
                self.history.add(mean_loss, validation, time.perf_counter() - start)
                if self.history.best_epoch == len(self.history) - 1:
                    self.best_weights = {
                        name: weight.detach().clone() for name, weight in self.model.state_dict().items()
                    }
                self._random_state = get_state()
                group.check_equal(DIFFERENT_WEIGHTS, self.model.state_dict(), self._random_state)
                is_final = len(self.history) == last_epoch or self.is_stopped
                self.checkpoint.write_if_due(lambda: CheckpointState(self.arrays()), final=is_final)
                progress.report(self.title, len(self.history), last_epoch, f"loss {mean_loss:.4f}")
        self.model.eval()
        return self.history

    def _split_by_gradient(self) -> tuple[list[Tensor], list[Tensor]]:
        """Return the parameters with dense gradients and those with sparse ones."""
        lazy_adam = import_torch().optim.SparseAdam
        kinds: tuple[list[Tensor], list[Tensor]] = ([], [])
        for optimiser in self.optimisers:
            kinds[isinstance(optimiser, lazy_adam)].extend(optimiser.param_groups[0]["params"])
        return kinds

    def _run_epoch(self, step: RowLoss, n_rows: int) -> float:
        """Take one step per batch and return the mean loss."""
        torch = import_torch()
        self.model.train()
        order = torch.randperm(n_rows, generator=self._order).to(self.device)
        batches = list(order.split(self.settings.batch_size))
        if len(batches) > 1 and len(batches[-1]) == 1:  # batch norms cannot train on a single row
            batches[-2:] = [torch.cat(batches[-2:])]
        total = torch.zeros((), dtype=get_sum_dtype(self.device), device=self.device)
        optimiser_steps = [make_step(optimiser) for optimiser in self.optimisers]
        parameters = [parameter for optimiser in self.optimisers for parameter in optimiser.param_groups[0]["params"]]
        for number, rows in enumerate(batches):
            passes = len(self.history) + number / len(batches)
            self._set_learning_rates(passes / max(self.settings.epochs, 1), step=round(passes * len(batches)) + 1)
            for parameter in parameters:
                parameter.grad = None
            value = step(rows)
            for take_step in optimiser_steps:
                take_step()
            total += value.to(total) * len(rows)
        mean_loss = float(total) / n_rows
        if not math.isfinite(mean_loss):
            raise UsageError(
                f"the loss is {mean_loss} after {len(self.history) + 1} epochs of {self.title}; lower learning_rate, and check "
                "for features of very different scale"
            )
        return mean_loss

    def _set_learning_rates(self, completed: float, step: int) -> None:
        """Set the learning rates for a completed share of training."""
        for optimiser, group in zip(self.optimisers, self.groups, strict=True):
            schedule = SCHEDULES[group.schedule or self.settings.schedule]
            factor = schedule(min(completed, 1.0))
            if group.optimiser == "lazyadam" and self.settings.optimiser == "radam":
                factor *= compute_rectification(step)  # so that tables do not run ahead of a network that warms up
            for options in optimiser.param_groups:
                options["lr"] = options["initial_lr"] * factor

    def _score(self, validate: Callable[[], float] | None) -> float:
        """Return the validation score, NaN without validation."""
        if validate is None:
            return math.nan
        self.model.eval()
        with import_torch().no_grad():
            return float(validate())

    def load_best(self) -> None:
        """Load the weights with the best validation score; without validation, the model stays unchanged."""
        if self.best_weights is not None:
            self.model.load_state_dict(self.best_weights)

    # ------------------------------------------------------------------ state

    def arrays(self) -> Arrays:
        """Return everything that the next epoch depends on: weights, moments of the optimisers, random states, history.

        Returns
        -------
        dict of ndarray
        """
        state: Arrays = {"history": np.array(self.history.rows, dtype=np.float64).reshape(-1, 3)}
        state["order"] = self._order.get_state().numpy()
        state |= {f"random.{name}": array for name, array in self._random_state.items()}
        state |= {f"model.{name}": _to_array(weight) for name, weight in self.model.state_dict().items()}
        if self.best_weights is not None:
            state |= {f"best.{name}": _to_array(weight) for name, weight in self.best_weights.items()}
        for number, optimiser in enumerate(self.optimisers):
            for position, moments in optimiser.state_dict()["state"].items():
                for name, moment in moments.items():
                    if moment is not None:  # the momentum of sgd before its first step
                        state[f"moment.{number}.{position}.{name}"] = _to_array(moment)
        return state

    def restore(self, arrays: Arrays) -> None:
        """Restore a state, from which training continues to the same bits.

        Parameters
        ----------
        arrays : dict of ndarray
            Result of `arrays`.

        Raises
        ------
        ValueError
            If the arrays are not the state of this training.
        """
        torch = import_torch()
        weights, best = select_prefix(arrays, "model"), select_prefix(arrays, "best")
        for state in (weights, *([best] if best else [])):
            check_weights(self.model, state)
        self.history = TrainingHistory([(float(a), float(b), float(c)) for a, b, c in arrays["history"]])
        self._random_state = select_prefix(arrays, "random")
        for stream in (arrays["order"], *self._random_state.values()):
            check_random_state(stream)
        if set(self._random_state) != ({"cpu"} if self.device.type == "cpu" else {"cpu", "gpu"}):
            raise ValueError("the random state is that of another device")
        self._order.set_state(torch.from_numpy(arrays["order"].copy()))
        self.model.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in weights.items()})
        self.best_weights = {
            name: torch.from_numpy(array.copy()).to(self.device) for name, array in best.items()
        } or None
        for number, optimiser in enumerate(self.optimisers):
            self._restore_moments(optimiser, select_prefix(arrays, f"moment.{number}"))

    def _restore_moments(self, optimiser: Optimizer, moments: Arrays) -> None:
        """Restore the moments of an optimiser, after a check that they are those of its parameters."""
        torch = import_torch()
        parameters = [parameter for group in optimiser.param_groups for parameter in group["params"]]
        state: dict[int, dict[str, Tensor | int]] = {}
        for name, moment in moments.items():
            position, _, kind = name.partition(".")
            if not position.isdecimal() or int(position) >= len(parameters):
                raise ValueError(f"no parameter has the moment {name[:40]!r}")
            shape = tuple(parameters[int(position)].shape)
            if moment.shape != (() if kind == "step" else shape):
                raise ValueError(f"the moment {name[:40]!r} must have the shape {shape}; got {moment.shape}")
            if moment.dtype.kind not in "fi":
                raise ValueError(f"the moment {name[:40]!r} must contain numbers; got the type {moment.dtype}")
            if not np.isfinite(moment).all():
                raise ValueError(f"the moment {name[:40]!r} contains NaN or infinite numbers")
            is_count = moment.dtype.kind == "i"  # the step of lazyadam is a Python number
            value = int(moment) if is_count else torch.from_numpy(moment.copy())
            state.setdefault(int(position), {})[kind] = value
        kinds = {"momentum_buffer"} if isinstance(optimiser, torch.optim.SGD) else {"step", "exp_avg", "exp_avg_sq"}
        if any(set(parameter_moments) != kinds for parameter_moments in state.values()):
            raise ValueError(f"every parameter has the moments {preview(sorted(kinds))}, or none")
        optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})


def select_prefix(arrays: Arrays, prefix: str) -> Arrays:
    """Return the arrays whose names start with a prefix and a dot, by the rest of their names.

    Parameters
    ----------
    arrays : dict of ndarray
        Arrays by name.
    prefix : str
        Prefix without the dot.

    Returns
    -------
    dict of ndarray

    Examples
    --------
    >>> select_prefix({"model.weight": np.zeros(1), "order": np.zeros(1)}, "model")
    {'weight': array([0.])}
    """
    return {key.removeprefix(f"{prefix}."): array for key, array in arrays.items() if key.startswith(f"{prefix}.")}


def _to_array(tensor: Any) -> Any:
    """Return a tensor or a number as an array that shares no memory with it."""
    return np.array(tensor.detach().cpu().numpy()) if hasattr(tensor, "detach") else np.asarray(tensor)
