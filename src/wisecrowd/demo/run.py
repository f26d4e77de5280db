"""Demo run: crowd, methods, completers and worker ratings, without printing."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import cast

import pandas as pd

from wisecrowd.base.aggregator import Aggregator
from wisecrowd.data.crowd import Crowd
from wisecrowd.demo.completions import Completions, run_completions
from wisecrowd.demo.contest import Contest, run_contest
from wisecrowd.demo.crowd import make_digits_crowd
from wisecrowd.demo.verdicts import Verdict, rate_workers
from wisecrowd.errors import UsageError
from wisecrowd.report import Report, build
from wisecrowd.simulate import Simulation

#: Method that rates the workers; it has one confusion matrix per worker.
RATING_METHOD = "dawid-skene"

#: Findings that are right for each simulated type of worker.
EXPECTED_FINDINGS = {
    "copier": {"copies"},
    "spammer": {"random"},
    "one-button": {"one answer"},
    "adversary": {"contrary"},
    "biased": {"leaning"},
    "noisy": {"fallible", "reliable"},
    "expert": {"reliable"},
}

#: Title of the report.
TITLE = "Handwritten digits labelled by a simulated crowd"

#: Findings about workers who should not be trusted.
HARMFUL_FINDINGS = {"copies", "random", "one answer", "contrary"}


@dataclass(frozen=True)
class Demo:
    """Results of the demo.

    >>> demo = run_demo(only=["dawid-skene", "majority-vote"])
    >>> demo.check().loc["spammer", "workers"].item()
    6
    >>> print(demo.describe_verdicts())  # doctest: +ELLIPSIS
    ... of 14 harmful workers and ... of 26 honest workers were flagged.
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
        """Votes of the demo."""
        return self.simulation.crowd

    def check(self) -> pd.DataFrame:
        """Return by simulated type the number of workers, of right findings, and the wrong findings."""
        finding_by_worker = pd.Series({verdict.worker: verdict.finding for verdict in self.verdicts})
        rows = {}
        for kind, deserved in EXPECTED_FINDINGS.items():
            findings = finding_by_worker[self.simulation.kind == kind]
            right = findings.isin(deserved)
            others = [f"{worker} {finding}" for worker, finding in findings[~right].items()]
            rows[kind] = {"workers": len(findings), "right": int(right.sum()), "taken_for": ", ".join(others)}
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("kind")

    def describe_verdicts(self) -> str:
        """Return one sentence on how many harmful and honest workers were flagged."""
        accused = pd.Series({verdict.worker: verdict.finding in HARMFUL_FINDINGS for verdict in self.verdicts})
        harmful = self.simulation.kind.map(lambda kind: EXPECTED_FINDINGS[kind] <= HARMFUL_FINDINGS)
        named, wronged = int(accused[harmful].sum()), int(accused[~harmful].sum())
        return f"{named} of {harmful.sum()} harmful workers and {wronged} of {(~harmful).sum()} honest workers were flagged."

    def workers(self) -> pd.DataFrame:
        """Return the finding on every worker beside the simulated type."""
        rows = [(one.n_votes, one.accuracy, one.finding, one.detail) for one in self.verdicts]
        table = pd.DataFrame(
            rows, columns=["n_votes", "accuracy", "finding", "detail"], index=self.simulation.kind.index
        )
        return table.assign(made_as=self.simulation.kind)

    def report(self, command: str | None = None) -> Report:
        """Return the HTML report, with the known truth.

        Parameters
        ----------
        command : str, optional
            Command line that reproduces the page.
        """
        return build(self.crowd, truth=self.simulation.truth, title=TITLE, command=command)


def run_demo(random_state: int = 0, *, only: Collection[str] | None = None) -> Demo:
    """Simulate the crowd, fit all methods or some, and rate the workers.

    >>> run_demo(random_state=1, only=["dawid-skene"]).crowd.n_workers
    40
    """
    started = time.perf_counter()
    digits = make_digits_crowd(random_state)
    contest = run_contest(digits, only)
    completions = run_completions(digits, only)
    crowd = digits.simulation.crowd
    fitted = next((entry.fitted for entry in contest.entries if entry.method == RATING_METHOD), None)
    if fitted is None:
        raise UsageError(f"the demo rates workers with {RATING_METHOD}; include it in only=")
    aggregator = cast(Aggregator, fitted)
    verdicts = rate_workers(crowd, aggregator)
    return Demo(digits.simulation, contest, completions, aggregator, verdicts, time.perf_counter() - started)
