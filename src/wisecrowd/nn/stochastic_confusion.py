"""What learners have in common whose workers have confusion matrices, trained by gradients together with the network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from wisecrowd.base.fields import method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.em import priors as matrices
from wisecrowd.em.initialization import vote_shares
from wisecrowd.errors import UsageError, one_of
from wisecrowd.kernels import reference as kernels
from wisecrowd.nn.backend import need_torch
from wisecrowd.nn.crowd_network import CrowdNetwork, Sizes
from wisecrowd.nn.deep_learner import DeepLearner
from wisecrowd.nn.vote_tensors import Batch, PerWorker, as_log_probability

if TYPE_CHECKING:
    from torch import Tensor


@method_class
class StochasticLearner(DeepLearner):
    """A network, and for every worker a confusion matrix whose rows are the softmax of free numbers.

        P(r says l | x) = Σ_k f_k(x) π_r[k, l],   π_r[k, ·] = softmax(A_r[k, ·])

    ``confusion_`` is π. ``posterior_`` does not weigh votes by it, but by matrices estimated from f and the votes, as for
    any network. A starts from ``sure`` times the identity, or from the logarithm of what each worker said against the soft
    vote, drawn toward the whole crowd as far as their votes are few.

    >>> from wisecrowd import CCEM
    >>> issubclass(CCEM, StochasticLearner)
    True
    """

    start: Literal["identity", "votes"] = parameter(
        default="identity", help="confusion matrices at first: near the 'identity', or counted against the soft 'votes'"
    )
    sure: float = parameter(
        default=6.0, help="log-odds of a right label against each wrong one in a start near the identity"
    )

    #: Whether a step touches only the matrices of workers who voted in its batch.
    sparse: ClassVar[bool] = True

    def _check(self, crowd: Crowd) -> None:
        super()._check(crowd)
        one_of("start", self.start, ("identity", "votes"))
        if not (np.isfinite(self.sure) and self.sure > 0):
            raise UsageError(f"sure must be a positive number: at 0, no class would belong to a label; got {self.sure}")

    def _own(self, sizes: Sizes) -> dict[str, Any]:
        torch, (n_workers, n_classes, _) = need_torch(), sizes
        return {"A": PerWorker((self.sure * torch.eye(n_classes)).repeat(n_workers, 1, 1), sparse=self.sparse)}

    def _prepare(self, network: CrowdNetwork, crowd: Crowd) -> None:
        if self.start == "votes":
            start_from_votes(network, "A", crowd)

    def _label_log_probs(self, batch: Batch) -> Tensor:
        log_pi = as_log_probability(batch.of_worker("A"))
        found: Tensor = need_torch().logsumexp(batch.log_p[batch.row][:, :, None] + log_pi, dim=1)
        return found

    # ------------------------------------------------------------------ what was learnt

    def confusion_of(self, workers: Any) -> NDArray[np.float64]:
        """Confusion matrices of some workers, by position, as the model has them: (chosen workers, true, said)."""
        self._check_fitted("posterior_")
        return self._own_matrices(self._chosen(workers))

    def _own_matrices(self, workers: NDArray[Any]) -> NDArray[np.float64]:
        torch, network = need_torch(), self.network_
        with torch.no_grad():
            place = torch.from_numpy(workers.astype(np.int64)).to(network.own.A.device)
            found: NDArray[np.float64] = as_log_probability(network.rows_of("A", place).double()).exp().cpu().numpy()
        return found


def start_from_votes(network: CrowdNetwork, name: str, crowd: Crowd) -> None:
    """Set a per-worker table of matrices to log π, with π counted against the soft vote, in place.

    The matrices are drawn toward the crowd's, as strongly as workers seem alike, so that nothing is impossible for a
    worker who cast few votes.

    >>> crowd = Crowd.from_triples([("t1", "ann", "cat"), ("t1", "bob", "cat"), ("t2", "ann", "dog"), ("t2", "cy", "dog")])
    >>> table = PerWorker(need_torch().zeros(3, 2, 2))
    >>> network = CrowdNetwork("linear", (1,), n_classes=2, hidden=1, dropout=0.0).add({"A": table})
    >>> start_from_votes(network, "A", crowd)
    >>> network.table("A").exp().sum(dim=2).allclose(need_torch().ones(3, 2))
    True
    """
    torch, table, pairs = need_torch(), network.table(name), crowd.pairs
    tally = kernels.tally(crowd.layout, vote_shares(crowd))
    toward, strength = matrices.crowd_prior(tally, pairs)
    prior = strength * toward
    with torch.no_grad():
        for workers in matrices.blocks(len(table), prior.size):
            mine = slice(*np.searchsorted(pairs.worker, [workers.start, workers.stop]))
            found = np.tile(prior, (len(table[workers]), 1, 1))
            found[pairs.worker[mine] - workers.start, :, pairs.label[mine]] += tally[mine]
            found /= found.sum(axis=2, keepdims=True)
            table[workers] = torch.from_numpy(np.log(found)).to(table)
