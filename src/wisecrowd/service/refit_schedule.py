"""How many votes may come before the next fit to all of them: as many as leave the answers what that fit would make them."""

from __future__ import annotations

from dataclasses import dataclass

#: Of all labels, the share that a fit should find changed.
CHANGED = 0.004
#: Votes before the first fit.
FIRST = 50
#: However steady the labels are, a fit is due when this share of votes is new, and more than the first had.
SHARE = 0.01
#: How far the next stretch may be from the last: a part of it at least, so many times as long at most.
SHORTER, LONGER = 0.25, 2.0


@dataclass
class RefitSchedule:
    """The pace of fits, which follows from how many labels the last one changed.

    Some crowds are settled, and what one vote says of other tasks is little; of others a model changes its mind with every
    dozen votes. How many labels a fit finds other than they were taken to be is known when it is made, for nothing.

    >>> pace = RefitSchedule()
    >>> pace.votes
    50
    >>> pace.learn(50, changed=0.016, n_votes=5_000)     # four times as many labels as should be
    >>> pace.votes
    12
    >>> pace.learn(12, changed=0.0, n_votes=5_000)
    >>> pace.votes
    24
    """

    votes: int = FIRST

    def learn(self, n_new: int, changed: float, n_votes: int) -> None:
        """After a fit to ``n_votes``, of which ``n_new`` came since the last, which changed a share of the labels."""
        stretch = LONGER if changed <= 0 else min(max(CHANGED / changed, SHORTER), LONGER)
        self.votes = int(min(max(n_new * stretch, 1), max(FIRST, SHARE * n_votes)))
