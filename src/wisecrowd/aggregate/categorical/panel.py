"""Panels of people and machine judges: workers in groups that share their errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import xlog1py, xlogy

from wisecrowd.aggregate.categorical import _panel_judges as judging
from wisecrowd.aggregate.categorical._panel_asking import Expected
from wisecrowd.aggregate.categorical._panel_members import (
    MACHINE,
    PERSON,
    by_worker,
    groups_of,
    kinds_of,
    label_probs_of_pairs,
)
from wisecrowd.aggregate.categorical._panel_notes import warned
from wisecrowd.aggregate.categorical._panel_opinions import OpinionEngine, Tables, evidence_of_votes, shares_by_group
from wisecrowd.aggregate.categorical.dawid_skene import DawidSkene
from wisecrowd.base.fields import method_class, parameter
from wisecrowd.data.crowd import Crowd, Pairs
from wisecrowd.em import incremental as online
from wisecrowd.em.initialization import class_prior
from wisecrowd.em.loop import Statistics
from wisecrowd.em.priors import pooled, smoothed, smoothed_log_prior
from wisecrowd.engines.base import Chunk, Engine
from wisecrowd.errors import UsageError
from wisecrowd.utils.binning import check_bins

#: How much of what members say is taken for their group's opinion when EM starts, in turn. From the first it finds groups that
#: speak with one voice, which look like so many independent witnesses from the second; from the second, groups whose members
#: have little in common, whose opinions can end on the wrong side of the truth from the first. The objective tells which is right.
STARTS = (0.9, 0.1)


@method_class
class Panel(DawidSkene):
    """People and machine judges together: the members of a group share errors, and together do not count as so many witnesses.

    Ten prompts of one model, or ten people whom one vendor trained with one guideline, err on the same tasks. Nine judges of
    seven model families were found to be worth two independent votes (Kohli 2026), and a method that takes workers to err
    independently believes such a group against everybody else. Here a group g has an opinion o_ig on each task, and a
    member r repeats it with the probability a_r, and otherwise answers by a confusion matrix of its own:

        z_i ~ ρ,   o_ig | z_i = k ~ σ_g[k, ·],   y_ir | z_i = k, o_ig = m  ~  a_r [y = m] + (1 − a_r) π_r[k, ·]

    EM is exact, for the opinions are summed over in closed form (q_ig is their posterior):

        P(votes of g on i | k) = Σ_m σ_g[k, m] Π_r (a_r [y_ir = m] + (1 − a_r) π_r[k, y_ir])
        a_r = expected share of r's votes that repeat the opinion,   σ_g[k, m] ∝ Σ_i q_i(k) q_ig(m | k) + s_km
        π_r[k, l] ∝ r's other votes for l where k is true + s_kl

    with pseudo-votes s_kl = smoothing + diagonal·[k = l] as in `DawidSkene`, and ``sharing`` of them for and against repeating.
    a_r = 0 is Dawid and Skene's model; a_r = 1 a copy, and any number of copies count as one vote. A pass costs votes x classes.
    Workers without a group are on their own, and without ``groups`` this *is* `DawidSkene`. Two starts are made (``restarts_``),
    with groups of one voice and of independent members, and the end with the higher objective is kept.

    People anchor the rest in two ways: gold (``fit(crowd, truth=…)``) says what everybody is worth on the tasks that have it; and
    with ``kinds``, ``trust`` further pseudo-votes say that a person is right rather than wrong.

    Choose it when some votes come from machines, or from people who learnt from each other, and it is known who belongs
    together. On simulated panels of ten judges and three people with 1,000 tasks (``wisecrowd bench run panels``) it is within half
    a point of an oracle that knows all parameters, where `DawidSkene` is up to thirty behind. Groups that are wrong do little
    harm: members who turn out to err independently get a small a_r. Where members only pass on an opinion, each translating it
    in a way of its own (one always a grade lower), a_r does not say it all, and the panel can fall behind people alone. `EBCC`
    (Li et al. 2019) ties all workers together through the task; it needs no groups, but many random starts.

    After a fit with groups: ``opinions_`` and ``opinion_confusion_`` (σ) say what each group thinks, how often it is right and what
    its votes on a task are ``worth`` together, in votes of an average person. ``judges_`` has for each machine ``n_votes`` and
    ``accuracy``; ``agreement``, how probable what it says is by the votes of people alone; ``shared``, the share of its votes
    that repeat its ``group``; ``alone``, what one of them tells of the truth, in votes of a person; and ``worth``, the same
    where what a group tells together is divided among its members. ``judge_confusion_`` counts what machines say where people say
    a class, and `calibration` holds the scores that judges give against how often they are right.

    >>> from wisecrowd import DawidSkene, Panel
    >>> from wisecrowd.simulate import simulate_panel
    >>> made = simulate_panel(n_tasks=300, n_judges=10, n_people=3, n_classes=3, strength=0.9)
    >>> panel = Panel(groups=made.groups, kinds=made.kinds).fit(made.crowd)
    >>> alone = DawidSkene().fit(made.crowd)
    >>> bool((panel.labels_ == made.truth).mean() > (alone.labels_ == made.truth).mean() + 0.05)
    True
    >>> bool(panel.opinions_["worth"].iloc[0] < 2)  # ten judges, in votes of a person
    True
    """

    references: ClassVar[tuple[str, ...]] = ("dawid1979maximum", "kohli2026nine", "li2019exploiting")
    streams: ClassVar[bool] = False

    groups: Any = parameter(default=None, help="group of each worker who has one: a dict or Series by worker")
    kinds: Any = parameter(default=None, help="'person' or 'machine' by worker: a dict or Series")
    sharing: float = parameter(default=1.0, help="pseudo-votes for repeating a group's opinion, and as many against it")
    trust: float = parameter(default=5.0, help="further pseudo-votes for being right, of workers who are persons")

    def __post_init__(self) -> None:
        self.groups, self.kinds = by_worker(self.groups, "groups"), by_worker(self.kinds, "kinds")

    def set_params(self, **params: Any) -> Self:
        """Change parameters by name; a misspelt one is an error."""
        super().set_params(**params)
        self.__post_init__()
        return self

    def _check(self) -> None:
        super()._check()
        if self.sharing <= 0 or self.trust < 0:
            raise UsageError(f"sharing must be positive and trust not negative; got {self.sharing} and {self.trust}")

    def _fit(self, crowd: Any, gold: Any, *, X: Any, start: Any) -> None:
        for name in [
            "judges",
            "judge_confusion",
            "opinions",
            "opinion_confusion",
            "own_tally",
            "shared",
        ]:  # of a fit before
            vars(self).pop(f"{name}_", None)
        self._meet(crowd)
        self.notes_ = warned(crowd, kinds_of(self.kinds, crowd).to_numpy(), self.group_, gold=gold is not None)
        super()._fit(crowd, gold, X=X, start=start)

    def _meet(self, crowd: Crowd) -> None:
        """Find out who of a crowd is in which group, and who is a person."""
        self.group_, self.group_names_ = groups_of(self.groups, crowd)
        self.is_person_ = kinds_of(self.kinds, crowd).eq(PERSON).to_numpy(dtype=bool)

    @property
    def _has_groups(self) -> bool:
        return len(self.group_names_) > 0

    def _engine(self, crowd: Any, truth: Any) -> Engine:
        if not self._has_groups:
            return super()._engine(crowd, truth)
        if self.engine != "local":
            raise UsageError(
                f"a panel with groups is fitted in this process; leave engine at 'local'; got {self.engine!r}"
            )
        return OpinionEngine(crowd, truth, self.n_jobs, group=self.group_)

    # ------------------------------------------------------------------ the model

    def _by_trust(self, pairs: Pairs) -> Iterator[tuple[NDArray[np.intp], Pairs, float]]:
        """Pairs of persons and of others, and the pseudo-votes for being right of each."""
        trusted = self.is_person_[pairs.worker]
        for chosen, diagonal in ((~trusted, self.diagonal), (trusted, self.diagonal + self.trust)):
            rows = np.flatnonzero(chosen)
            if len(rows) == len(pairs):
                yield rows, pairs, diagonal
            elif len(rows):
                yield rows, Pairs(pairs.worker[rows], pairs.label[rows], pairs.of_vote[:0], pairs.n_workers), diagonal

    def _own(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        """π of what each pair said."""
        label_probs = np.empty_like(tally)
        for rows, part, diagonal in self._by_trust(pairs):
            label_probs[rows] = smoothed(tally[rows], part, self.smoothing, diagonal)
        return label_probs

    def _repeats(self, sums: Tables, pairs: Pairs) -> NDArray[np.float64]:
        """a, by worker."""
        shared, own = (pairs.by_worker(part.sum(axis=1)) for part in (sums.alike, sums.own))
        return np.where(self.group_ >= 0, (shared + self.sharing) / (shared + own + 2 * self.sharing), 0.0)

    def _opinion(self, sums: Tables) -> NDArray[np.float64]:
        """σ, (groups, opinions, classes)."""
        n_classes = sums.opinion.shape[2]
        votes = sums.opinion + self.smoothing + self.diagonal * np.eye(n_classes)
        total = votes.sum(axis=1, keepdims=True)
        return np.divide(votes, total, out=np.full_like(votes, 1 / n_classes), where=total > 0)

    def _label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        if not self._has_groups:
            return self._own(tally, pairs)
        sums = Tables.of(tally, len(pairs))
        a = self._repeats(sums, pairs)[pairs.worker, None]
        own = (1 - a) * self._own(sums.own, pairs)
        return Tables(own, a + own, self._opinion(sums)).packed()

    def _log_prior(self, tally: NDArray[Any], pairs: Pairs) -> float:
        sums = Tables.of(tally, len(pairs)) if self._has_groups else None
        own = tally if sums is None else sums.own
        found = sum(
            smoothed_log_prior(own[rows], part, self.smoothing, diagonal)
            for rows, part, diagonal in self._by_trust(pairs)
        )
        if sums is None:
            return found
        a = self._repeats(sums, pairs)[self.group_ >= 0]
        pseudo_votes = self.smoothing + self.diagonal * np.eye(sums.opinion.shape[2])
        repeating = (xlogy(self.sharing, a) + xlog1py(self.sharing, -a)).sum()
        return float(found + repeating + xlogy(pseudo_votes, self._opinion(sums)).sum())

    def _starts(self, engine: Engine, start: Any, dtype: type) -> Iterator[Statistics]:
        starts = super()._starts(engine, start, dtype)
        if not self._has_groups:
            yield from starts
            return
        pairs = engine.crowd.pairs
        group = self.group_[pairs.worker]
        members = np.flatnonzero(group >= 0)
        for classes, tally in starts:
            opinion = np.zeros((len(self.group_names_), tally.shape[1], tally.shape[1]))
            np.add.at(opinion, (group[members], pairs.label[members]), tally[members])
            for share in STARTS:
                alike = np.where(group[:, None] >= 0, share * tally, 0.0)
                yield Statistics(classes, Tables(tally - alike, alike, opinion).packed())

    def _start_posterior(self, chunk: Chunk, start: Any, dtype: type, attempt: int) -> NDArray[Any]:
        if start is None and self._has_groups and not self._is_spectral(start):
            start = shares_by_group(chunk.crowd, self.group_)
        return super()._start_posterior(chunk, start, dtype, attempt)

    # ------------------------------------------------------------------ what was learnt

    def _answer(self, chunk: Chunk, prior: NDArray[np.float64], label_probs: NDArray[Any]) -> NDArray[Any]:
        if not self._has_groups:
            return super()._answer(chunk, prior, label_probs)
        return OpinionEngine(chunk.crowd, chunk.gold, group=self.group_).posterior(prior, label_probs)

    def _set_fitted(self, crowd: Any, posterior: Any, tally: NDArray[Any] | None = None) -> None:
        if not self._has_groups:
            super()._set_fitted(crowd, posterior, tally)
        else:
            assert tally is not None
            sums = Tables.of(tally, len(crowd.pairs))
            super()._set_fitted(crowd, posterior, sums.own + sums.alike)
            self.own_tally_, self.shared_ = sums.own.copy(), self._repeats(sums, crowd.pairs)
            self.opinion_confusion_ = np.ascontiguousarray(self._opinion(sums).transpose(0, 2, 1))
        if self.groups is not None or self.kinds is not None:
            self._report(crowd)

    def _report(self, crowd: Crowd) -> None:
        """What there is to say of judges and groups; it needs the votes, which a fitted method does not keep."""
        is_machine, is_person = kinds_of(self.kinds, crowd).eq(MACHINE).to_numpy(dtype=bool), self.is_person_
        if self.kinds is None:  # nobody says: people are those who are in no group
            is_machine = label_probs_of_pairs(self.groups, "groups", crowd).notna().to_numpy(dtype=bool)
            is_person = ~is_machine
        told = judging.Told(
            crowd, self.posterior_, self.prior_, self._reported_label_probs(self.tally_, crowd.pairs), is_person
        )
        opinions = None
        if self._has_groups:
            label_probs = self._tables(self.pair_worker_, self.pair_label_)
            opinions = self.opinions_ = judging.opinions(told, self.group_, self.group_names_, label_probs)
        self.judges_, self.judge_confusion_ = judging.judges(
            told, is_machine, self._worker_columns(), self._shared_votes(), self.group_, opinions
        )

    def _shared_votes(self) -> NDArray[np.float64]:
        """The expected share of each worker's votes that repeat the opinion of the group."""
        total = self._pairs.by_worker(self.tally_.sum(axis=1))
        own = self._pairs.by_worker(self.own_tally_.sum(axis=1)) if self._has_groups else total
        return np.divide(total - own, total, out=np.zeros_like(total), where=total > 0)

    def _tables(self, worker: NDArray[np.int32], label: NDArray[np.int32]) -> Tables:
        """The parameters, for workers (by position, −1 for strangers) and what they say, also what they never said before."""
        n_classes = len(self.classes_)
        seen, wanted = (
            who.astype(np.int64) * n_classes + what
            for who, what in ((self.pair_worker_, self.pair_label_), (worker, label))
        )
        codes = np.union1d(seen, wanted[worker >= 0])
        tally = np.zeros((len(codes), n_classes))
        tally[np.searchsorted(codes, seen)] = self.own_tally_
        who, what = (part.astype(np.int32) for part in np.divmod(codes, n_classes))
        own = self._own(tally, Pairs(who, what, np.empty(0, dtype=np.int32), self._n_workers))
        own *= 1 - self.shared_[who, None]
        found = pooled(self.tally_, self._pairs, self.smoothing, self.diagonal).T[label]
        found[worker >= 0] = own[np.searchsorted(codes, wanted[worker >= 0])]
        a = np.where(worker >= 0, self.shared_[worker], 0.0)
        return Tables(found, found + a[:, None], np.ascontiguousarray(self.opinion_confusion_.transpose(0, 2, 1)))

    def _worker_columns(self) -> dict[str, NDArray[Any]]:
        if not self._has_groups:
            return super()._worker_columns()
        names = np.array([*self.group_names_, ""], dtype=object)
        return super()._worker_columns() | {"group": names[self.group_], "shared": self._shared_votes()}

    def _reported_label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        """What a worker says when a class is true, whether for itself or for the group."""
        return smoothed(tally, pairs, self.smoothing, self.diagonal)

    def calibration(self, scores: Any, *, truth: Any = None, n_bins: int = 10) -> pd.DataFrame:
        """How far the scores of judges are from how often they are right, by judge.

        ``scores`` is a table of task, worker, label and score, the probability with which the judge held the label to be right.
        It is compared with the panel's posterior, to which the judge has contributed, or with ``truth``, which is better. Columns:
        ``n_scores``, mean ``score``, ``accuracy``, ``calibration_error`` over bins of equal width, and ``brier``.

        >>> from wisecrowd.simulate import simulate_panel
        >>> made = simulate_panel(n_tasks=200)
        >>> scores = made.crowd.to_frame().query("worker == 'judge0'").assign(score=0.99)
        >>> found = Panel(groups=made.groups).fit(made.crowd).calibration(scores, truth=made.truth)
        >>> bool(found.loc["judge0", "calibration_error"] > 0.2)  # it is right less often than it says
        True
        """
        check_bins(n_bins, "width")
        belief = self.proba_ if truth is None else judging.certain(truth, self.classes_)
        return judging.calibration(pd.DataFrame(scores), belief, n_bins)

    def _predictive_label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        if self._has_groups:
            raise UsageError(
                "the votes of a group depend on each other, and this looks at one vote at a time; use dawid-skene for it, "
                "or a panel without groups"
            )
        return self._reported_label_probs(tally, pairs)

    def predict_proba(self, crowd: Any) -> pd.DataFrame:
        """The posterior of tasks that may be new; a worker never seen before is taken for the average of the crowd."""
        self._check_fitted("posterior_")
        if not self._has_groups:
            return super().predict_proba(crowd)
        votes = online.in_classes_of(self, self._admit(crowd))
        assert votes.workers is not None
        assert self.worker_index_ is not None
        known = self.worker_index_.get_indexer(votes.workers).astype(np.int32)
        group = np.where(known >= 0, self.group_[known], -1).astype(np.int32)
        label_probs = self._tables(known[votes.pairs.worker], votes.pairs.label)
        posterior = OpinionEngine(votes, None, group=group).posterior(self.e_step_prior_, label_probs.packed())
        return pd.DataFrame(posterior, index=votes.tasks.rename("task"), columns=self.classes_.rename("class"))

    def posterior_by(
        self, crowd: Any, *, confusion: Any, shared: Any, opinion_confusion: Any, prior: Any = "uniform"
    ) -> pd.DataFrame:
        """The posterior of every task by parameters that are known, as those of a simulation: no fit is needed.

        ``confusion`` (workers, true, said) is how workers answer for themselves, ``shared`` how often each repeats the group,
        ``opinion_confusion`` (groups, true, opinion) how groups think, in the order of their names.

        >>> from wisecrowd.simulate import simulate_panel
        >>> made = simulate_panel(n_tasks=200)
        >>> known = {"confusion": made.confusion, "shared": made.shared, "opinion_confusion": made.opinion_confusion}
        >>> best = Panel(groups=made.groups).posterior_by(made.crowd, **known)
        >>> bool((best.idxmax(axis=1) == made.truth).mean() > 0.9)
        True
        """
        votes = self._admit(crowd)
        group, names = groups_of(self.groups, votes)
        worker, label, n_classes = votes.pairs.worker, votes.pairs.label, votes.n_classes
        given = [np.asarray(part, dtype=np.float64) for part in (confusion, shared, opinion_confusion)]
        square = (n_classes, n_classes)
        wanted = [(votes.n_workers, *square), (votes.n_workers,), (len(names), *square)]
        if [part.shape for part in given] != wanted:
            raise UsageError(
                f"confusion, shared and opinion_confusion must have the shapes {wanted}; got {[part.shape for part in given]}"
            )
        a = np.where(group >= 0, given[1], 0.0)[worker, None]
        own = (1 - a) * given[0][worker, :, label]
        label_probs = Tables(own, a + own, given[2].transpose(0, 2, 1)).packed()
        weights = class_prior(prior, votes.votes.sum(axis=0), votes.classes)
        posterior = OpinionEngine(votes, None, group=group).posterior(weights, label_probs)
        return pd.DataFrame(posterior, index=votes.tasks.rename("task"), columns=votes.classes.rename("class"))

    def expected_answers(self, crowd: Crowd) -> Expected:
        """What each worker would say of a task, given what their group has said of it in a crowd: for who plans votes.

        >>> from wisecrowd.simulate import simulate_panel
        >>> made = simulate_panel(n_tasks=200)
        >>> told = Panel(groups=made.groups).fit(made.crowd).expected_answers(made.crowd)
        >>> told.matrices(0, np.arange(13)).shape
        (13, 3, 3)
        """
        if self.worker_index_ is None or not self.worker_index_.equals(crowd.workers):
            raise UsageError("give the crowd that the panel was fitted on")
        everybody = self._chosen(range(self._n_workers))
        n_classes = len(self.classes_)
        worker, label = np.repeat(everybody, n_classes), np.tile(np.arange(n_classes, dtype=np.int32), len(everybody))
        own = self._tables(worker, label).own.reshape(len(everybody), n_classes, n_classes).transpose(0, 2, 1)
        return Expected(crowd, self.group_, np.ascontiguousarray(own), self.shared_, self.opinion_confusion_)

    def evidence(self, crowd: Crowd) -> NDArray[np.float64]:
        """log P of each vote with all that its group says of the task, (votes, classes): what is no witness of that vote.

        >>> from wisecrowd.simulate import simulate_panel
        >>> made = simulate_panel(n_tasks=50)
        >>> Panel(groups=made.groups).fit(made.crowd).evidence(made.crowd).shape
        (650, 3)
        """
        if not (crowd.tasks.equals(self.task_index_) and crowd.pairs.n_workers == self._n_workers):
            raise UsageError("give the crowd that the panel was fitted on")
        return evidence_of_votes(crowd, self.group_, self._tables(crowd.pairs.worker, crowd.pairs.label))

    def restart_from(self, crowd: Crowd, posterior: NDArray[Any]) -> None:
        """Re-estimate everything from a posterior, as one M-step does."""
        self._meet(crowd)
        super().restart_from(crowd, posterior)

    def partial_fit(self, crowd: Any, *, truth: Any = None) -> Self:
        """Take in new votes, at the cost of one pass; with groups, fit again instead: ``fit(all_votes, start=panel)``."""
        if self.groups is not None:
            raise UsageError(
                "a panel with groups does not take in new votes one batch at a time; fit it to all of them, and start from "
                "what it knows: fit(all_votes, start=panel)"
            )
        return super().partial_fit(crowd, truth=truth)
