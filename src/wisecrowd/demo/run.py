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
from wisecrowd.demo.digits import make_digits_crowd
from wisecrowd.demo.other_answers import AnswerResult, run_other_answers
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

    Attributes
    ----------
    simulation : Simulation
        Votes, truth and types of workers.
    contest : Contest
        Results of the methods.
    completions : Completions
        Results of the completers.
    fitted : Aggregator
        Method that rates the workers.
    verdicts : list of Verdict
        Finding on every worker.
    other_answers : list of AnswerResult
        Results on ratings, comparisons and label sets of other simulated crowds.
    seconds : float
        Time of the whole run.

    Examples
    --------
    >>> demo = run_demo(only=["dawid-skene", "majority-vote"])
    >>> demo.check().loc["spammer", "workers"].item()
    6
    >>> demo.describe_verdicts()
    '13 of 14 harmful workers and 0 of 26 honest workers were flagged.'
    >>> demo.workers().columns.tolist()
    ['n_votes', 'accuracy', 'finding', 'detail', 'simulated_type']
    """

    simulation: Simulation
    contest: Contest
    completions: Completions
    fitted: Aggregator
    verdicts: list[Verdict]
    other_answers: list[AnswerResult]
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
            rows[kind] = {"workers": len(findings), "right": int(right.sum()), "rated_as": ", ".join(others)}
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
        return table.assign(simulated_type=self.simulation.kind)

    def report(self, command: str | None = None) -> Report:
        """Return the HTML report, with the known truth.

        Parameters
        ----------
        command : str, optional
            Command line that reproduces the page.

        Returns
        -------
        Report
        """
        return build(self.crowd, truth=self.simulation.truth, title=TITLE, command=command)


def run_demo(random_state: int = 0, *, only: Collection[str] | None = None) -> Demo:
    """Simulate the crowd, fit all methods or some, and rate the workers.

    Parameters
    ----------
    random_state : int, default 0
        Seed of the simulation.
    only : collection of str, optional
        Names of the methods to run, including `RATING_METHOD`. All by default.

    Returns
    -------
    Demo

    Raises
    ------
    UsageError
        If ``only`` leaves out the method that rates the workers.

    Examples
    --------
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
    other_answers = run_other_answers(random_state)
    seconds = time.perf_counter() - started
    return Demo(digits.simulation, contest, completions, aggregator, verdicts, other_answers, seconds)
