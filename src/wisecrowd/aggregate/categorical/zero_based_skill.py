"""Zero-based skill: agreement with the weighted vote, approached in steps that grow smaller."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wisecrowd.aggregate.categorical._weighting import AdditiveVote, Polls
from wisecrowd.base.fields import method_class, parameter
from wisecrowd.errors import UsageError
from wisecrowd.utils import progress


@method_class
class ZeroBasedSkill(AdditiveVote):
    """Vote by skill, and move every skill towards agreement with the outcome, in steps that grow smaller.

        s_r ← s_r + λ (a_r − s_r),   a_r = share of r's labels that agree with the vote weighted by s

    Everybody starts a hair above chance, 1/K + 10⁻⁵; λ starts at ``learning_rate`` and is halved every ``halve_every``
    rounds, which damps the swings of plain iteration. It is Wawa repeated: the weights are accuracies, so a guesser
    counts 1/K of a perfect worker. It ends early once no skill moves any more.

    Choose it where its authors' platform used it and you want their answer; `IWMV` discounts guessers, and `OneCoin`
    gives probabilities that mean something.

    >>> from wisecrowd import Crowd, ZeroBasedSkill
    >>> crowd = Crowd.from_triples([(task, worker, (task + (worker == "bad")) % 2) for task in range(8) for worker in
    ...                             ("ann", "bob", "bad")])
    >>> ZeroBasedSkill().fit(crowd).workers_["weight"].to_dict()
    {'ann': 1.0, 'bad': 0.0, 'bob': 1.0}
    """

    references: ClassVar[tuple[str, ...]] = ("ustalov2024learning",)

    max_iter: int = parameter(default=100, help="rounds of voting at most")
    learning_rate: float = parameter(default=1.0, help="first step towards the agreement, 1 going all the way")
    halve_every: int = parameter(default=20, help="rounds after which the step is halved")
    tol: float = parameter(default=1e-5, help="stop when no skill is further than this from the agreement")

    def _weigh(self, poll: Polls) -> NDArray[np.float64]:
        if self.max_iter < 1 or self.halve_every < 1:
            raise UsageError(f"max_iter and halve_every must be 1 or more; got {self.max_iter} and {self.halve_every}")
        if not 0 < self.learning_rate <= 1:
            raise UsageError(f"learning_rate must lie between 0 and 1; got {self.learning_rate}")
        skill = np.where(poll.cast > 0, 1 / poll.engine.crowd.n_classes + 1e-5, np.nan)
        self.n_iter_, self.converged_ = 0, False
        while not self.converged_ and self.n_iter_ < self.max_iter:
            self.n_iter_ += 1
            step = self.learning_rate / 2 ** (self.n_iter_ // self.halve_every)
            gap = poll.agreement(skill) - skill
            skill = skill + step * gap
            furthest = float(np.nanmax(np.abs(gap)))
            self.converged_ = furthest <= self.tol
            progress.report("ZeroBasedSkill", self.n_iter_, self.max_iter, f"largest gap {furthest:.2g}")
        return skill
