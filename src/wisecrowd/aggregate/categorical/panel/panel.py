"""Panels of people and machine judges: workers in groups that share their errors."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import softmax, xlog1py, xlogy

from wisecrowd.aggregate.categorical._spectral_initialization import (
    INIT_HELP,
    compute_spectral_statistics,
    uses_spectral_start,
)
from wisecrowd.aggregate.categorical.panel._anchors import PeopleVotes, make_anchors, make_start
from wisecrowd.aggregate.categorical.panel._coded_answers import CodedAnswers, encode_answers, recode_answers
from wisecrowd.aggregate.categorical.panel._dependence import (
    compute_shared_errors,
    divide_worth,
    explain_panel,
    summarize_members,
)
from wisecrowd.aggregate.categorical.panel._expected_answers import ExpectedAnswers
from wisecrowd.aggregate.categorical.panel._judge_model import JudgeModel, fit_judges
from wisecrowd.aggregate.categorical.panel._judges import (
    JudgeEvidence,
    encode_truth_as_posterior,
    summarize_calibration,
    summarize_judges,
    summarize_opinions,
)
from wisecrowd.aggregate.categorical.panel._latent_classes import measure_error_correlation
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
from wisecrowd.aggregate.categorical.panel._score_votes import convert_scores, find_score_classes, is_score_input
from wisecrowd.base.fields import fitted, method_class, parameter
from wisecrowd.data.answer_type import AnswerType
from wisecrowd.data.crowd import Crowd
from wisecrowd.data.pairs import Pairs
from wisecrowd.data.scores import ScoreCrowd
from wisecrowd.data.types import AnyCrowd, CrowdLike, FeaturesLike, TruthLike
from wisecrowd.data.vocabulary import locate_ids, match_id_type
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.em.incremental import recode_classes, warn_misspelled_workers
from wisecrowd.em.initialization import make_class_prior
from wisecrowd.em.loop import Statistics
from wisecrowd.em.priors import compute_smoothing_log_prior, estimate_crowd_confusion, estimate_smoothed_probs
from wisecrowd.engines.base import Chunk, Engine
from wisecrowd.errors import InputError, UsageError, check_choice
from wisecrowd.kernels import MIN_PROB
from wisecrowd.utils.binning import check_bins
from wisecrowd.utils.parallel import use_one_blas_thread

#: Initial shares of members' votes that repeat the group's opinion. From the first, EM finds groups whose members agree,
#: which look like independent workers from the second. From the second, it finds groups whose members have little in
#: common, whose opinions can end up wrong from the first. The objective decides between them.
INITIAL_SHARED = (0.9, 0.1)

#: Fitted attributes that exist only for some panels, and that a new fit must not inherit.
OPTIONAL_ATTRIBUTES = (
    "judges_", "judge_confusion_", "opinions_", "opinion_confusion_", "own_tally_", "shared_", "judge_index_",
    "judge_model_", "n_effective_", "error_correlation_", "members_", "verdict_", "heldout_accuracy_",
    "trace_", "n_iter_", "converged_", "restarts_",
)  # fmt: skip
#: Machines from which on their dependence is estimated.
MIN_MACHINES = 2


@method_class
class Panel(ConfusionEM):
    """Panel of people and machine judges, who give labels or scores and err together.

    Judges of one model, or trained on the same texts, err on the same tasks, and a method that assumes independent errors trusts
    them too much. A panel estimates the dependence between judges, so nobody has to name families of models.

    *Estimated dependence* is used for scores (`ScoreCrowd`), and for labels if ``kinds`` name two machines or more and
    there are no ``groups``. The truth is predicted from the answers of all judges at once,

        P(z_i = k | answers) = Σ_m w_m softmax_k(b_mk + Σ_r f_mr[y_ir, k]),

    where f_mr is a step function of the score (or label) of judge r. Members m of the average are a latent-class model, whose
    evidence is discounted by the correlation of errors; each judge alone; and ridge regressions, which shrink to shares of the
    latent-class evidence. They learn from gold and from votes of people, who are independent witnesses with confusion
    matrices. Weights w_m follow from cross-validation on gold and people's votes. Without both, the latent-class model decides.
    ``n_effective_`` is the number of independent judges with the same information, and ``verdict_`` says in words whether
    judges are only one vote, and whether one of them is enough.

    *Named groups* of workers who give labels have an opinion o_ig on each task. A member r repeats it with probability a_r and
    otherwise answers by a confusion matrix of its own:

        z_i ~ ρ,   o_ig | z_i = k ~ σ_g[k, ·],   y_ir | z_i = k, o_ig = m  ~  a_r [y = m] + (1 − a_r) π_r[k, ·]

    EM is exact, since the opinions are summed over in closed form (q_ig is their posterior):

        P(votes of g on i | k) = Σ_m σ_g[k, m] Π_r (a_r [y_ir = m] + (1 − a_r) π_r[k, y_ir])
        a_r = expected share of r's votes that repeat the opinion,   σ_g[k, m] ∝ Σ_i q_i(k) q_ig(m | k) + s_km
        π_r[k, l] ∝ r's other votes for l where k is true + s_kl

    with pseudo-votes s_kl = smoothing + diagonal·[k = l] as in `DawidSkene`, and ``sharing`` pseudo-votes for and against
    repeating. a_r = 0 is Dawid and Skene's model; a_r = 1 is a copy, and any number of copies count as one vote. A pass
    costs votes x classes. EM starts twice (``restarts_``), from groups with one voice and from independent members, and
    the result with the higher objective is kept. Name groups of prompts of one model; a group of different models that err in their
    own ways is not described by one opinion.

    Gold (``fit(crowd, truth=…)``) and people anchor the panel: with ``kinds``, people have ``trust`` further pseudo-votes
    for right labels. Without groups and machines the model is `DawidSkene`.

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

    references: ClassVar[tuple[str, ...]] = ("dawid1979maximum", "kohli2026nine", "yao2018using")
    answer_types: ClassVar[tuple[AnswerType, ...]] = ("categorical", "ordinal", "scores")
    unused_labels_are_equal: ClassVar[bool] = True
    streams: ClassVar[bool] = False

    init: Literal["votes", "spectral"] = parameter(default="votes", help=INIT_HELP)
    groups: Any = parameter(default=None, help="Group of each worker who has one: a dict or Series by worker.")
    kinds: Any = parameter(default=None, help="Kind of each worker, 'person' or 'machine': a dict or Series by worker.")
    sharing: float = parameter(
        default=1.0, help="Number of pseudo-votes for repeating a group's opinion, and as many against it."
    )
    trust: float = parameter(default=5.0, help="Number of further pseudo-votes for right labels of people.")

    dependence: Literal["estimate", "groups"] = parameter(
        default="estimate",
        help="Dependence between machines that give labels, without groups: estimate it, or assume it only within groups.",
    )
    classes: Any = parameter(
        default=None,
        help="Classes for scores, in order. Without gold and votes of people there are two, for low and high scores: by default "
        "0 and 1.",
    )

    judge_index_: pd.Index = fitted(help="Judges whose dependence was estimated.")
    judge_model_: JudgeModel = fitted(help="Model that predicts the truth from the answers of the judges.")
    n_effective_: float = fitted(help="Number of independent judges with the same information about the truth.")
    error_correlation_: NDArray[np.float64] = fitted(
        help="Correlation of the judges' errors, given the true class.", shape=("n_judges", "n_judges"), finite=True
    )
    members_: pd.DataFrame = fitted(
        help="Members of the average: weight, and log loss and accuracy on held-out gold and votes of people."
    )
    heldout_accuracy_: NDArray[np.float64] = fitted(
        help="Probability that the panel is right on each task with gold or votes of people, predicted without them.",
        shape=("n_anchored",),
    )
    verdict_: list[str] = fitted(help="Conclusions about the judges in words.")
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
        if self._has_judge_model:
            self.judge_model_.check_sizes(len(self.judge_index_), len(self.classes_))
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
        check_choice("dependence", self.dependence, ("estimate", "groups"))
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

    def fit(
        self,
        crowd: CrowdLike | ScoreCrowd,
        X: FeaturesLike | None = None,
        *,
        truth: TruthLike | None = None,
        start: Any = None,
    ) -> Self:
        """Infer the truth of every task from labels, or from scores of judges.

        Parameters
        ----------
        crowd : Crowd, ScoreCrowd, table, or list of (task, worker, label)
            Votes, or scores. A table with the column score and without the column label holds scores.
        X : None
            Not used.
        truth : Series, mapping, DataFrame or array, optional
            Truth of gold tasks by task id.
        start : Aggregator, DataFrame or array, optional
            Start of EM for labels with groups or without machines; not used otherwise.

        Returns
        -------
        Panel
            The method itself.

        Examples
        --------
        >>> from wisecrowd.simulate import simulate_scores
        >>> simulation = simulate_scores(n_tasks=300, random_state=1)
        >>> panel = Panel().fit(simulation.scores, truth=simulation.truth.iloc[:100])
        >>> bool((panel.labels_ == simulation.truth).mean() > 0.7), bool(panel.n_effective_ < 6)
        (True, True)
        """
        if not is_score_input(crowd):
            return super().fit(crowd, X, truth=truth, start=start)  # type: ignore[arg-type]  # votes
        start_time = time.perf_counter()
        self._check_parameter_types()
        self._check_parameters()
        if X is not None or start is not None or self.groups is not None:
            raise UsageError(
                "a panel of scores takes gold only and estimates dependence; leave X, start and groups out"
            )
        scores = crowd if isinstance(crowd, ScoreCrowd) else ScoreCrowd.from_frame(crowd)  # type: ignore[arg-type]  # table
        if scores.n_votes == 0:
            raise InputError("Panel needs scores, and there are none")
        classes, people, gold = find_score_classes(scores, truth, self.classes)
        answers = encode_answers(
            scores.task, scores.worker, scores.score,
            n_tasks=scores.n_tasks, n_judges=scores.n_workers, is_ordered=True, weight=scores.weight,
        )  # fmt: skip
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        posterior = self._fit_judge_model(answers, scores.workers, people, gold, classes)
        votes = convert_scores(scores, answers, posterior, people, classes)
        self._start_fit_of_scores(votes)
        self.is_person_ = np.arange(votes.n_workers) >= scores.n_workers
        self.group_, self.group_names_ = np.full(votes.n_workers, -1, dtype=np.int32), []
        self.notes_ = []
        self._set_fitted(votes, posterior)
        self._set_judge_tables(votes, ~self.is_person_)
        self._finish_fit(start_time)
        return self

    def _start_fit_of_scores(self, votes: Crowd) -> None:
        """Store the vocabularies of scores that were converted to votes."""
        assert votes.classes is not None
        self.classes_, self.worker_index_, self.task_index_ = votes.classes, votes.workers, votes.tasks

    def _fit(self, crowd: Any, gold: Any, *, X: Any, start: Any) -> None:
        group, _ = encode_groups(self.groups, crowd)
        kinds = align_kinds(self.kinds, crowd).to_numpy()
        estimates_dependence = self._estimates_dependence(crowd, kinds, group)
        notes = check_members(crowd, kinds, group, gold=gold is not None, dependence_is_estimated=estimates_dependence)
        if estimates_dependence:
            self._fit_labels_of_judges(crowd, gold, kinds == MACHINE)
        else:
            super()._fit(crowd, gold, X=X, start=start)
        self.notes_ = notes
        if not estimates_dependence:
            self._set_summaries(crowd)

    def _estimates_dependence(self, crowd: Crowd, kinds: NDArray[Any], group: NDArray[np.int32]) -> bool:
        """Return whether the dependence between machines is estimated from their labels."""
        n_machines = int(((kinds == MACHINE) & (crowd.votes_per_worker > 0)).sum())
        may_estimate = self.dependence == "estimate" and not (group >= 0).any()
        return may_estimate and n_machines >= MIN_MACHINES and crowd.n_classes > 1

    def _fit_labels_of_judges(
        self, crowd: Crowd, gold: NDArray[np.int32] | None, is_machine: NDArray[np.bool_]
    ) -> None:
        """Fit the judge model to labels of machines, with other workers as people."""
        assert crowd.workers is not None
        assert crowd.classes is not None
        self._check_parameters()
        self._set_hyperparameters(crowd)
        judges = np.flatnonzero(is_machine & (crowd.votes_per_worker > 0))
        position = np.full(crowd.n_workers, -1, dtype=np.int64)
        position[judges] = np.arange(len(judges))
        rows = np.flatnonzero(position[crowd.worker_codes] >= 0)
        answers = encode_answers(
            crowd.task[rows], position[crowd.worker_codes[rows]], crowd.label[rows],
            n_tasks=crowd.n_tasks, n_judges=len(judges), is_ordered=False, weight=crowd.weight[rows],
        )  # fmt: skip
        people = crowd.take(np.flatnonzero(position[crowd.worker_codes] < 0))
        posterior = self._fit_judge_model(
            answers, crowd.workers[judges], people if people.n_votes else None, gold, crowd.classes
        )
        self._set_fitted(crowd, posterior)
        self._set_judge_tables(crowd, position >= 0)

    def _fit_judge_model(
        self,
        answers: CodedAnswers,
        judges: pd.Index,
        people: Crowd | None,
        gold: NDArray[np.int32] | None,
        classes: pd.Index,
    ) -> NDArray[np.float64]:
        """Fit the judge model, set its results, and return the posterior."""
        n_classes = len(classes)
        votes = PeopleVotes(
            people, answers.n_tasks, n_classes, smoothing=self.smoothing, diagonal=self.diagonal + self.trust
        )
        anchors = make_anchors(votes, gold)
        with use_one_blas_thread():
            result = fit_judges(
                answers,
                make_start(answers, votes, gold),
                anchors,
                lambda class_counts: make_class_prior(self.prior, class_counts, classes),
                seed=self.random_state,
            )
        dependence = measure_error_correlation(answers, result.posterior)
        self.judge_index_, self.judge_model_ = judges, result.model
        self.n_effective_, self.error_correlation_ = dependence.n_effective, dependence.correlation
        self.members_ = summarize_members(result, judges)
        self.verdict_ = explain_panel(result, dependence, answers, judges, int(anchors.is_anchored.sum()))
        if result.panel_hits is not None:
            self.heldout_accuracy_ = result.panel_hits
        self.prior_ = self.e_step_prior_ = result.posterior.mean(axis=0)
        return result.posterior

    def _set_judge_tables(self, crowd: Crowd, is_machine: NDArray[np.bool_]) -> None:
        """Set the tables of judges whose dependence was estimated."""
        label_probs = self.reported_label_probs(self.tally_, crowd.pairs)
        evidence = JudgeEvidence(crowd, self.posterior_, self.prior_, label_probs, ~is_machine)
        shared = np.zeros(crowd.n_workers)
        shared[is_machine] = compute_shared_errors(self.error_correlation_)
        self.judges_, self.judge_confusion_ = summarize_judges(
            evidence, is_machine, self._worker_columns(), shared, np.full(crowd.n_workers, -1, dtype=np.int32), None
        )
        self.judges_["worth"] = divide_worth(self.judges_["alone"].to_numpy(), self.n_effective_)

    @property
    def _has_judge_model(self) -> bool:
        return "judge_model_" in vars(self)

    def restore_part(self, name: str, arrays: dict[str, NDArray[Any]]) -> Any:
        """Return the model of the judges from its saved arrays.

        Parameters
        ----------
        name : str
            Name of the attribute.
        arrays : dict of str to ndarray
            Arrays of the model.

        Returns
        -------
        JudgeModel
        """
        if name != "judge_model_":
            raise ValueError(f"a panel has no part {name}")
        return JudgeModel.from_arrays(arrays)

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

    def _predict_by_judges(self, crowd: CrowdLike | ScoreCrowd) -> pd.DataFrame:
        """Return the posterior by the judge model and the confusion matrices of people."""
        is_ordered = self.judge_model_.levels.is_ordered
        if is_score_input(crowd) != is_ordered:
            raise InputError(f"this panel was fitted to {'scores' if is_ordered else 'labels'}; predict from the same")
        assert self.worker_index_ is not None
        people: Crowd | None
        if is_ordered:
            scores = crowd if isinstance(crowd, ScoreCrowd) else ScoreCrowd.from_frame(crowd)  # type: ignore[arg-type]  # table
            tasks, workers, people = scores.tasks, scores.workers, scores.votes
            task, worker, value, weight = scores.task, scores.worker, scores.score, scores.weight
        else:
            votes = recode_classes(self.validate_votes(crowd), self.classes_)  # type: ignore[arg-type]  # votes
            assert votes.workers is not None
            tasks, workers, people = votes.tasks, votes.workers, votes
            task, worker, value, weight = votes.task, votes.worker_codes, votes.label, votes.weight
        judge = self.judge_index_.get_indexer(match_id_type(workers, self.judge_index_))[worker]
        answers = recode_answers(self.judge_model_.levels, task, judge, value, len(tasks), weight)
        log_posterior = np.log(np.maximum(self.judge_model_.predict(answers.table), MIN_PROB))
        if people is not None:
            votes = recode_classes(people, self.classes_)
            assert votes.workers is not None
            position = self.worker_index_.get_indexer(match_id_type(votes.workers, self.worker_index_))
            rows = np.flatnonzero(~votes.workers.isin(self.judge_index_)[votes.worker_codes])
            people_tally = (
                self.confusion_of(np.flatnonzero(self.is_person_)).mean(axis=0) if self.is_person_.any() else None
            )
            default = np.eye(len(self.classes_)) * self.trust + 1 if people_tally is None else people_tally
            default = default / default.sum(axis=1, keepdims=True)
            fitted_workers = np.unique(position[position >= 0])
            matrices = np.concatenate([self.confusion_of(fitted_workers), default[None]])
            rank = np.where(position >= 0, np.searchsorted(fitted_workers, position), len(fitted_workers))
            log_probs = np.log(np.maximum(matrices[rank[votes.worker_codes[rows]], :, votes.label[rows]], MIN_PROB))
            np.add.at(log_posterior, votes.task[rows], votes.weight[rows, None] * log_probs)
        posterior = softmax(log_posterior, axis=1)
        return pd.DataFrame(posterior, index=tasks.rename("task"), columns=self.classes_.rename("class"))

    def predict_proba(self, crowd: CrowdLike | ScoreCrowd) -> pd.DataFrame:
        """Return the posterior of tasks, old or new.

        Parameters
        ----------
        crowd : crowd-like or ScoreCrowd
            Votes on the tasks, or scores. A worker who was not in the fit has the confusion matrix of the whole crowd and no group;
            a judge who was not in the fit is ignored if dependence was estimated.

        Returns
        -------
        DataFrame
            Tasks x classes.
        """
        self._check_fitted("posterior_")
        if self._has_judge_model:
            return self._predict_by_judges(crowd)
        if not self._has_groups:
            return super().predict_proba(crowd)  # type: ignore[arg-type]  # votes
        votes = recode_classes(self.validate_votes(crowd), self.classes_)  # type: ignore[arg-type]  # votes
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
        if self._has_judge_model:
            raise UsageError("the dependence between judges is estimated from all votes; fit again: fit(all_votes)")
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
        if self.kinds is not None and self.dependence == "estimate":
            raise UsageError(
                "the dependence between machines is estimated from all votes at once, so partial_fit does not support it; fit all "
                "votes, or set dependence='groups'"
            )
        return super().partial_fit(crowd, truth=truth)
