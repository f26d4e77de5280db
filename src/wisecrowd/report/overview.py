"""What a manager reads in a minute, and what to do next: sentences that follow from the figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from wisecrowd.base.registry import find, kind_of
from wisecrowd.diagnose import Diagnosis
from wisecrowd.diagnose.preparation import groups_of
from wisecrowd.evaluate.model_selection import Comparison
from wisecrowd.report import over_time as over_time
from wisecrowd.report.gold import Known
from wisecrowd.utils.text import count_noun, format_percent, join_words, quote_name

#: Krippendorff's own limits: below the first, not even tentative conclusions; from the second, reliable.
TENTATIVE, RELIABLE = 0.667, 0.8
#: Lower ends of the bins of counts.
BINS = (0, 1, 2, 5, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 1_000_000)
#: Up to here, every count has a bin of its own.
SINGLE = 12
#: Tasks and workers that are named in advice.
NAMED = 5
#: So many tasks somebody can look at in an afternoon.
FEW = 20


@dataclass(frozen=True, eq=False)
class Facts:
    """What sentences are made from."""

    found: Diagnosis
    known: Known | None
    comparison: Comparison | None
    confusions: list[dict[str, Any]]

    @property
    def _figures(self) -> dict[str, Any]:
        return self.found.overview

    @property
    def _flagged(self) -> pd.DataFrame:
        """Workers with flags, those with most votes first."""
        table = self.found.workers
        return table[table["flags"] != ""].sort_values("n_votes", ascending=False, kind="stable")

    @property
    def _flagged_votes(self) -> float:
        return float(self._flagged["n_votes"].sum() / max(self.found.crowd.n_votes, 1))

    def right(self) -> tuple[int, int] | None:
        """How many labels are right, of how many whose truth is known."""
        return None if self.known is None else self.known.share_right(self.found.model.posterior_.argmax(axis=1))

    # ------------------------------------------------------------------ the overview

    def tiles(self) -> list[dict[str, str]]:
        """Figures with a word each."""
        figures = self._figures
        alpha = figures["krippendorff_alpha"]
        shown = [
            ("votes", f"{figures['labels']:,}", f"{figures['votes_per_task']:.1f} for each task"),
            ("tasks", f"{figures['tasks']:,}", f"{figures['tasks_by_kind']['settled']:,} settled"),
            ("workers", f"{figures['workers']:,}", f"{figures['flagged_workers']:,} to look at"),
            ("classes", f"{self.found.crowd.n_classes:,}", "to choose from"),
            ("agreement", "–" if alpha is None else f"{alpha:.2f}", "Krippendorff’s alpha; 1 is perfect, 0 is chance"),
            ("expected right", format_percent(figures["expected_accuracy"]), "of the labels, as the model sees it"),
        ]
        judged = self.right()
        if judged is not None:
            shown.append(("right", format_percent(judged[0] / judged[1]), f"of {judged[1]:,} labels of known truth"))
        return [{"what": what, "value": value, "more": more} for what, value, more in shown]

    def sentences(self) -> list[str]:
        """The crowd in a minute."""
        found = [
            self._size(),
            self._agreement(),
            over_time.sentence(self.found),
            self._certainty(),
            self._of_workers(),
            self._of_classes(),
        ]
        if self.comparison is not None:
            found.append(self.comparison.sentence)
        return [sentence for sentence in found if sentence]

    def _size(self) -> str:
        figures = self._figures
        return (
            f"{count_noun(figures['workers'], 'worker')} gave {count_noun(figures['labels'], 'vote')} on "
            f"{count_noun(figures['tasks'], 'task')}; half of the workers gave {figures['labels_per_worker_median']:,.0f} or more."
        )

    def _agreement(self) -> str:
        figures = self._figures
        alpha = figures["krippendorff_alpha"]
        if alpha is None:
            return "How far the workers agree cannot be told: nobody shares tasks, or all say the same."
        if alpha >= RELIABLE:
            verdict = "The workers agree well"
        elif alpha >= TENTATIVE:
            verdict = "The workers agree well enough for tentative conclusions"
        elif alpha > 0.2:
            verdict = "The workers disagree often, so a single vote should not be relied on"
        else:
            verdict = "The workers agree hardly more than they would by chance"
        low, high = figures["krippendorff_alpha_low"], figures["krippendorff_alpha_high"]
        between = "" if low is None or high is None else f", {low:.2f} to {high:.2f}"
        return f"{verdict} (Krippendorff’s alpha {alpha:.2f}{between})."

    def _certainty(self) -> str:
        figures = self._figures
        kinds = [f"{n:,} {'is' if n == 1 else 'are'} {kind}" for kind, n in figures["tasks_by_kind"].items() if n]
        judged = self.right()
        told = (
            f"{format_percent(figures['expected_accuracy'])} of the labels should be right, says a model that may be too sure"
            if judged is None
            else f"Of {count_noun(judged[1], 'task')} of known truth, the labels of {judged[0]:,} are right "
            f"({format_percent(judged[0] / judged[1])}); the model expects {format_percent(figures['expected_accuracy'])} of all"
        )
        return f"{told}. Of the tasks, {join_words(kinds)}."

    def _of_workers(self) -> str:
        figures = self._figures
        flagged, few = figures["flagged_workers"], figures["workers_with_fewer_than_10_labels"]
        rest = f" {count_noun(few, 'worker')} gave fewer than 10 votes, too few to judge them by." if few else ""
        if not flagged:
            changed = ", contrary, copying or changed" if self.found.crowd.has_times else ", contrary or copying"
            return f"No worker stands out as careless{changed}.{rest}"
        verb = "is" if flagged == 1 else "are"
        share = format_percent(self._flagged_votes)
        return f"{count_noun(flagged, 'worker')} {verb} worth a look; {share} of all votes come from them.{rest}"

    def _of_classes(self) -> str:
        if not self.confusions:
            return ""
        first = self.confusions[0]
        return (
            f"The most frequent confusion is {quote_name(first['said'])} where {quote_name(first['true'])} is true: "
            f"{format_percent(first['share'])} of what is said of {quote_name(first['true'])}."
        )

    # ------------------------------------------------------------------ pictures

    def counts(self) -> list[dict[str, Any]]:
        """How many workers gave how many votes, how many tasks got how many, and when they came."""
        crowd = self.found.crowd
        course = over_time.picture(self.found)
        return [
            {"what": "Workers by how many votes they gave", "of": "workers", "bars": binned(crowd.votes_per_worker)},
            {"what": "Tasks by how many votes they got", "of": "tasks", "bars": binned(crowd.votes_per_task)},
            *([] if course is None else [course]),
        ]

    # ------------------------------------------------------------------ what to do next

    def advice(self) -> list[dict[str, str]]:
        """What to do, the most useful first, each with its reason."""
        found = [
            self._use(),
            self._ask_again(),
            self._look_at_tasks(),
            self._look_at_workers(),
            self._look_at_changes(),
            self._tell_apart(),
            self._gold(),
        ]
        return [one for one in found if one is not None]

    def _use(self) -> dict[str, str] | None:
        if groups_of(self.found.model) is not None:
            return {
                "do": "Take the labels of panel.",
                "why": "Who belongs together errs together, and no other method knows who does. They come from: "
                "wisecrowd aggregate … -m panel",
            }
        if self.comparison is None:
            return None
        best = self.comparison.best
        # A learner is another command than an aggregator.
        return {
            "do": f"Take the labels of {best}.",
            "why": f"No method foretells hidden votes better. They come from: wisecrowd {kind_of(find(best))} … -m {best}",
        }

    def _ask_again(self) -> dict[str, str] | None:
        n = self._figures["tasks_by_kind"]["undecided"] + self._figures["tasks_by_kind"]["unlabelled"]
        if not n:
            return None
        names = self._first(["undecided", "unlabelled"], "confidence")
        return {
            "do": f"Get another vote on {count_noun(n, 'task')}.",
            "why": f"Not enough is known of it yet: {names}."
            if n == 1
            else f"Not enough is known of them yet; the least sure are {names}.",
        }

    def _look_at_tasks(self) -> dict[str, str] | None:
        n = self._figures["tasks_by_kind"]["ambiguous"]
        if not n:
            return None
        return {
            "do": f"Look at {'some of ' if n > FEW else ''}{count_noun(n, 'ambiguous task')} yourself, before buying more votes on "
            f"{'it' if n == 1 else 'them'}.",
            "why": "Good workers differ, so the task or the guideline is at fault; begin with "
            f"{self._first(['ambiguous'], 'misfit')}.",
        }

    def _first(self, kinds: list[str], column: str) -> str:
        tasks = self.found.tasks
        few = tasks[tasks["kind"].isin(kinds)].nsmallest(NAMED, column)
        return join_words([quote_name(task) for task in few.index])

    def _look_at_workers(self) -> dict[str, str] | None:
        flagged = self._flagged[self._flagged["flags"] != "drifts"]
        if flagged.empty:
            return None
        names = join_words([quote_name(worker) for worker in flagged.index[:NAMED]])
        share = format_percent(flagged["n_votes"].sum() / self.found.crowd.n_votes)
        return {
            "do": f"Talk to {count_noun(len(flagged), 'worker')}, or stop inviting {'them' if len(flagged) > 1 else 'this one'}.",
            "why": f"{share} of all votes are theirs, and most votes those of {names}. The reasons "
            "are in the table. A model of workers gives careless votes little weight, but they were paid for; copied ones it "
            "takes for votes of somebody else."
            + (" If they are machines of one model, say so: --members." if self._has_strange_copies() else ""),
        }

    def _has_strange_copies(self) -> bool:
        """Whether somebody copies, and nobody said who belongs together."""
        return groups_of(self.found.model) is None and bool(self._flagged["flags"].str.contains("copies").any())

    def _look_at_changes(self) -> dict[str, str] | None:
        changed = self._flagged[["drifts" in flags.split(", ") for flags in self._flagged["flags"]]]
        if changed.empty:
            return None
        names = join_words([quote_name(worker) for worker in changed.index[:NAMED]])
        return {
            "do": f"See whether {count_noun(len(changed), 'worker')} changed, or what they were given to do.",
            "why": f"They are right more or less often than they were: {names}. The table says since when; a click on a worker "
            "shows the course of their votes.",
        }

    def _tell_apart(self) -> dict[str, str] | None:
        """What those mix up who are not flagged: one who presses a button is not helped by a guideline."""
        people, classes = self.found.of_workers, self.found.crowd.classes
        assert classes is not None
        pairs = self.found.crowd.pairs
        trusted = (self.found.workers["flags"] == "").to_numpy()[pairs.worker]
        votes = np.zeros((len(classes), len(classes)))  # (said, true)
        np.add.at(votes, pairs.label[trusted], people.tally[trusted])
        share = votes / np.maximum(votes.sum(axis=0), 1e-12)
        np.fill_diagonal(votes, 0.0)
        said, true = divmod(int(votes.argmax()), len(classes))
        n = round(float(votes[said, true]))
        if n < 1 or share[said, true] < 0.1:
            return None
        this, that = quote_name(classes[true]), quote_name(classes[said])
        return {
            "do": f"Say in the guideline what tells {this} from {that}.",
            "why": f"About {count_noun(n, 'vote')} of workers who are not flagged say {that} where {this} is the likelier truth.",
        }

    def _gold(self) -> dict[str, str] | None:
        if self.known is not None:
            return None
        n = min(100, self.found.crowd.n_tasks)
        width = 1.645 * float(np.sqrt(0.25 / n))
        return {
            "do": f"Have an expert label {count_noun(n, 'task')} drawn at random, and make this report again with them.",
            "why": "Without truth, all figures rest on the votes themselves; with it, the share of right labels is known to "
            f"about {width:.0%} either way.",
        }


def binned(counts: Any) -> list[dict[str, Any]]:
    """Counts in bins that widen, without the empty ones at both ends; small counts each for itself."""
    low = np.arange(counts.max() + 1) if counts.max() <= SINGLE else np.array(BINS)
    high = np.append(low[1:] - 1, np.iinfo(np.int64).max)
    n, _ = np.histogram(counts, np.append(low, np.iinfo(np.int64).max))
    filled = np.flatnonzero(n)
    largest = max(int(n.max()), 1)
    return [
        {
            "label": _bin(int(low[at]), int(high[at]), int(counts.max())),
            "n": int(n[at]),
            "share": float(n[at] / largest),
        }
        for at in range(filled[0], filled[-1] + 1)
    ]


def _bin(low: int, high: int, most: int) -> str:
    if low in (high, most):
        return f"{low:,}"
    return f"{low:,} to {min(high, most):,}"
