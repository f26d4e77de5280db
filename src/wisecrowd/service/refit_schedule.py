"""Adaptive interval between fits to all votes."""

from __future__ import annotations

from dataclasses import dataclass

#: Share of labels that a fit should change; fits that change more come sooner, fits that change less come later.
TARGET_CHANGED_SHARE = 0.004
#: Number of votes before the first fit.
INITIAL_VOTES = 50
#: Upper bound of the interval as a share of all votes, so that a fit comes even where labels are stable.
MAX_NEW_SHARE = 0.01
#: Bounds of the ratio between two consecutive intervals; they damp the noise of a single fit.
MIN_GROWTH, MAX_GROWTH = 0.25, 2.0


@dataclass
class RefitSchedule:
    """Number of votes between two fits, adapted to the share of labels that the last fit changed.

    In some crowds labels are stable between fits; in others a dozen votes change many of them. The share of changed labels is
    available after every fit at no extra cost, so the interval follows it.

    Attributes
    ----------
    interval : int
        Number of new votes after which the next fit is due.

    Examples
    --------
    >>> schedule = RefitSchedule()
    >>> schedule.interval
    50
    >>> schedule.update(50, changed_share=0.016, n_votes=5_000)     # four times the target
    >>> schedule.interval
    12
    >>> schedule.update(12, changed_share=0.0, n_votes=5_000)
    >>> schedule.interval
    24
    """

    interval: int = INITIAL_VOTES

    def update(self, n_new_votes: int, changed_share: float, n_votes: int) -> None:
        """Set the interval after a fit.

        Parameters
        ----------
        n_new_votes : int
            Number of votes that arrived since the previous fit.
        changed_share : float
            Share of labels that the fit changed.
        n_votes : int
            Number of votes of the fit.
        """
        growth = MAX_GROWTH
        if changed_share > 0:
            growth = min(max(TARGET_CHANGED_SHARE / changed_share, MIN_GROWTH), MAX_GROWTH)
        self.interval = int(min(max(n_new_votes * growth, 1), max(INITIAL_VOTES, MAX_NEW_SHARE * n_votes)))
