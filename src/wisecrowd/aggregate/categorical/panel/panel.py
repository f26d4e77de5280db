"""Panels of people and machine judges: workers in groups that share their errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import xlog1py, xlogy

from wisecrowd.aggregate.categorical._spectral_initialization import (
    INIT_HELP,
    compute_spectral_statistics,
    uses_spectral_start,
)
from wisecrowd.aggregate.categorical.panel._expected_answers import ExpectedAnswers
from wisecrowd.aggregate.categorical.panel._judges import (
    JudgeEvidence,
    encode_truth_as_posterior,
    summarize_calibration,
    summarize_judges,
    summarize_opinions,
)
from wisecrowd.aggregate.categorical.panel._member_checks import check_members
from wisecrowd.aggregate.categorical.panel._members import (
    MACHINE,
    PERSON,
    align_kinds,
    align_to_workers,
    encode_groups,
    normalize_mapping,
)
from wisecrowd.aggregate.categorical.panel._opinions import (
    OpinionEngine,
    OpinionTables,
    compute_group_vote_shares,
    compute_vote_log_probs,
)
from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.pairs import Pairs
from wisecrowd.data.types import AnyCrowd, CrowdLike, TruthLike
from wisecrowd.data.vocabulary import locate_ids
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.em.incremental import recode_classes, warn_misspelled_workers
from wisecrowd.em.initialization import make_class_prior
from wisecrowd.em.loop import Statistics
from wisecrowd.em.priors import compute_smoothing_log_prior, estimate_crowd_confusion, estimate_smoothed_probs
from wisecrowd.engines.base import Chunk, Engine
from wisecrowd.errors import UsageError
from wisecrowd.utils.binning import check_bins

#: Initial shares of members' votes that repeat the group's opinion. From the first, EM finds groups whose members agree,
#: which look like independent workers from the second. From the second, it finds groups whose members have little in
#: common, whose opinions can end up wrong from the first. The objective decides between them.
INITIAL_SHARED = (0.9, 0.1)

#: Fitted attributes that exist only for some panels, and that a new fit must not inherit.
OPTIONAL_ATTRIBUTES = ("judges_", "judge_confusion_", "opinions_", "opinion_confusion_", "own_tally_", "shared_")


@method_class
class Panel(ConfusionEM):
    """Panel of people and machine judges, in which the members of a group share errors.

    Ten prompts of one model, or ten people trained with one guideline, err on the same tasks, and a method that assumes
    independent errors trusts such a group too much. Here a group g has an opinion o_ig on each task, and a member r repeats
    it with probability a_r and otherwise answers by a confusion matrix of its own:

        z_i ~ ρ,   o_ig | z_i = k ~ σ_g[k, ·],   y_ir | z_i = k, o_ig = m  ~  a_r [y = m] + (1 − a_r) π_r[k, ·]

    EM is exact, since the opinions are summed over in closed form (q_ig is their posterior):

        P(votes of g on i | k) = Σ_m σ_g[k, m] Π_r (a_r [y_ir = m] + (1 − a_r) π_r[k, y_ir])
        a_r = expected share of r's votes that repeat the opinion,   σ_g[k, m] ∝ Σ_i q_i(k) q_ig(m | k) + s_km
        π_r[k, l] ∝ r's other votes for l where k is true + s_kl

    with pseudo-votes s_kl = smoothing + diagonal·[k = l] as in `DawidSkene`, and ``sharing`` pseudo-votes for and against
    repeating. a_r = 0 is Dawid and Skene's model; a_r = 1 is a copy, and any number of copies count as one vote. A pass
    costs votes x classes. Without ``groups`` the model is `DawidSkene`. With groups, EM starts twice (``restarts_``), from
    groups with one voice and from independent members, and the result with the higher objective is kept.

    Gold (``fit(crowd, truth=…)``) and people anchor the panel: with ``kinds``, people have ``trust`` further pseudo-votes
    for right labels.

    Choose it when some votes come from machines, or from people who learnt from each other, and their groups are known.
    Wrong groups do little harm: members with independent errors get a small a_r. Where members translate the opinion in
    their own ways, a_r does not describe them, and the panel can be worse than people alone. `EBCC` (Li et al. 2019)
    correlates all workers through the task; it needs no groups, but many random starts.

    Examples
    --------
    >>> from wisecrowd import DawidSkene, Panel
    >>> from wisecrowd.simulate import simulate_panel
    >>> simulation = simulate_panel(n_tasks=300, n_judges=10, n_people=3, n_classes=3, strength=0.9)
    >>> panel = Panel(groups=simulation.groups, kinds=simulation.kinds).fit(simulation.crowd)
    >>> independent = DawidSkene().fit(simulation.crowd)
    >>> bool((panel.labels_ == simulation.truth).mean() > (independent.labels_ == simulation.truth).mean() + 0.05)
    True
    >>> bool(panel.opinions_["worth"].iloc[0] < 2)  # ten judges, in votes of a person
    True
    """

    references: ClassVar[tuple[str, ...]] = ("dawid1979maximum", "kohli2026nine", "li2019exploiting")
    unused_labels_are_equal: ClassVar[bool] = True
    streams: ClassVar[bool] = False

    init: Literal["votes", "spectral"] = parameter(default="votes", help=INIT_HELP)
    groups: Any = parameter(default=None, help="Group of each worker who has one: a dict or Series by worker.")
    kinds: Any = parameter(default=None, help="Kind of each worker, 'person' or 'machine': a dict or Series by worker.")
    sharing: float = parameter(
        default=1.0, help="Number of pseudo-votes for repeating a group's opinion, and as many against it."
    )
    trust: float = parameter(default=5.0, help="Number of further pseudo-votes for right labels of people.")

    group_: NDArray[np.int32] = fitted(help="Group of each worker as a code, −1 without a group.", shape=("n_workers",))
    group_names_: list[str] = fitted(help="Names of the groups.")
    is_person_: NDArray[np.bool_] = fitted(help="Whether each worker is a person.", shape=("n_workers",))
    notes_: list[str] = fitted(help="Warnings about the members of the panel.")
    own_tally_: NDArray[np.float64] = fitted(
        help="Tally of independent votes; with groups only.", shape=("n_pairs", "n_classes"), finite=True
    )
    shared_: NDArray[np.float64] = fitted(
        help="Probability a_r that a worker repeats the group's opinion; with groups only.", shape=("n_workers",)
    )
    opinion_confusion_: NDArray[np.float64] = fitted(
        help="Confusion matrices σ of the groups, by group, true class and opinion; with groups only.",
        shape=("n_groups", "n_classes", "n_classes"),
    )
    opinions_: pd.DataFrame = fitted(
        help="By group: members, tasks, accuracy of the opinion, and worth of the votes on a task in votes of an average person."
    )
    judges_: pd.DataFrame = fitted(
        help="By machine: group, n_votes, accuracy, agreement with people, share of votes that repeat the group's opinion, "
        "information of one vote alone, and worth if the information of a group is divided among its members."
    )
    judge_confusion_: NDArray[np.float64] = fitted(
        help="Counts of the labels of machines by the class inferred from people, by machine, class and label.",
        shape=("n_machines", "n_classes", "n_classes"),
    )

    def check_restored(self) -> None:
        """Raise ValueError if groups that were read from files are not those of the workers."""
        super().check_restored()
        n_groups = len(self.group_names_)
        if self.group_.size and not (self.group_.min() >= -1 and self.group_.max() < n_groups):
            raise ValueError(f"group_ must hold codes in -1…{n_groups - 1}")
        opinions = vars(self).get("opinion_confusion_")
        if opinions is not None and len(opinions) != n_groups:
            raise ValueError(f"opinion_confusion_ must have one matrix per group: {n_groups}; got {len(opinions)}")

    def __post_init__(self) -> None:
        self.groups, self.kinds = normalize_mapping(self.groups, "groups"), normalize_mapping(self.kinds, "kinds")

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name.

        Parameters
        ----------
        **params : object
            Values by the name of the parameter.

        Returns
        -------
        Panel
            The method itself.
        """
        super().set_params(**params)
        self.__post_init__()
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.sharing <= 0 or self.trust < 0:
            raise UsageError(f"sharing must be positive and trust not negative; got {self.sharing} and {self.trust}")

    def _set_hyperparameters(self, crowd: Crowd) -> None:
        self.group_, self.group_names_ = encode_groups(self.groups, crowd)
        self.is_person_ = align_kinds(self.kinds, crowd).eq(PERSON).to_numpy(dtype=bool)

    def _count_matrices(self, votes: AnyCrowd) -> int:
        return 1 if self.groups is None else max(1, pd.Series(self.groups, dtype=object).nunique())

    def _start_fit(self, votes: AnyCrowd) -> None:
        super()._start_fit(votes)
        for name in OPTIONAL_ATTRIBUTES:
            vars(self).pop(name, None)

    def _fit(self, crowd: Any, gold: Any, *, X: Any, start: Any) -> None:
        group, _ = encode_groups(self.groups, crowd)
        notes = check_members(crowd, align_kinds(self.kinds, crowd).to_numpy(), group, gold=gold is not None)
        super()._fit(crowd, gold, X=X, start=start)
        self.notes_ = notes
        self._set_summaries(crowd)

    @property
    def _has_groups(self) -> bool:
        return len(self.group_names_) > 0

    def _make_engine(self, crowd: Any, gold: Any) -> Engine:
        if not self._has_groups:
            return super()._make_engine(crowd, gold)
        if self.engine != "local":
            raise UsageError(f"engine must be 'local' for a panel with groups; got {self.engine!r}")
        return OpinionEngine(crowd, gold, self.n_jobs, group=self.group_)

    # ------------------------------------------------------------------ the model

    def _split_by_trust(self, pairs: Pairs) -> Iterator[tuple[NDArray[np.intp], Pairs, float]]:
        """Yield the pairs of machines and of people, with the pseudo-votes on the diagonal of each."""
        is_person = self.is_person_[pairs.worker]
        for selection, diagonal in ((~is_person, self.diagonal), (is_person, self.diagonal + self.trust)):
            rows = np.flatnonzero(selection)
            if len(rows) == len(pairs):
                yield rows, pairs, diagonal
            elif len(rows):
                part = Pairs(pairs.worker[rows], pairs.label[rows], pairs.vote_pairs[:0], pairs.n_workers)
                yield rows, part, diagonal

    def _estimate_own_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        """Return π of each pair."""
        label_probs = np.empty_like(tally)
        for rows, part, diagonal in self._split_by_trust(pairs):
            label_probs[rows] = estimate_smoothed_probs(tally[rows], part, self.smoothing, diagonal)
        return label_probs

    def _estimate_shared(self, sums: OpinionTables, pairs: Pairs) -> NDArray[np.float64]:
        """Return a of each worker."""
        repeated, own = (pairs.sum_by_worker(part.sum(axis=1)) for part in (sums.repeated, sums.own))
        share = (repeated + self.sharing) / (repeated + own + 2 * self.sharing)
        return np.where(self.group_ >= 0, share, 0.0)

    def _estimate_opinion(self, sums: OpinionTables) -> NDArray[np.float64]:
        """Return σ, (n_groups, n_opinions, n_classes)."""
        n_classes = sums.opinion.shape[2]
        votes = sums.opinion + self.smoothing + self.diagonal * np.eye(n_classes)
        total = votes.sum(axis=1, keepdims=True)
        return np.divide(votes, total, out=np.full_like(votes, 1 / n_classes), where=total > 0)

    def _label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        if not self._has_groups:
            return self._estimate_own_probs(tally, pairs)
        sums = OpinionTables.unpack(tally, len(pairs))
        shared = self._estimate_shared(sums, pairs)[pairs.worker, None]
        own = (1 - shared) * self._estimate_own_probs(sums.own, pairs)
        return OpinionTables(own, shared + own, self._estimate_opinion(sums)).pack()

    def _log_prior(self, tally: NDArray[Any], pairs: Pairs) -> float:
        sums = OpinionTables.unpack(tally, len(pairs)) if self._has_groups else None
        own = tally if sums is None else sums.own
        log_prior = sum(
            compute_smoothing_log_prior(own[rows], part, self.smoothing, diagonal)
            for rows, part, diagonal in self._split_by_trust(pairs)
        )
        if sums is None:
            return log_prior
        shared = self._estimate_shared(sums, pairs)[self.group_ >= 0]
        pseudo_votes = self.smoothing + self.diagonal * np.eye(sums.opinion.shape[2])
        shared_log_prior = (xlogy(self.sharing, shared) + xlog1py(self.sharing, -shared)).sum()
        return float(log_prior + shared_log_prior + xlogy(pseudo_votes, self._estimate_opinion(sums)).sum())

    def _initialize(self, engine: Engine, start: Any, dtype: type) -> Iterator[Statistics]:
        if uses_spectral_start(self.init, start):
            starts = iter([compute_spectral_statistics(engine, dtype, self.random_state, "confusion")])
        else:
            starts = super()._initialize(engine, start, dtype)
        if not self._has_groups:
            yield from starts
            return
        pairs = engine.crowd.pairs
        group = self.group_[pairs.worker]
        members = np.flatnonzero(group >= 0)
        for class_counts, tally in starts:
            opinion = np.zeros((len(self.group_names_), tally.shape[1], tally.shape[1]))
            np.add.at(opinion, (group[members], pairs.label[members]), tally[members])
            for share in INITIAL_SHARED:
                repeated = np.where(group[:, None] >= 0, share * tally, 0.0)
                yield Statistics(class_counts, OpinionTables(tally - repeated, repeated, opinion).pack())

    def _initial_posterior(self, chunk: Chunk, start: Any, dtype: type, attempt: int) -> NDArray[Any]:
        if start is None and self._has_groups:
            start = compute_group_vote_shares(chunk.crowd, self.group_)
        return super()._initial_posterior(chunk, start, dtype, attempt)

    # ------------------------------------------------------------------ results

    def _compute_chunk_posterior(
        self, chunk: Chunk, prior: NDArray[np.float64], label_probs: NDArray[Any]
    ) -> NDArray[Any]:
        if not self._has_groups:
            return super()._compute_chunk_posterior(chunk, prior, label_probs)
        return OpinionEngine(chunk.crowd, chunk.gold, group=self.group_).compute_posterior(prior, label_probs)

    def _set_fitted(self, crowd: Any, posterior: Any, tally: NDArray[Any] | None = None) -> None:
        if not self._has_groups:
            super()._set_fitted(crowd, posterior, tally)
            return
        assert tally is not None
        sums = OpinionTables.unpack(tally, len(crowd.pairs))
        super()._set_fitted(crowd, posterior, sums.own + sums.repeated)
        self.own_tally_, self.shared_ = sums.own.copy(), self._estimate_shared(sums, crowd.pairs)
        self.opinion_confusion_ = np.ascontiguousarray(self._estimate_opinion(sums).transpose(0, 2, 1))

    def _set_summaries(self, crowd: Crowd) -> None:
        """Set the tables of judges and groups, which need the votes."""
        if self.groups is None and self.kinds is None:
            return
        is_machine, is_person = align_kinds(self.kinds, crowd).eq(MACHINE).to_numpy(dtype=bool), self.is_person_
        if self.kinds is None:  # without kinds, people are the workers without a group
            is_machine = align_to_workers(self.groups, "groups", crowd).notna().to_numpy(dtype=bool)
            is_person = ~is_machine
        label_probs = self.reported_label_probs(self.tally_, crowd.pairs)
        evidence = JudgeEvidence(crowd, self.posterior_, self.prior_, label_probs, is_person)
        opinions = None
        if self._has_groups:
            tables = self._make_tables(self.pair_worker_, self.pair_label_)
            opinions = self.opinions_ = summarize_opinions(evidence, self.group_, self.group_names_, tables)
        self.judges_, self.judge_confusion_ = summarize_judges(
            evidence, is_machine, self._worker_columns(), self._compute_shared_votes(), self.group_, opinions
        )

    def _compute_shared_votes(self) -> NDArray[np.float64]:
        """Return the expected share of each worker's votes that repeat the opinion of the group."""
        total = self._pairs.sum_by_worker(self.tally_.sum(axis=1))
        own = self._pairs.sum_by_worker(self.own_tally_.sum(axis=1)) if self._has_groups else total
        return np.divide(total - own, total, out=np.zeros_like(total), where=total > 0)

    def _make_tables(self, worker: NDArray[np.int32], label: NDArray[np.int32]) -> OpinionTables:
        """Return the parameters for some pairs of workers (−1 for workers who were not in the fit) and labels."""
        n_classes = len(self.classes_)
        counted, requested = (
            workers.astype(np.int64) * n_classes + labels
            for workers, labels in ((self.pair_worker_, self.pair_label_), (worker, label))
        )
        is_fitted = worker >= 0
        codes = np.union1d(counted, requested[is_fitted])
        tally = np.zeros((len(codes), n_classes))
        tally[np.searchsorted(codes, counted)] = self.own_tally_
        code_worker, code_label = (part.astype(np.int32) for part in np.divmod(codes, n_classes))
        code_pairs = Pairs(code_worker, code_label, np.empty(0, dtype=np.int32), self._n_workers)
        code_own = self._estimate_own_probs(tally, code_pairs)
        code_own *= 1 - self.shared_[code_worker, None]
        own = estimate_crowd_confusion(self.tally_, self._pairs, self.smoothing, self.diagonal).T[label]
        own[is_fitted] = code_own[np.searchsorted(codes, requested[is_fitted])]
        shared = np.where(is_fitted, self.shared_[worker], 0.0)
        opinion = np.ascontiguousarray(self.opinion_confusion_.transpose(0, 2, 1))
        return OpinionTables(own, own + shared[:, None], opinion)

    def _worker_columns(self) -> dict[str, NDArray[Any]]:
        if not self._has_groups:
            return super()._worker_columns()
        names = np.array([*self.group_names_, ""], dtype=object)
        return super()._worker_columns() | {"group": names[self.group_], "shared": self._compute_shared_votes()}

    def reported_label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        """Return P(label of the pair given class), whether the vote is independent or repeats the group's opinion.

        Parameters
        ----------
        tally : ndarray of shape (n_pairs, n_classes)
            Expected counts.
        pairs : Pairs
            Worker and label of every row of the tally.

        Returns
        -------
        ndarray of shape (n_pairs, n_classes)
        """
        return estimate_smoothed_probs(tally, pairs, self.smoothing, self.diagonal)

    def predictive_label_probs(self, tally: NDArray[Any], pairs: Pairs) -> NDArray[Any]:
        """Estimate P(label of the pair given class) of some workers; not possible with groups.

        Parameters
        ----------
        tally : ndarray of shape (n_pairs, n_classes)
            Expected counts.
        pairs : Pairs
            Worker and label of every row of the tally.

        Returns
        -------
        ndarray of shape (n_pairs, n_classes)

        Raises
        ------
        UsageError
            If the panel has groups.
        """
        if self._has_groups:
            raise UsageError(
                "the votes of a group depend on each other, and this computation needs independent votes; use dawid-skene, or a "
                "panel without groups"
            )
        return self.reported_label_probs(tally, pairs)

    def calibration(self, scores: pd.DataFrame, *, truth: TruthLike | None = None, n_bins: int = 10) -> pd.DataFrame:
        """Return the calibration of the scores of judges.

        Parameters
        ----------
        scores : DataFrame
            Columns task, worker, label and score, the judge's probability that the label is right.
        truth : truth-like, optional
            Known truth. Without it, scores are compared with the posterior of the panel, to which the judge has contributed.
        n_bins : int, default 10
            Number of bins of equal width.

        Returns
        -------
        DataFrame
            ``n_scores``, mean ``score``, ``accuracy``, ``calibration_error`` and ``brier`` by judge.

        Examples
        --------
        >>> from wisecrowd.simulate import simulate_panel
        >>> simulation = simulate_panel(n_tasks=200)
        >>> scores = simulation.crowd.to_frame().query("worker == 'judge0'").assign(score=0.99)
        >>> table = Panel(groups=simulation.groups).fit(simulation.crowd).calibration(scores, truth=simulation.truth)
        >>> bool(table.loc["judge0", "calibration_error"] > 0.2)  # overconfident
        True
        """
        check_bins(n_bins, "width")
        posterior = self.proba_ if truth is None else encode_truth_as_posterior(truth, self.classes_)
        return summarize_calibration(pd.DataFrame(scores), posterior, n_bins)

    def predict_proba(self, crowd: CrowdLike) -> pd.DataFrame:
        """Return the posterior of tasks, old or new.

        Parameters
        ----------
        crowd : crowd-like
            Votes on the tasks. A worker who was not in the fit has the confusion matrix of the whole crowd and no group.

        Returns
        -------
        DataFrame
            Tasks x classes.
        """
        self._check_fitted("posterior_")
        if not self._has_groups:
            return super().predict_proba(crowd)
        votes = recode_classes(self.validate_votes(crowd), self.classes_)
        warn_misspelled_workers(self, votes)
        assert votes.workers is not None
        assert self.worker_index_ is not None
        position = locate_ids(votes.workers, self.worker_index_).astype(np.int32)
        group = np.where(position >= 0, self.group_[position], -1).astype(np.int32)
        tables = self._make_tables(position[votes.pairs.worker], votes.pairs.label)
        posterior = OpinionEngine(votes, None, group=group).compute_posterior(self.e_step_prior_, tables.pack())
        return pd.DataFrame(posterior, index=votes.tasks.rename("task"), columns=self.classes_.rename("class"))

    def posterior_by(
        self, crowd: CrowdLike, *, confusion: Any, shared: Any, opinion_confusion: Any, prior: Any = "uniform"
    ) -> pd.DataFrame:
        """Return the posterior of every task for known parameters, for example of a simulation; no fit is needed.

        Parameters
        ----------
        crowd : crowd-like
            Votes.
        confusion : array-like of shape (n_workers, n_classes, n_classes)
            Confusion matrices of independent votes, [worker, true, given].
        shared : array-like of shape (n_workers,)
            Probability that each worker repeats the opinion of the group.
        opinion_confusion : array-like of shape (n_groups, n_classes, n_classes)
            Confusion matrices of the groups, [group, true, opinion], in the order of their names.
        prior : {'estimate', 'uniform'}, array-like or dict, default 'uniform'
            Class prior.

        Returns
        -------
        DataFrame
            Tasks x classes.

        Raises
        ------
        UsageError
            If a parameter has the wrong shape.

        Examples
        --------
        >>> from wisecrowd.simulate import simulate_panel
        >>> simulation = simulate_panel(n_tasks=200)
        >>> tables = {"confusion": simulation.confusion, "shared": simulation.shared}
        >>> tables["opinion_confusion"] = simulation.opinion_confusion
        >>> best = Panel(groups=simulation.groups).posterior_by(simulation.crowd, **tables)
        >>> bool((best.idxmax(axis=1) == simulation.truth).mean() > 0.9)
        True
        """
        votes = self.validate_votes(crowd)
        assert votes.classes is not None
        group, names = encode_groups(self.groups, votes)
        worker, label, n_classes = votes.pairs.worker, votes.pairs.label, votes.n_classes
        arrays = [np.asarray(part, dtype=np.float64) for part in (confusion, shared, opinion_confusion)]
        square = (n_classes, n_classes)
        shapes = [(votes.n_workers, *square), (votes.n_workers,), (len(names), *square)]
        if [array.shape for array in arrays] != shapes:
            raise UsageError(
                f"confusion, shared and opinion_confusion must have the shapes {shapes}; got {[array.shape for array in arrays]}"
            )
        pair_shared = np.where(group >= 0, arrays[1], 0.0)[worker, None]
        own = (1 - pair_shared) * arrays[0][worker, :, label]
        label_probs = OpinionTables(own, pair_shared + own, arrays[2].transpose(0, 2, 1)).pack()
        weights = make_class_prior(prior, votes.vote_counts.sum(axis=0), votes.classes)
        posterior = OpinionEngine(votes, None, group=group).compute_posterior(weights, label_probs)
        return pd.DataFrame(posterior, index=votes.tasks.rename("task"), columns=votes.classes.rename("class"))

    def expected_answers(self, crowd: Crowd) -> ExpectedAnswers:
        """Return the probabilities of the next votes, given the votes of the workers' groups.

        Parameters
        ----------
        crowd : Crowd
            Votes that the panel was fitted to.

        Returns
        -------
        ExpectedAnswers

        Raises
        ------
        UsageError
            If the crowd has other workers.

        Examples
        --------
        >>> from wisecrowd.simulate import simulate_panel
        >>> simulation = simulate_panel(n_tasks=200)
        >>> answers = Panel(groups=simulation.groups).fit(simulation.crowd).expected_answers(simulation.crowd)
        >>> answers.confusion_on(0, np.arange(13)).shape
        (13, 3, 3)
        """
        if self.worker_index_ is None or not self.worker_index_.equals(crowd.workers):
            raise UsageError(
                "expected_answers needs the crowd that the panel was fitted on; this one has other workers"
            )
        workers = self._check_positions(range(self._n_workers))
        n_classes = len(self.classes_)
        worker, label = np.repeat(workers, n_classes), np.tile(np.arange(n_classes, dtype=np.int32), len(workers))
        own = self._make_tables(worker, label).own.reshape(len(workers), n_classes, n_classes).transpose(0, 2, 1)
        return ExpectedAnswers(crowd, self.group_, np.ascontiguousarray(own), self.shared_, self.opinion_confusion_)

    def evidence(self, crowd: Crowd) -> NDArray[np.float64]:
        """Return log P of each vote together with all votes of its group on the task, given class.

        Parameters
        ----------
        crowd : Crowd
            Votes that the panel was fitted to.

        Returns
        -------
        ndarray of shape (n_votes, n_classes)

        Raises
        ------
        UsageError
            If the crowd has other tasks or workers.

        Examples
        --------
        >>> from wisecrowd.simulate import simulate_panel
        >>> simulation = simulate_panel(n_tasks=50)
        >>> Panel(groups=simulation.groups).fit(simulation.crowd).evidence(simulation.crowd).shape
        (650, 3)
        """
        if not (crowd.tasks.equals(self.task_index_) and crowd.pairs.n_workers == self._n_workers):
            raise UsageError(
                "evidence needs the crowd that the panel was fitted on; this one has other tasks or workers"
            )
        tables = self._make_tables(crowd.pairs.worker, crowd.pairs.label)
        return compute_vote_log_probs(crowd, self.group_, tables)

    def restart_from(self, crowd: Crowd, posterior: NDArray[Any]) -> None:
        """Re-estimate all parameters from a posterior, in one M-step.

        Parameters
        ----------
        crowd : Crowd
            All votes.
        posterior : ndarray of shape (n_tasks, n_classes)
            Posterior of all tasks.
        """
        super().restart_from(crowd, posterior)
        self._set_summaries(crowd)

    def partial_fit(self, crowd: CrowdLike, *, truth: TruthLike | None = None) -> Self:
        """Update the fit with new votes, at the cost of one pass; not possible with groups.

        Parameters
        ----------
        crowd : crowd-like
            New votes.
        truth : truth-like, optional
            Known truth of some tasks.

        Returns
        -------
        Panel
            The method itself.

        Raises
        ------
        UsageError
            If the panel has groups.
        """
        if self.groups is not None:
            raise UsageError(
                "partial_fit does not support a panel with groups; fit all votes, and start from the current fit: "
                "fit(all_votes, start=panel)"
            )
        return super().partial_fit(crowd, truth=truth)
