"""Confusion matrices of workers as trainable parameters, with a softmax in every row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wisecrowd import kernels
from wisecrowd.data.crowd import Crowd
from wisecrowd.em.initialization import compute_vote_shares
from wisecrowd.em.priors import estimate_crowd_prior
from wisecrowd.errors import UsageError, check_choice
from wisecrowd.nn.backend import import_torch
from wisecrowd.nn.crowd_network import CrowdNetwork, ModelSizes
from wisecrowd.nn.vote_tensors import Batch, WorkerTable, log_softmax_rows
from wisecrowd.utils.slices import slice_rows

if TYPE_CHECKING:
    from torch import Tensor

#: Texts of the parameters that methods with such matrices share.
START_HELP = "Initial confusion matrices: near the 'identity', or counted from the 'votes' against the soft vote."
SURE_HELP = "Log-odds of a right label against each wrong one in a start near the identity."


@dataclass(frozen=True)
class SoftmaxConfusion:
    """A confusion matrix per worker whose rows are the softmax of free numbers, π_r[k, ·] = softmax(A_r[k, ·]).

    The labels of a worker have the probability P(r gives l | x) = Σ_k f_k(x) π_r[k, l]. The table of the numbers A is
    named "A".

    Attributes
    ----------
    start : {"identity", "votes"}
        Initial matrices.
    sure : float
        Log-odds of a right label in a start near the identity.
    sparse : bool
        Whether a step changes only the matrices of workers who voted in its batch.

    Examples
    --------
    >>> confusion = SoftmaxConfusion(start="identity", sure=2.0)
    >>> confusion.make_parameters(ModelSizes(n_workers=1, n_classes=2, n_hidden=3))["A"].initial.tolist()
    [[[2.0, 0.0], [0.0, 2.0]]]
    """

    start: str
    sure: float
    sparse: bool = True

    def check_parameters(self) -> None:
        """Raise if a parameter is invalid.

        Raises
        ------
        UsageError
            If ``start`` is unknown or ``sure`` not positive.
        """
        check_choice("start", self.start, ("identity", "votes"))
        if not (np.isfinite(self.sure) and self.sure > 0):
            raise UsageError(
                f"sure must be positive, since labels and classes would be unrelated at 0; got {self.sure}"
            )

    def make_parameters(self, sizes: ModelSizes) -> dict[str, Any]:
        """Return the table A, near the identity.

        Parameters
        ----------
        sizes : ModelSizes
            Numbers of workers and classes.

        Returns
        -------
        dict
        """
        matrix = self.sure * import_torch().eye(sizes.n_classes)
        return {"A": WorkerTable(matrix.repeat(sizes.n_workers, 1, 1), sparse=self.sparse)}

    def initialize(self, network: CrowdNetwork, crowd: Crowd) -> None:
        """Set A from the votes if ``start`` says so.

        Parameters
        ----------
        network : CrowdNetwork
            Network whose table is changed in place.
        crowd : Crowd
            Training votes.
        """
        if self.start == "votes":
            initialize_from_votes(network, "A", crowd)

    def label_log_probs(self, batch: Batch) -> Tensor:
        """Return log Σ_k f_k(x) π_r[k, l] of every vote.

        Parameters
        ----------
        batch : Batch
            Tasks and votes.

        Returns
        -------
        Tensor of shape (n_votes, n_classes)
        """
        return mix_label_log_probs(
            batch.class_log_probs.index_select(0, batch.task), log_softmax_rows(batch.worker_rows("A"))
        )

    def batch_matrices(self, batch: Batch) -> Tensor:
        """Return the matrices π of the workers of a batch, each worker once.

        Parameters
        ----------
        batch : Batch
            Votes.

        Returns
        -------
        Tensor of shape (n_batch_workers, n_classes, n_classes)
        """
        return log_softmax_rows(batch.network.worker_rows("A", batch.unique_workers)).exp()

    def matrices(self, network: CrowdNetwork, workers: NDArray[Any]) -> NDArray[np.float64]:
        """Return the matrices π of some workers.

        Parameters
        ----------
        network : CrowdNetwork
            Trained network.
        workers : ndarray of int
            Worker codes.

        Returns
        -------
        ndarray of shape (n_selected_workers, n_classes, n_classes)
        """
        torch = import_torch()
        with torch.no_grad():
            codes = torch.from_numpy(workers.astype(np.int64)).to(network.worker_parameters.A.device)
            rows = network.worker_rows("A", codes).cpu().double()
            return np.asarray(log_softmax_rows(rows).exp().cpu().numpy())


def mix_label_log_probs(class_log_probs: Tensor, log_matrices: Tensor) -> Tensor:
    """Return log Σ_k f_k π[k, l].

    Parameters
    ----------
    class_log_probs : Tensor of shape (n_votes, n_classes)
        Log f_k of the task of each vote.
    log_matrices : Tensor of shape (n_votes, n_classes, n_classes)
        Log confusion matrix of each vote, by class and label.

    Returns
    -------
    Tensor of shape (n_votes, n_classes)

    Examples
    --------
    >>> torch = import_torch()
    >>> matrix = torch.tensor([[[0.9, 0.1], [0.2, 0.8]]])
    >>> [round(p, 3) for p in mix_label_log_probs(torch.tensor([[0.5, 0.5]]).log(), matrix.log()).exp()[0].tolist()]
    [0.55, 0.45]
    """
    log_probs: Tensor = import_torch().logsumexp(class_log_probs[:, :, None] + log_matrices, dim=1)
    return log_probs


def initialize_from_votes(network: CrowdNetwork, name: str, crowd: Crowd) -> None:
    """Set a worker table to log π, with π counted against the soft vote.

    The matrices are shrunk toward that of the crowd, so that no label of a worker with few votes is impossible.

    Parameters
    ----------
    network : CrowdNetwork
        Network whose table is changed in place.
    name : str
        Name of a table of matrices.
    crowd : Crowd
        Training votes.

    Examples
    --------
    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "cat"), ("t2", "ann", "dog"), ("t2", "cy", "dog")])
    >>> table = WorkerTable(import_torch().zeros(3, 2, 2))
    >>> network = CrowdNetwork("linear", (1,), n_classes=2, hidden=1, dropout=0.0).add_worker_parameters({"A": table})
    >>> initialize_from_votes(network, "A", crowd)
    >>> network.worker_table("A").exp().sum(dim=2).allclose(import_torch().ones(3, 2))
    True
    """
    torch, table, pairs = import_torch(), network.worker_table(name), crowd.pairs
    tally = kernels.tally(crowd.layout, compute_vote_shares(crowd))
    confusion, strength = estimate_crowd_prior(tally, pairs)
    pseudo_votes = strength * confusion
    with torch.no_grad():
        for workers in slice_rows(len(table), pseudo_votes.size):
            rows = slice(*np.searchsorted(pairs.worker, [workers.start, workers.stop]))
            counts = np.tile(pseudo_votes, (len(table[workers]), 1, 1))
            counts[pairs.worker[rows] - workers.start, :, pairs.label[rows]] += tally[rows]
            counts /= counts.sum(axis=2, keepdims=True)
            table[workers] = torch.from_numpy(np.log(counts)).to(table)
