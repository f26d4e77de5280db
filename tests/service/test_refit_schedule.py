"""Adaptive interval between fits."""

from __future__ import annotations

from wisecrowd.service.refit_schedule import TARGET_CHANGED_SHARE, RefitSchedule


def test_interval_follows_the_changed_share() -> None:
    schedule = RefitSchedule()
    for _ in range(8):
        schedule.update(schedule.interval, changed_share=4 * TARGET_CHANGED_SHARE, n_votes=10_000)
    assert schedule.interval == 1
    for _ in range(12):
        schedule.update(schedule.interval, changed_share=0.0, n_votes=10_000)
    assert schedule.interval == 100  # a hundredth, however steady they are
    schedule.update(100, changed_share=TARGET_CHANGED_SHARE, n_votes=10_000)
    assert schedule.interval == 100
