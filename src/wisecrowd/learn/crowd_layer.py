"""CrowdLayer: a worker-specific layer after the output of a network (Rodrigues and Pereira)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from wisecrowd.base.fields import method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.errors import UsageError, check_choice
from wisecrowd.nn.backend import import_torch
from wisecrowd.nn.crowd_network import CrowdNetwork, ModelSizes
from wisecrowd.nn.deep_learner import DeepLearner
from wisecrowd.nn.trainer import ParameterGroup
from wisecrowd.nn.vote_tensors import Batch, WorkerTable

if TYPE_CHECKING:
    from torch import Tensor

#: Texts of the parameters that `CCC` shares.
WORKER_STEPS_HELP = (
    "Steps of the worker layers: 'own' (Adam for the workers of the batch) or 'network' (the optimiser of the network)."
)
WORKER_L2_HELP = "Ridge penalty on the worker layers, as l2; for worker_steps='network' only."
#: Number of classes up to which products are summed elementwise, which is faster than a batch of matrix products.
MAX_PRODUCT_CLASSES = 32


@method_class
class CrowdLayer(DeepLearner):
    """Network with a layer for every worker that turns class probabilities into label probabilities.

        s_r = T_rᵀ f(x),  P(r gives l | x) = softmax(s_r)_l                       variant "matrix" (MW)
        s_r = w_r ⊙ f(x)  and  s_r = w_r ⊙ f(x) + b_r                             "scale" (VW), "affine" (VW+B)

    T_r starts as the identity. It is not a confusion matrix: f is a distribution before the layer, and a second
    softmax follows, so that with T = I no label would be more probable than e / (e + K − 1). ``confusion_`` is
    estimated from the class probabilities and the votes; ``layer_`` holds T (or w and b). In a long training, layers
    and network together fit the noise, and accuracy falls.

    The mean loss is over votes, and a step changes the layers of workers who voted in its batch. The program of
    Rodrigues and Pereira averages over all tasks x workers with zeros for missing votes, so that its steps shrink
    with the number of workers. The version of crowd-kit passes logits instead of probabilities to the layer.

    The worker layers have an Adam optimiser of their own. With ``worker_steps="network"``, all of them take the steps
    of the network, and ``worker_l2`` shrinks them as ``l2`` shrinks its weights.

    Examples
    --------
    >>> from wisecrowd import CrowdLayer, simulate_crowd
    >>> import numpy as np, pandas as pd
    >>> simulation = simulate_crowd(n_tasks=200, n_workers=10, n_classes=2, votes_per_task=3)
    >>> rng = np.random.default_rng(0)
    >>> x = 3.0 * (simulation.truth == simulation.crowd.classes[1]) + rng.normal(size=200)
    >>> X = pd.DataFrame({"x": x}, index=simulation.truth.index)
    >>> model = CrowdLayer(epochs=20).fit(X, simulation.crowd)
    >>> bool(model.score(X, simulation.truth) > 0.9), model.layer_["T"].shape
    (True, (10, 2, 2))
    """

    references: ClassVar[tuple[str, ...]] = ("rodrigues2018deep",)
    separable: ClassVar[bool] = True

    variant: Literal["matrix", "scale", "affine"] = parameter(
        default="matrix", help="Form of the worker layers: 'matrix' (MW), 'scale' (VW) or 'affine' (VW+B)."
    )
    worker_steps: Literal["own", "network"] = parameter(default="own", help=WORKER_STEPS_HELP)
    worker_l2: float = parameter(default=0.0, help=WORKER_L2_HELP)

    def _check_parameters(self, crowd: Crowd) -> None:
        super()._check_parameters(crowd)
        check_choice("variant", self.variant, ("matrix", "scale", "affine"))
        check_worker_steps(self.worker_steps, self.worker_l2)

    def _make_worker_parameters(self, sizes: ModelSizes) -> dict[str, Any]:
        torch, n_workers, n_classes = import_torch(), sizes.n_workers, sizes.n_classes
        sparse = self.worker_steps == "own"
        if self.variant == "matrix":
            return make_layer_matrices(sizes, sparse=sparse)
        scale = {"w": WorkerTable(torch.ones(n_workers, n_classes), sparse)}
        if self.variant == "scale":
            return scale
        return scale | {"b": WorkerTable(torch.zeros(n_workers, n_classes), sparse)}

    def _make_parameter_groups(self, network: CrowdNetwork, n_tasks: int) -> list[ParameterGroup]:
        return network.make_parameter_groups(self.worker_learning_rate, self.l2 / n_tasks, self.worker_l2 / n_tasks)

    def _label_log_probs(self, batch: Batch) -> Tensor:
        if self.variant == "matrix":
            return compute_layer_log_probs(batch)
        scores = batch.worker_rows("w") * batch.class_probs.index_select(0, batch.task)
        if self.variant == "affine":
            scores = scores + batch.worker_rows("b")
        log_probs: Tensor = import_torch().log_softmax(scores, dim=1)
        return log_probs

    @property
    def layer_(self) -> dict[str, Any]:
        """Worker layers: "T" (n_workers, n_classes, n_classes), or "w" and "b" (n_workers, n_classes)."""
        self._check_fitted("posterior_")
        network = self.network_
        return {name: network.worker_table(name).detach().cpu().numpy() for name in network.table_shapes}


def check_worker_steps(worker_steps: str, worker_l2: float) -> None:
    """Raise if the settings of the worker layers are invalid.

    Parameters
    ----------
    worker_steps : str
        Steps of the worker layers.
    worker_l2 : float
        Ridge penalty on the worker layers.

    Raises
    ------
    UsageError
        If they are unknown, negative or incompatible.

    Examples
    --------
    >>> check_worker_steps("own", 0.1)
    Traceback (most recent call last):
        ...
    wisecrowd.errors.UsageError: worker_l2 must not be negative, and needs worker_steps='network', since 'own' steps ...
    """
    check_choice("worker_steps", worker_steps, ("own", "network"))
    if not worker_l2 >= 0 or (worker_l2 and worker_steps == "own"):
        raise UsageError(
            "worker_l2 must not be negative, and needs worker_steps='network', since 'own' steps skip the layers of workers "
            f"without a vote in the batch; got {worker_l2} and {worker_steps!r}"
        )


def make_layer_matrices(sizes: ModelSizes, *, sparse: bool) -> dict[str, Any]:
    """Return a table "T" with an identity matrix for every worker.

    Parameters
    ----------
    sizes : ModelSizes
        Numbers of workers and classes.
    sparse : bool
        Whether a step changes only the matrices of workers who voted in its batch.

    Returns
    -------
    dict

    Examples
    --------
    >>> make_layer_matrices(ModelSizes(n_workers=1, n_classes=2, n_hidden=3), sparse=True)["T"].initial.tolist()
    [[[1.0, 0.0], [0.0, 1.0]]]
    """
    return {"T": WorkerTable(import_torch().eye(sizes.n_classes).repeat(sizes.n_workers, 1, 1), sparse)}


def compute_layer_scores(batch: Batch, matrices: Tensor) -> Tensor:
    """Return T_rᵀ f(x) of every vote.

    Parameters
    ----------
    batch : Batch
        Tasks and votes.
    matrices : Tensor of shape (n_votes, n_classes, n_classes)
        Matrix of the worker of each vote.

    Returns
    -------
    Tensor of shape (n_votes, n_classes)

    Examples
    --------
    >>> torch = import_torch()
    >>> one = torch.zeros(1, dtype=torch.int64)
    >>> batch = Batch(None, None, None, torch.zeros(1, 2), task=one, worker=one, label=one, weight=torch.ones(1))
    >>> compute_layer_scores(batch, torch.tensor([[[2.0, 0.0], [0.0, 4.0]]])).tolist()
    [[1.0, 2.0]]
    """
    probs = batch.class_probs.index_select(0, batch.task)[:, :, None]
    if matrices.shape[-1] <= MAX_PRODUCT_CLASSES:  # a product of small matrices costs more than its multiplications
        return (probs * matrices).sum(dim=1)
    scores: Tensor = import_torch().bmm(probs.mT, matrices)[:, 0]
    return scores


def compute_layer_log_probs(batch: Batch) -> Tensor:
    """Return log softmax(T_rᵀ f(x)) of every vote.

    Parameters
    ----------
    batch : Batch
        Tasks and votes; the network has a worker table "T".

    Returns
    -------
    Tensor of shape (n_votes, n_classes)

    Examples
    --------
    >>> torch = import_torch()
    >>> network = CrowdNetwork("linear", (1,), n_classes=2, hidden=1, dropout=0.0)
    >>> _ = network.add_worker_parameters(make_layer_matrices(ModelSizes(1, 2, 1), sparse=True))
    >>> zero = torch.zeros(1, dtype=torch.int64)
    >>> batch = Batch(network, None, None, torch.zeros(1, 2), task=zero, worker=zero, label=zero, weight=torch.ones(1))
    >>> compute_layer_log_probs(batch).exp().tolist()
    [[0.5, 0.5]]
    """
    log_probs: Tensor = import_torch().log_softmax(compute_layer_scores(batch, batch.worker_rows("T")), dim=1)
    return log_probs
