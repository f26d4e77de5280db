"""Who answers as somebody else does, more often than how good both are explains."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wisecrowd.data.crowd import Crowd
from wisecrowd.diagnose.preparation import alike, groups_of, shares
from wisecrowd.diagnose.worker_pairs import (
    Pairs,
    gainsaid,
    more_than_two,
    pairs_of,
    press_one_button,
    twins_of,
    units_of,
)
from wisecrowd.em import incremental as online
from wisecrowd.em.confusion import ConfusionEM
from wisecrowd.errors import unwarned
from wisecrowd.utils.deduplication import MANY, once

#: Votes, times classes, that models are fitted to at most while suspects are examined.
MOST_WORK = 40_000_000
#: Share of the votes that a model may be fitted without to look at several suspects at once.
LEFT_OUT = 0.02
#: Share of answers that must be explained by copying, and how unlikely so much sameness must be without it.
COPIED, UNLIKELY = 0.35, 0.05
#: Share of twins' answers that copying must explain, and by how much evidence must exceed what chance gives.
TWIN_COPIED, TWIN_LIMIT = 0.8, 2.0
#: From so many pairs on it can be told how far pairs in general agree more than chance.
ENOUGH_PAIRS = 20
#: Of EM for each pair: three numbers settle soon.
STEPS = 60


@dataclass(frozen=True, eq=False)
class Copies:
    """Pairs of workers who give the same answers too often.

    >>> from wisecrowd import DawidSkene, simulate_crowd
    >>> made = simulate_crowd(n_tasks=300, workers=["noisy"] * 8 + ["copier(1)"], votes_per_task=5)
    >>> len(copies(made.crowd, DawidSkene().fit(made.crowd)).found)
    1
    """

    pairs: pd.DataFrame
    """Pairs who agree more with each other than with the others: first, second, common, same, copied (share), evidence."""
    found: pd.DataFrame
    """Those of them that copying explains and chance does not."""


def copies(crowd: Crowd, fitted: ConfusionEM, *, min_common: int = 10) -> Copies:
    """Compare every two workers who share ``min_common`` tasks or more and agree more with each other than with others.

    Two explanations of what r and s said of the tasks that they share are weighed against each other. In both, r is right with
    probability a_r, and errs evenly; the truth of task i is k with the probability q_i(k) that the *other* votes give it.

        apart     s is right with probability a_s, whatever r said
        copied    with probability c, s says what r said; otherwise as above

    Good workers agree often, and both explain it; where two agree against everybody else, again and again, only copying does.
    A model that takes copies for independent votes makes experts of whoever copies; so the truth is inferred anew without the
    second of each two who are suspected, and without the first's own vote.
    Members of a group that a model knows of (`Panel`) are not compared, and what a group says of a task counts as one vote.
    All is fitted by EM. ``evidence`` is the gain in log-likelihood, which must exceed what chance gives with so many pairs.
    Where tasks mislead everybody alike, all pairs agree more than accuracies explain, and it must exceed that as well: the limit
    grows with the square of how far the upper quarter of all pairs lies beyond what chance gives (as "genomic control" does).
    Pairs who say the same of nearly all of many tasks are looked at first, by the votes of strangers alone: of who is linked to
    them by no such pair. What pairs in general do is then no excuse, and of several who are found, one is left as a witness.
    Who copied whom the votes alone cannot tell.

    >>> from wisecrowd import DawidSkene, simulate_crowd
    >>> made = simulate_crowd(n_tasks=300, workers=["noisy"] * 9, votes_per_task=5)
    >>> len(copies(made.crowd, DawidSkene().fit(made.crowd)).found)
    0
    """
    pairs = pairs_of(crowd, fitted, min_common)
    twins = twins_of(crowd, pairs)
    told = _weighed(crowd, twins, _met_by_strangers(crowd, fitted, twins))
    found = told[_is_copied(told, TWIN_LIMIT * _limit(len(pairs)), TWIN_COPIED)]
    again = more_than_two(found)
    if len(again):  # one of several is witness enough of anything else
        assert crowd.workers is not None
        crowd = crowd.take(~np.isin(crowd.worker_codes, crowd.workers.get_indexer(again)))
        fitted = fitted.unfitted()
        with unwarned():
            fitted.fit(crowd)
        pairs = pairs_of(crowd, fitted, min_common)
    suspects = _suspects(crowd, pairs, groups_of(fitted))
    others = _weighed(crowd, suspects, _met(crowd, fitted, suspects))
    caught = others[_is_copied(others, _limit(len(pairs)) * _inflation(fitted, crowd, pairs))]
    table, found = _together(told, others), _together(found, caught)
    return Copies(table, found.sort_values("evidence", ascending=False, ignore_index=True))


def _limit(n_compared: int) -> float:
    """Evidence that chance does not give: as many chances to be surprised as there are pairs of workers."""
    from scipy.special import chdtri

    return float(chdtri(1, 2 * UNLIKELY / max(n_compared, 1)) / 2)  # the share cannot be negative, hence twice


def _is_copied(table: pd.DataFrame, limit: float, share: float = COPIED) -> pd.Series:
    return (table["copied"] >= share) & (table["evidence"] >= limit)


def _together(twins: pd.DataFrame, others: pd.DataFrame) -> pd.DataFrame:
    """Two tables of pairs, each pair once."""
    if not len(twins):
        return others
    both = pd.concat([twins, others] if len(others) else [twins], ignore_index=True)
    return both.drop_duplicates(["first", "second"], ignore_index=True)


def _weighed(crowd: Crowd, suspects: Pairs, meetings: Meetings) -> pd.DataFrame:
    """Both explanations of what suspected pairs said, and by how much copying is the better one."""
    first, second = suspects.first, suspects.second
    pair, same, mine, theirs = meetings
    n_classes, n_pairs = crowd.n_classes, len(first)
    common, agreed = np.bincount(pair, minlength=n_pairs), np.bincount(pair, same, minlength=n_pairs)
    times = np.ones(len(pair))
    if len(pair) > MANY:
        rows, times = once(theirs, mine, same, pair, weight=times)
        pair, same, mine, theirs = pair[rows], same[rows], mine[rows], theirs[rows]
    apart = _fitted(pair, same, mine, theirs, times, n_classes, n_pairs, copying=False)
    copied = _fitted(pair, same, mine, theirs, times, n_classes, n_pairs, copying=True)
    names = crowd.workers
    assert names is not None
    columns = {
        "first": names[first], "second": names[second], "common": common,
        "same": agreed / np.maximum(common, 1),
        "copied": copied.share, "evidence": np.maximum(copied.log_likelihood - apart.log_likelihood, 0.0),
    }  # fmt: skip
    return pd.DataFrame(columns)


def without_copies(
    others: NDArray[np.float64], crowd: Crowd, fitted: ConfusionEM, found: pd.DataFrame
) -> NDArray[np.float64]:
    """The posterior of every vote's task by the other votes, without those of who copies its worker or is copied.

    Who is copied seems to be confirmed by somebody, however wrong; two spammers who copy would make experts of each other.

    >>> from wisecrowd import DawidSkene
    >>> from wisecrowd.evaluate import uncertainty
    >>> crowd = Crowd.from_triples([(0, "ann", 0), (0, "bob", 1), (0, "cy", 1), (1, "ann", 0), (1, "bob", 1), (1, "cy", 0)])
    >>> fitted = DawidSkene().fit(crowd)
    >>> both = pd.DataFrame({"first": ["bob"], "second": ["cy"]})
    >>> told = without_copies(uncertainty.leave_one_out(fitted, crowd), crowd, fitted, both)
    >>> bool(np.allclose(told[1], told[2]))  # of the first task, both are told by Ann alone
    True
    """
    if not len(found):
        return others
    assert crowd.workers is not None
    said, unit = evidence_of(fitted, crowd), units_of(fitted, crowd)
    logit = np.log(np.maximum(others, np.finfo(np.float64).tiny))
    row_of = np.full(crowd.n_tasks, -1)
    done: set[tuple[int, int]] = set()  # what a group says of a task is taken out once, however many of it are copied
    for first, second in zip(
        *(crowd.workers.get_indexer(pd.Index(found[name])) for name in ("first", "second")), strict=True
    ):
        mine, theirs = (np.flatnonzero(crowd.worker_codes == who) for who in (first, second))
        row_of[:] = -1
        row_of[crowd.task[theirs]] = theirs
        mine = mine[row_of[crowd.task[mine]] >= 0]
        theirs = row_of[crowd.task[mine]]
        for here, there, who, whom in ((mine, theirs, first, second), (theirs, mine, second, first)):
            if (int(who), int(unit[whom])) not in done:
                done.add((int(who), int(unit[whom])))
                logit[here] -= said(there)
    return shares(logit)


def evidence_of(fitted: ConfusionEM, crowd: Crowd) -> Callable[[NDArray[Any]], NDArray[np.float64]]:
    """log P of some votes, by row, (rows, classes): of each by itself, or with all that its group says of the task.

    >>> from wisecrowd import DawidSkene
    >>> crowd = Crowd.from_triples([("t1", "ann", 0), ("t1", "bob", 1)])
    >>> evidence_of(DawidSkene().fit(crowd), crowd)(np.array([0])).shape
    (1, 2)
    """
    if groups_of(fitted) is not None:
        panel: Any = fitted
        found = panel.evidence(crowd)
        return lambda rows: np.asarray(found[rows])
    said = np.log(np.maximum(online.label_probs_of_crowd(fitted, crowd), np.finfo(np.float64).tiny))
    return lambda rows: np.asarray(crowd.weight[rows, None] * said[crowd.pairs.of_vote[rows]])


def _suspects(crowd: Crowd, pairs: Pairs, group: NDArray[np.int32] | None) -> Pairs:
    """Pairs who agree with each other more than either does with the others."""
    first, second, common, same = pairs
    by_worker = [np.bincount(crowd.worker_codes, part, minlength=crowd.n_workers) for part in alike(crowd, group)]
    # What each does with the others: the pair's own meetings do not count.
    with np.errstate(invalid="ignore", divide="ignore"):
        usual = [(by_worker[0][who] - same) / (by_worker[1][who] - common) for who in (first, second)]
    usual = [np.nan_to_num(part, nan=1 / crowd.n_classes) for part in usual]
    excess = (same / common - np.maximum(*usual)) * np.sqrt(common)
    excess[press_one_button(crowd, pairs)] = 0
    # The most suspicious first, and no more of them than there is time to fit a model without.
    at_once = max(1, int(LEFT_OUT * crowd.n_votes / max(crowd.votes_per_worker.mean(), 1)))
    at_most = max(10, at_once * (MOST_WORK // max(crowd.n_votes * crowd.n_classes, 1)))
    chosen = np.sort(np.argsort(-excess, kind="stable")[:at_most])
    return pairs.chosen(chosen[excess[chosen] > 1])


def _inflation(fitted: ConfusionEM, crowd: Crowd, pairs: Pairs) -> float:
    """(z₇₅ / 0.67)² of how often pairs agree, by their accuracies; one where that is less, or pairs are few."""
    if len(pairs) < ENOUGH_PAIRS:
        return 1.0
    right = np.clip(fitted.workers_["accuracy"].to_numpy(dtype=np.float64), 0.01, 0.99)
    mine, theirs = right[pairs.first], right[pairs.second]
    expected = mine * theirs + (1 - mine) * (1 - theirs) / max(crowd.n_classes - 1, 1)
    z = (pairs.same - pairs.common * expected) / np.sqrt(pairs.common * expected * (1 - expected))
    return float(max(np.quantile(z, 0.75) / 0.6745, 1.0) ** 2)


Meetings: TypeAlias = tuple[NDArray[np.intp], NDArray[np.bool_], NDArray[np.float64], NDArray[np.float64]]


def _met_by_strangers(crowd: Crowd, fitted: ConfusionEM, twins: Pairs) -> Meetings:
    """The same of pairs who answer nearly alike, by the votes of those whom no such pair links to them.

    Ten who all say the same look right to each other, and to every model that counts them as ten. Strangers are asked only
    where they agree with each other against them: ten experts would otherwise be judged by whoever guesses.
    """
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    unit = units_of(fitted, crowd)
    ends = unit[twins.first], unit[twins.second]
    size = int(unit.max(initial=-1)) + 1
    links = sparse.coo_array((np.ones(len(twins)), ends), shape=(size, size))
    circle = connected_components(links, directed=False)[1][unit]
    parts: list[tuple[NDArray[Any], ...]] = []
    answers = np.full((2, crowd.n_tasks), -1)
    most = max(10, MOST_WORK // max(crowd.n_votes * crowd.n_classes, 1))
    for number in pd.unique(circle[twins.first])[:most]:
        theirs = circle[crowd.worker_codes] == number
        rest = crowd.take(~theirs)
        if not gainsaid(crowd.take(theirs), rest):
            continue
        model = fitted.unfitted()
        with unwarned():
            model.fit(rest)
        voted = rest.votes_per_task > 0
        for place in np.flatnonzero(circle[twins.first] == number):
            answers[:] = -1
            for answer, who in zip(answers, (twins.first[place], twins.second[place]), strict=True):
                rows = np.flatnonzero(crowd.worker_codes == who)
                answer[crowd.task[rows]] = crowd.label[rows]
            tasks = np.flatnonzero((answers >= 0).all(axis=0) & voted)
            mine, theirs = answers[:, tasks]
            belief = model.posterior_[tasks]
            each = np.arange(len(tasks))
            parts.append((np.full(len(tasks), place), mine == theirs, belief[each, mine], belief[each, theirs]))
    return _meetings(parts)


def _met(crowd: Crowd, fitted: ConfusionEM, suspects: Pairs) -> Meetings:
    """Of every meeting of a suspected pair: which pair, whether they said the same, and how the other votes believe in what
    the first and what the second said.
    """
    first, second = suspects.first, suspects.second
    parts: list[tuple[NDArray[Any], ...]] = []
    for away in _left_out(crowd, first, second):
        rest = crowd.take(~np.isin(crowd.worker_codes, away))
        model = fitted.unfitted()
        with unwarned():
            model.fit(rest)
        said, unit = evidence_of(model, rest), units_of(fitted, crowd)
        answer, row_of = np.full(crowd.n_tasks, -1), np.full(crowd.n_tasks, -1)
        for place in np.flatnonzero(np.isin(second, away)):
            mine = np.flatnonzero(crowd.worker_codes == second[place])
            answer[:] = -1
            answer[crowd.task[mine]] = crowd.label[mine]
            rows = np.flatnonzero((rest.worker_codes == first[place]) & (answer[rest.task] >= 0))
            logit = np.log(np.maximum(model.posterior_[rest.task[rows]], 1e-300)) - said(rows)
            if unit[second[place]] >= crowd.n_workers:  # what is left of the second's group is no witness, either
                theirs = np.flatnonzero(unit[rest.worker_codes] == unit[second[place]])
                row_of[:] = -1
                row_of[rest.task[theirs]] = theirs
                both = np.flatnonzero(row_of[rest.task[rows]] >= 0)
                logit[both] -= said(row_of[rest.task[rows[both]]])
            belief = shares(logit)
            each, label, theirs = np.arange(len(rows)), rest.label[rows], answer[rest.task[rows]]
            parts.append((np.full(len(rows), place), label == theirs, belief[each, label], belief[each, theirs]))
    return _meetings(parts)


def _meetings(parts: list[tuple[NDArray[Any], ...]]) -> Meetings:
    if not parts:
        return np.empty(0, dtype=np.intp), np.empty(0, dtype=bool), np.empty(0), np.empty(0)
    pair, same, believed, other = (np.concatenate(column) for column in zip(*parts, strict=True))
    return pair, same, believed, other


def _left_out(crowd: Crowd, first: NDArray[np.int64], second: NDArray[np.int64]) -> Iterator[list[int]]:
    """Whom models are fitted without: the second of every pair, several at once where that leaves nearly all votes.

    Nobody is left out together with who is first where they are second: that one's votes are looked at.
    """
    together: list[int] = []
    votes = 0
    for worker in np.unique(second):
        partners = set(first[second == worker].tolist()) | set(second[first == worker].tolist())
        n = int(crowd.votes_per_worker[worker])
        if together and (votes + n > LEFT_OUT * crowd.n_votes or partners & set(together)):
            yield together
            together, votes = [], 0
        together.append(int(worker))
        votes += n
    if together:
        yield together


class _Fit(NamedTuple):
    share: NDArray[np.float64]
    log_likelihood: NDArray[np.float64]


def _fitted(
    pair: NDArray[np.intp], same: NDArray[np.bool_], mine: NDArray[np.float64], theirs: NDArray[np.float64],
    times: NDArray[np.float64], n_classes: int, n_pairs: int, *, copying: bool,
) -> _Fit:  # fmt: skip
    """a_r, a_s and c of every pair by EM, and the log-likelihood that they reach; meetings that are alike count ``times``."""
    common = np.maximum(np.bincount(pair, times, minlength=n_pairs), 1)
    right, their_right = np.full(n_pairs, 0.7), np.full(n_pairs, 0.7)
    share = np.full(n_pairs, 0.5 if copying else 0.0)
    neither = np.where(same, 1 - mine, np.maximum(1 - mine - theirs, 0.0))
    likelihood = np.ones(len(pair))

    def by_pair(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(pair, times * values, minlength=n_pairs).astype(np.float64)

    for _ in range(STEPS):
        a, b, c = right[pair], their_right[pair], share[pair]
        wrong_a, wrong_b = (1 - a) / (n_classes - 1), (1 - b) / (n_classes - 1)
        # The truth is what the first said, what the second said, or neither; when they said the same, the first two are one.
        own_first = mine * a * np.where(same, b, wrong_b)
        own_second = np.where(same, 0.0, theirs * wrong_a * b)
        own_neither = neither * wrong_a * wrong_b
        as_right, as_wrong = same * mine * a, same * (1 - mine) * wrong_a
        own = (1 - c) * (own_first + own_second + own_neither)
        likelihood = np.maximum(own + c * (as_right + as_wrong), 1e-300)
        right = (by_pair(((1 - c) * own_first + c * as_right) / likelihood) + 1) / (common + 1.5)
        chosen = by_pair(own / likelihood)  # answers of the second that are their own
        hit = (1 - c) * np.where(same, own_first, own_second) / likelihood
        their_right = (by_pair(hit) + 1) / (chosen + 1.5)
        if copying:
            share = np.clip(1 - chosen / common, 1e-6, 1 - 1e-6)
    return _Fit(share, by_pair(np.log(likelihood)))
