"""The demo from beginning to end, without a word printed."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import cast

import pandas as pd

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.data.crowd import Crowd
from wisecrowd.demo.completing import Completions, hold_completions
from wisecrowd.demo.contest import Contest, hold_contest
from wisecrowd.demo.crowd import digits_crowd
from wisecrowd.demo.verdicts import Verdict, judge
from wisecrowd.errors import UsageError
from wisecrowd.report import Report, build
from wisecrowd.simulate import Simulation

#: The method whose view of the workers is told: it has a confusion matrix for each of them.
JUDGE = "dawid-skene"

#: What each kind of simulated worker should be found to be.
DESERVED = {
    "copier": {"copies"},
    "spammer": {"random"},
    "one-button": {"one answer"},
    "adversary": {"contrary"},
    "biased": {"leaning"},
    "noisy": {"fallible", "reliable"},
    "expert": {"reliable"},
}

#: What stands above the report.
TITLE = "Handwritten digits, and a crowd that disagrees about them"

#: Findings that say: do not trust this worker.
ACCUSATIONS = {"copies", "random", "one answer", "contrary"}


@dataclass(frozen=True)
class Demo:
    """Everything that the demo found out.

    >>> demo = run_demo(only=["dawid-skene", "majority-vote"])
    >>> demo.check().loc["spammer", "workers"].item()
    6
    >>> print(demo.score_of_verdicts())  # doctest: +ELLIPSIS
    Of 14 who harm, ... were named; of 26 who mean well, ... accused.
    >>> demo.workers().columns.tolist()
    ['n_votes', 'accuracy', 'finding', 'detail', 'made_as']
    """

    simulation: Simulation
    contest: Contest
    completions: Completions
    fitted: Aggregator
    verdicts: list[Verdict]
    seconds: float

    @property
    def crowd(self) -> Crowd:
        """The votes."""
        return self.simulation.crowd

    def check(self) -> pd.DataFrame:
        """How many workers of each simulated kind were found out: a row by kind with workers, right and taken_for."""
        found = pd.Series({verdict.worker: verdict.finding for verdict in self.verdicts})
        rows = {}
        for kind, deserved in DESERVED.items():
            findings = found[self.simulation.kind == kind]
            right = findings.isin(deserved)
            others = [f"{worker} {finding}" for worker, finding in findings[~right].items()]
            rows[kind] = {"workers": len(findings), "right": int(right.sum()), "taken_for": ", ".join(others)}
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("kind")

    def score_of_verdicts(self) -> str:
        """One sentence on whether the bad workers were named, and the good ones spared."""
        accused = pd.Series({verdict.worker: verdict.finding in ACCUSATIONS for verdict in self.verdicts})
        harmful = self.simulation.kind.map(lambda kind: DESERVED[kind] <= ACCUSATIONS)
        named, wronged = int(accused[harmful].sum()), int(accused[~harmful].sum())
        return (
            f"Of {harmful.sum()} who harm, {named} {'was' if named == 1 else 'were'} named; "
            f"of {(~harmful).sum()} who mean well, {wronged or 'none'} {'were' if wronged > 1 else 'was'} accused."
        )

    def workers(self) -> pd.DataFrame:
        """What was found out about each worker, and what they were made as."""
        rows = [(one.n_votes, one.accuracy, one.finding, one.detail) for one in self.verdicts]
        table = pd.DataFrame(
            rows, columns=["n_votes", "accuracy", "finding", "detail"], index=self.simulation.kind.index
        )
        return table.assign(made_as=self.simulation.kind)

    def report(self, command: str | None = None) -> Report:
        """One page for people: what `wisecrowd.report` makes of the votes, with the truth beside it.

        ``command`` is the command line that makes the same page again.
        """
        return build(self.crowd, truth=self.simulation.truth, title=TITLE, command=command)


def run_demo(random_state: int = 0, *, only: Collection[str] | None = None) -> Demo:
    """Make the crowd, let all methods answer (or ``only`` some), and judge the workers by what `JUDGE` infers.

    >>> run_demo(random_state=1, only=["dawid-skene"]).crowd.n_workers
    40
    """
    begun = time.perf_counter()
    digits = digits_crowd(random_state)
    contest = hold_contest(digits, only)
    completions = hold_completions(digits, only)
    crowd = digits.simulation.crowd
    fitted = next((entry.fitted for entry in contest.entries if entry.method == JUDGE), None)
    if fitted is None:
        raise UsageError(f"the demo needs {JUDGE}, which judges the workers; name it among the methods")
    judging = cast(Aggregator, fitted)
    verdicts = judge(crowd, judging)
    return Demo(digits.simulation, contest, completions, judging, verdicts, time.perf_counter() - begun)
