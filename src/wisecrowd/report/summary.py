"""Summary and recommended next steps: sentences that follow from the figures of a diagnosis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.base.registry import find, kind_of
from wisecrowd.diagnose import Diagnosis
from wisecrowd.diagnose.preparation import get_worker_groups
from wisecrowd.evaluate.accuracy import AccuracyEstimate
from wisecrowd.evaluate.intervals import share_interval
from wisecrowd.evaluate.model_selection import Comparison
from wisecrowd.report import timeline
from wisecrowd.report.classes import MAX_CLASS_NAME
from wisecrowd.report.gold import GoldLabels
from wisecrowd.report.methods import models_machines
from wisecrowd.utils.levels import format_level
from wisecrowd.utils.text import count_noun, display_name, format_percent, join_words, quote_name

#: Limits of Krippendorff's alpha (Krippendorff 2004): tentative conclusions, and reliable data.
TENTATIVE_ALPHA, RELIABLE_ALPHA = 0.667, 0.8
#: Limit of alpha below which agreement is close to chance.
CHANCE_ALPHA = 0.2
#: Lower bounds of the bins of counts; they widen because counts are heavy-tailed.
COUNT_BINS = (0, 1, 2, 5, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 1_000_000)
#: Largest maximum up to which every count has its own bin.
MAX_SINGLE_BINS = 12
#: Maximum number of tasks or workers named in a recommendation.
MAX_NAMED = 5
#: Number of tasks that one person can review in an afternoon.
REVIEWABLE_TASKS = 20
#: Share of a confusion above which the guideline should address it.
MIN_CONFUSION_SHARE = 0.1
#: Number of gold tasks to recommend.
RECOMMENDED_GOLD_TASKS = 100
#: Normal quantile of a two-sided 90 % interval.
NORMAL_QUANTILE = 1.645


@dataclass(frozen=True, eq=False)
class ReportSummary:
    """Sentences about a crowd.

    Attributes
    ----------
    diagnosis : Diagnosis
        Diagnosis of the crowd.
    gold : GoldLabels or None
        Gold labels.
    comparison : Comparison or None
        Comparison of methods.
    confusions : list of dict
        Most frequent confusions.
    """

    diagnosis: Diagnosis
    gold: GoldLabels | None
    comparison: Comparison | None
    confusions: list[dict[str, Any]]

    @property
    def _figures(self) -> dict[str, Any]:
        return self.diagnosis.overview

    @property
    def _flagged_workers(self) -> pd.DataFrame:
        """Workers with flags, those with most votes first."""
        return self.diagnosis.workers.loc[self.diagnosis.assessment.flags.index]

    def _count_correct(self) -> tuple[int, int] | None:
        """Return the number of correct labels and of gold tasks; of labels without their own truth if gold was fitted."""
        if self.gold is None:
            return None
        if self.gold.is_fitted:
            outcomes = self.diagnosis.assessment.labels.outcomes
            return (int(outcomes["right"].sum()), len(outcomes)) if len(outcomes) else None
        return self.gold.count_correct(self.diagnosis.model.posterior_.argmax(axis=1))

    # ------------------------------------------------------------------ summary

    def build_tiles(self) -> list[dict[str, Any]]:
        """Return the key figures.

        Returns
        -------
        list of dict
            Name, value and note of each figure, and whether it is the main one.
        """
        figures = self._figures
        alpha = figures["krippendorff_alpha"]
        tiles = [
            self._build_accuracy_tile(),
            ("votes", f"{figures['votes']:,}", f"{figures['votes_per_task']:.1f} per task"),
            ("tasks", f"{figures['tasks']:,}", f"{figures['tasks_by_kind']['settled']:,} settled"),
            ("workers", f"{figures['workers']:,}", f"{figures['flagged_workers']:,} flagged"),
            ("classes", f"{self.diagnosis.crowd.n_classes:,}", "to choose from"),
            ("agreement", "–" if alpha is None else f"{alpha:.2f}", "Krippendorff’s alpha; 1 is perfect, 0 is chance"),
        ]
        correct = self._count_correct()
        if correct is not None:
            n_correct, n_gold = correct
            note = f"on {count_noun(n_gold, 'gold task')}; {self._describe_gold_interval(n_correct, n_gold)}"
            tiles.insert(1, ("accuracy", format_percent(n_correct / n_gold), note))
        return [
            {"name": name, "value": value, "note": note, "is_main": name == "expected accuracy"}
            for name, value, note in tiles
        ]

    def _build_accuracy_tile(self) -> tuple[str, str, str]:
        if self._is_complete:
            return "expected accuracy", "–", "not estimated: every task is gold"
        return (
            "expected accuracy",
            format_percent(self._accuracy.accuracy),
            f"of the labels; {self._describe_interval()}",
        )

    @property
    def _is_complete(self) -> bool:
        """Return whether every task is gold, so that no label is inferred."""
        return self._accuracy.n_gold >= self._accuracy.n_tasks

    def write_sentences(self) -> list[str]:
        """Return the sentences of the summary.

        Returns
        -------
        list of str
            Sentences.
        """
        sentences = [
            self._describe_accuracy(),
            self._describe_size(),
            self._describe_agreement(),
            timeline.describe_times(self.diagnosis),
            self._describe_kinds(),
            self._describe_workers(),
            self._describe_confusion(),
            "" if self.comparison is None else self.comparison.summary,
        ]
        return [sentence for sentence in sentences if sentence]

    def _describe_size(self) -> str:
        figures = self._figures
        return (
            f"{count_noun(figures['workers'], 'worker')} gave {count_noun(figures['votes'], 'vote')} on "
            f"{count_noun(figures['tasks'], 'task')}; the median worker gave {figures['votes_per_worker_median']:,.0f}."
        )

    def _describe_agreement(self) -> str:
        figures = self._figures
        alpha = figures["krippendorff_alpha"]
        if alpha is None:
            return "Agreement cannot be computed: no task has two votes, or all votes have the same label."
        if alpha >= RELIABLE_ALPHA:
            verdict = "The workers agree well"
        elif alpha >= TENTATIVE_ALPHA:
            verdict = "The workers agree well enough for tentative conclusions"
        elif alpha > CHANCE_ALPHA:
            verdict = "The workers disagree often; single votes are not reliable"
        elif alpha >= 0:
            verdict = "The workers agree hardly more than by chance"
        else:
            verdict = "The workers agree less than by chance"
        low, high = figures["krippendorff_alpha_low"], figures["krippendorff_alpha_high"]
        interval = (
            "" if low is None or high is None else f", {format_level(self.diagnosis.level)} {low:.2f} to {high:.2f}"
        )
        return f"{verdict} (Krippendorff’s alpha {alpha:.2f}{interval})."

    @property
    def _accuracy(self) -> AccuracyEstimate:
        return self.diagnosis.assessment.accuracy

    def _describe_interval(self) -> str:
        """Return the interval of the expected accuracy."""
        accuracy = self._accuracy
        return f"{format_level(accuracy.level)} {format_percent(accuracy.low)} to {format_percent(accuracy.high)}"

    def _describe_gold_interval(self, n_correct: int, n_gold: int) -> str:
        """Return the interval of the accuracy on gold tasks."""
        low, high = share_interval(n_correct, n_gold, level=self.diagnosis.level)
        return f"{format_level(self.diagnosis.level)} {format_percent(float(low))} to {format_percent(float(high))}"

    def _describe_accuracy(self) -> str:
        """Return the expected accuracy with its interval, and the result on gold tasks."""
        expected = f"{format_percent(self._accuracy.accuracy)} of the labels are expected to be right ({self._describe_interval()})"
        if self._is_complete:
            expected = (
                "Every task is gold, so the labels are the truth that was given, and their accuracy is not estimated"
            )
        correct = self._count_correct()
        if correct is None:
            return f"{expected}. Without gold labels the interval is wide: errors that all workers share cannot be seen in votes."
        n_correct, n_gold = correct
        share, verb = format_percent(n_correct / n_gold), "is" if n_correct == 1 else "are"
        interval = self._describe_gold_interval(n_correct, n_gold)
        how = ", inferred without their own truth," if self.gold is not None and self.gold.is_fitted else ""
        return (
            f"{expected}. On {count_noun(n_gold, 'gold task')}, {count_noun(n_correct, 'label')}{how} {verb} right ({share}; "
            f"{interval})."
        )

    def _describe_kinds(self) -> str:
        figures = self._figures
        kinds = [f"{n:,} {'is' if n == 1 else 'are'} {kind}" for kind, n in figures["tasks_by_kind"].items() if n]
        return f"Of the tasks, {join_words(kinds)}."

    def _describe_workers(self) -> str:
        figures = self._figures
        n_flagged, n_few = figures["flagged_workers"], figures["workers_with_fewer_than_10_votes"]
        whose = "the accuracy and flags of this one" if n_few == 1 else "their accuracies and flags"
        rest = f" {count_noun(n_few, 'worker')} gave fewer than 10 votes, so {whose} are uncertain." if n_few else ""
        if not n_flagged:
            checks = "spammers, adversaries, copiers" + (" and drift" if self.diagnosis.crowd.has_times else "")
            return f"No worker is flagged (checks: {checks}).{rest}"
        share = format_percent(self._flagged_workers["n_votes"].sum() / max(self.diagnosis.crowd.n_votes, 1))
        verb = "is" if n_flagged == 1 else "are"
        return f"{count_noun(n_flagged, 'worker')} {verb} flagged; {share} of all votes come from them.{rest}"

    def _describe_confusion(self) -> str:
        if not self.confusions:
            return ""
        first = self.confusions[0]
        label, true = quote_name(first["label"]), quote_name(first["true"])
        rate = format_percent(first["rate"])
        return f"The most frequent confusion is {label} where {true} is true: {rate} of the votes on {true}."

    # ------------------------------------------------------------------ charts

    def build_histograms(self) -> list[dict[str, Any]]:
        """Return the histograms of votes per worker, votes per task and votes over time.

        Returns
        -------
        list of dict
            Title, unit and bars of each histogram.
        """
        crowd = self.diagnosis.crowd
        chart = timeline.build_chart(self.diagnosis)
        return [
            {"title": "Workers by number of votes", "unit": "workers", "bars": count_in_bins(crowd.votes_per_worker)},
            {"title": "Tasks by number of votes", "unit": "tasks", "bars": count_in_bins(crowd.votes_per_task)},
            *([] if chart is None else [chart]),
        ]

    # ------------------------------------------------------------------ next steps

    def recommend_steps(self) -> list[dict[str, str]]:
        """Return the recommended next steps, the most useful first.

        Returns
        -------
        list of dict
            Action and reason of each step.
        """
        steps = [
            self._recommend_method(),
            self._recommend_votes(),
            self._recommend_task_review(),
            self._recommend_worker_review(),
            self._recommend_drift_review(),
            self._recommend_guideline(),
            self._recommend_gold(),
        ]
        return [step for step in steps if step is not None]

    def _recommend_method(self) -> dict[str, str] | None:
        if models_machines(self.diagnosis.model):
            has_groups = get_worker_groups(self.diagnosis.model) is not None
            reason = (
                "Members of a group make the same errors, and no other method accounts for groups."
                if has_groups
                else "Machines voted, and no other method rates them by the votes of people."
            )
            return {
                "action": "Use the labels of panel.", "reason": f"{reason} Command: wisecrowd aggregate … -m panel"
            }  # fmt: skip
        assessment = self.diagnosis.assessment
        best = assessment.recommended_method if self.comparison is None else self.comparison.best
        command = kind_of(find(best))  # aggregators and learners have different commands
        check = assessment.method_check
        reason = f"The labels on this page are those of {self.diagnosis.model.name}."
        if check is not None and check.is_rejected and best == check.recommended:
            reason = f"Held-out votes reject {check.method}."
        elif self.comparison is not None and best in self.comparison.tied_methods:
            reason = f"No method predicts held-out votes significantly better. {reason}"
        elif self.comparison is not None:
            reason = f"On public crowds it is the most accurate method on average. {reason}"
        return {"action": f"Use the labels of {best}.", "reason": f"{reason} Command: wisecrowd {command} … -m {best}"}

    def _recommend_votes(self) -> dict[str, str] | None:
        counts = self._figures["tasks_by_kind"]
        n = counts["undecided"] + counts["unlabelled"]
        if not n:
            return None
        names = self._name_tasks(["undecided", "unlabelled"], "confidence")
        return {
            "action": f"Get another vote on {count_noun(n, 'task')}.",
            "reason": f"The votes on {names} do not determine a label."
            if n == 1
            else f"Their votes do not determine a label. The least certain tasks are {names}.",
        }

    def _recommend_task_review(self) -> dict[str, str] | None:
        n = self._figures["tasks_by_kind"]["ambiguous"]
        if not n:
            return None
        some, pronoun = "some of " if n > REVIEWABLE_TASKS else "", "it" if n == 1 else "them"
        return {
            "action": f"Review {some}{count_noun(n, 'ambiguous task')} yourself before you buy more votes on {pronoun}.",
            "reason": f"Good workers disagree on {pronoun}, so the task or the guideline is unclear. Start with "
            f"{self._name_tasks(['ambiguous'], 'misfit')}.",
        }

    def _name_tasks(self, kinds: list[str], column: str) -> str:
        """Return the names of the tasks of some kinds with the smallest values in a column."""
        tasks = self.diagnosis.tasks
        first = tasks[tasks["kind"].isin(kinds)].nsmallest(MAX_NAMED, column)
        return join_words([quote_name(task) for task in first.index])

    def _recommend_worker_review(self) -> dict[str, str] | None:
        flagged = self._flagged_workers
        flagged = flagged[flagged["flags"] != "drifts"]
        if flagged.empty:
            return None
        names = join_words([quote_name(worker) for worker in flagged.index[:MAX_NAMED]])
        share = format_percent(flagged["n_votes"].sum() / self.diagnosis.crowd.n_votes)
        origin = names if len(flagged) <= MAX_NAMED else f"them, most from {names}"
        reason = (
            f"{share} of all votes come from {origin}. The table of workers gives the reasons. The model gives "
            "careless votes little weight, but counts copied votes as independent."
        )
        if get_worker_groups(self.diagnosis.model) is None and flagged["flags"].str.contains("copies").any():
            reason += " If some of them are models of one family, declare the groups with --members."
        is_model = (
            (flagged["kind"] == "machine").to_numpy() if "kind" in flagged else np.zeros(len(flagged), dtype=bool)
        )
        n_models = int(is_model.sum())
        n_people = len(flagged) - n_models
        actions = []
        if n_people:
            pronoun = "this one" if n_people == 1 else "them"
            actions.append(f"Talk to {count_noun(n_people, 'worker')}, or stop inviting {pronoun}.")
        if n_models:
            pronoun = "its" if n_models == 1 else "their"
            actions.append(f"Check the instructions of {count_noun(n_models, 'model')}, or leave out {pronoun} votes.")
        return {"action": " ".join(actions), "reason": reason}

    def _recommend_drift_review(self) -> dict[str, str] | None:
        flagged = self._flagged_workers
        changed = flagged[["drifts" in flags.split(", ") for flags in flagged["flags"]]]
        if changed.empty:
            return None
        names = join_words([quote_name(worker) for worker in changed.index[:MAX_NAMED]])
        return {
            "action": f"Check whether {count_noun(len(changed), 'worker')} changed, or the tasks that they got.",
            "reason": f"Their accuracy changed over time: {names}. The table of workers shows when. Click on a worker to see the "
            "accuracy over time.",
        }

    def _recommend_guideline(self) -> dict[str, str] | None:
        """Recommend a clearer guideline for the classes that workers without flags confuse; it does not help spammers."""
        workers, classes = self.diagnosis.worker_diagnosis, self.diagnosis.crowd.classes
        assert classes is not None
        pairs = self.diagnosis.crowd.pairs
        is_trusted = (self.diagnosis.workers["flags"] == "").to_numpy()[pairs.worker]
        n_votes = np.zeros((len(classes), len(classes)))  # [label, true]
        np.add.at(n_votes, pairs.label[is_trusted], workers.tally[is_trusted])
        share = n_votes / np.maximum(n_votes.sum(axis=0), 1e-12)
        np.fill_diagonal(n_votes, 0.0)
        label, true = divmod(int(n_votes.argmax()), len(classes))
        n = round(float(n_votes[label, true]))
        if n < 1 or share[label, true] < MIN_CONFUSION_SHARE:
            return None
        true_name, label_name = quote_name(classes[true]), quote_name(classes[label])
        reason = (
            f"About {count_noun(n, 'vote')} of unflagged workers say {label_name} where {true_name} is more probable."
        )
        names = display_name(classes[true], MAX_CLASS_NAME), display_name(classes[label], MAX_CLASS_NAME)
        for confusion in self.confusions:  # the count of the table of confusions, which is that of all workers
            if (confusion["true"], confusion["label"]) == names:
                all_votes = count_noun(confusion["expected_votes"], "vote")
                reason = f"About {all_votes} say {label_name} where {true_name} is true"
                reason += ", and not only of flagged workers." if is_trusted.sum() < len(is_trusted) else "."
        return {"action": f"Explain in the guideline how {true_name} differs from {label_name}.", "reason": reason}

    def _recommend_gold(self) -> dict[str, str] | None:
        if self.gold is not None:
            return None
        n = min(RECOMMENDED_GOLD_TASKS, self.diagnosis.crowd.n_tasks)
        if n == self.diagnosis.crowd.n_tasks:
            return {
                "action": f"Let an expert label {'the task' if n == 1 else f'all {n:,} tasks'}, and build this report with them.",
                "reason": "Without gold labels, all figures rest on the votes alone. The tasks are so few that an expert can "
                "label all of them, which settles every label.",
            }
        half_width = NORMAL_QUANTILE * float(np.sqrt(0.25 / n))
        return {
            "action": f"Let an expert label {count_noun(n, 'task')}, and build this report with them.",
            "reason": "Without gold labels, all figures rest on the votes alone. With them, the accuracy is known to about "
            f"±{half_width:.0%} or better. Command: wisecrowd audit … --size {n}",
        }


def count_in_bins(counts: NDArray[Any]) -> list[dict[str, Any]]:
    """Return a histogram of counts; small counts have their own bins, larger ones widening bins.

    Parameters
    ----------
    counts : ndarray of int
        Counts.

    Returns
    -------
    list of dict
        Label, number and relative height of each bar, without empty bars at both ends.

    Examples
    --------
    >>> [(bar["label"], bar["n"]) for bar in count_in_bins(np.array([1, 3, 3]))]
    [('1', 1), ('2', 0), ('3', 2)]
    """
    largest = int(counts.max())
    low = np.arange(largest + 1) if largest <= MAX_SINGLE_BINS else np.array(COUNT_BINS)
    high = np.append(low[1:] - 1, np.iinfo(np.int64).max)
    n, _ = np.histogram(counts, np.append(low, np.iinfo(np.int64).max))
    filled = np.flatnonzero(n)
    tallest = max(int(n.max()), 1)
    return [
        {
            "label": _format_bin(int(low[position]), int(high[position]), largest),
            "n": int(n[position]),
            "share": float(n[position] / tallest),
        }
        for position in range(filled[0], filled[-1] + 1)
    ]


def _format_bin(low: int, high: int, largest: int) -> str:
    return f"{low:,}" if low in (high, largest) else f"{low:,} to {min(high, largest):,}"
