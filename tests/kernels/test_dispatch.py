"""Both forms of the two sums against each other and against a double loop over tasks and votes."""

from __future__ import annotations

import math
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wisecrowd import kernels
from wisecrowd.data.layout import Layout
from wisecrowd.errors import UsageError
from wisecrowd.kernels import MIN_PROB, Expectation

needs_numba = pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")
every_form = pytest.mark.parametrize(
    "compiled", [pytest.param(False, id="reference"), pytest.param(True, id="compiled", marks=needs_numba)]
)
CLASSES = (1, 2, 3, 5, 17, 40)


class Case(NamedTuple):
    layout: Layout
    prior: Any
    label_probs: Any
    gold: Any


def random_case(
    seed: int,
    n_classes: int,
    *,
    n_tasks: int = 7,
    votes: int = 4,
    n_pairs: int = 6,
    weighted: bool = False,
    clamped: bool = False,
    zeros: float = 0.0,
    scale: float = 1.0,
) -> Case:
    """Some tasks get no votes, some pairs are never said, and no table is normalised."""
    rng = np.random.default_rng(seed)
    offset = np.concatenate([[0], rng.integers(0, votes + 1, size=n_tasks).cumsum()])
    pair = rng.integers(n_pairs, size=offset[-1], dtype=np.int32)
    weight = rng.gamma(2.0, size=offset[-1]) if weighted else None
    prior, label_probs = rng.uniform(0.05, scale, size=n_classes), rng.uniform(0.01, scale, size=(n_pairs, n_classes))
    label_probs[rng.random(label_probs.shape) < zeros] = 0
    prior[rng.random(n_classes) < zeros / 2] = 0
    gold = rng.integers(-1, n_classes, size=n_tasks, dtype=np.int32) if clamped else None
    return Case(Layout(offset, pair, weight, n_pairs), prior, label_probs, gold)


@st.composite
def cases(draw: Any) -> Case:
    return random_case(
        draw(st.integers(0, 2**32)),
        draw(st.sampled_from(CLASSES)),
        n_tasks=draw(st.integers(0, 12)),
        votes=draw(st.sampled_from([0, 1, 5, 60])),
        n_pairs=draw(st.integers(1, 20)),
        weighted=draw(st.booleans()),
        clamped=draw(st.booleans()),
        zeros=draw(st.sampled_from([0.0, 0.3, 1.0])),
        scale=draw(st.sampled_from([1.0, 30.0])),
    )


def brute_force(case: Case) -> Expectation:
    """The definition, vote by vote, in logarithms."""
    layout, n_classes = case.layout, len(case.prior)
    prior = [max(float(p), MIN_PROB) for p in case.prior]
    prior_sum, peak = math.fsum(prior), max(1.0, float(case.label_probs.max()))
    log_likelihood, classes = 0.0, np.zeros(n_classes)
    tally, posterior = np.zeros((layout.n_pairs, n_classes)), np.zeros((layout.n_tasks, n_classes))
    for i in range(layout.n_tasks):
        votes = range(layout.offset[i], layout.offset[i + 1])
        weight = {n: 1.0 if layout.weight is None else float(layout.weight[n]) for n in votes}
        joint = []
        for k in range(n_classes):
            terms = [
                weight[n] * math.log(max(float(case.label_probs[layout.pair[n], k]) / peak, MIN_PROB)) for n in votes
            ]
            joint.append(math.fsum([math.log(max(prior[k] / prior_sum, MIN_PROB)), *terms]))
        top = max(joint)
        total = math.fsum(math.exp(j - top) for j in joint)
        known = -1 if case.gold is None else case.gold[i]
        for k in range(n_classes):
            posterior[i, k] = math.exp(joint[k] - top) / total if known < 0 else float(k == known)
        if votes:
            log_likelihood += top + math.log(total) if known < 0 else joint[known]
            log_likelihood += math.log(prior_sum) + math.log(peak) * math.fsum(weight.values())
            classes += posterior[i]
        for n in votes:
            tally[layout.pair[n]] += weight[n] * posterior[i]
    return Expectation(log_likelihood, classes, tally, posterior)


def assert_same(found: Expectation, wanted: Expectation, tolerance: float = 1e-12) -> None:
    """Equal to the tolerance, or to what is left of it after subtracting logarithms of many thousands."""
    tolerance = max(tolerance, 2e-14 * abs(wanted.log_likelihood))
    assert found.log_likelihood == pytest.approx(wanted.log_likelihood, rel=tolerance, abs=tolerance)
    np.testing.assert_allclose(found.class_counts, wanted.class_counts, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(found.tally, wanted.tally, rtol=tolerance, atol=tolerance)
    assert found.posterior is not None
    np.testing.assert_allclose(found.posterior, wanted.posterior, rtol=tolerance, atol=tolerance)


@pytest.mark.slow
@every_form
@given(case=cases())
@settings(max_examples=150, deadline=None)
def test_both_sums_are_what_a_double_loop_gives(compiled: bool, case: Case) -> None:
    assert_same(kernels.expect(*case, posterior=True, compiled=compiled), brute_force(case))


@every_form
@given(case=cases())
def test_each_sum_alone_is_its_part_of_both(compiled: bool, case: Case) -> None:
    both = kernels.expect(*case, posterior=True, compiled=compiled)
    assert both.posterior is not None
    np.testing.assert_array_equal(kernels.posterior(*case, compiled=compiled), both.posterior)
    alone = kernels.tally(case.layout, both.posterior, compiled=compiled)
    np.testing.assert_allclose(alone, both.tally, rtol=1e-12, atol=1e-12)
    without = kernels.expect(*case, compiled=compiled)
    assert without.posterior is None
    np.testing.assert_array_equal(without.tally, both.tally)


@every_form
@pytest.mark.parametrize("n_classes", [2, 17])
def test_thousands_of_votes_on_a_task_neither_vanish_nor_depend_on_their_order(compiled: bool, n_classes: int) -> None:
    """First class 0 leads by far more than a number can hold, then class 1 catches up and wins by one vote."""
    label_probs = np.full((2, n_classes), 0.1)
    label_probs[0, 0] = label_probs[1, 1] = 0.9
    for pair in (np.repeat([0, 1], [2500, 2501]), np.repeat([1, 0], [2501, 2500])):
        layout = Layout(np.array([0, 5001, 5002]), np.append(pair, 0).astype(np.int32), None, 2)
        case = Case(layout, np.full(n_classes, 1 / n_classes), label_probs, None)
        found = kernels.expect(*case, posterior=True, compiled=compiled)
        assert_same(found, brute_force(case), tolerance=1e-8)  # 5,000 roundings of a sum of -6,000
        assert found.posterior is not None
        np.testing.assert_allclose(found.posterior[0, :2], [0.1, 0.9], rtol=1e-8)


@every_form
@pytest.mark.parametrize("weighted", [False, True])
def test_hundreds_of_votes_on_every_task(compiled: bool, weighted: bool) -> None:
    case = random_case(5, 5, n_tasks=20, votes=900, n_pairs=300, weighted=weighted, clamped=True, zeros=0.001)
    assert_same(kernels.expect(*case, posterior=True, compiled=compiled), brute_force(case))


@every_form
def test_a_zero_vetoes_a_class_and_vetoes_on_all_leave_an_answer(compiled: bool) -> None:
    label_probs = np.array([[0.0, 0.01, 0.5], [0.0, 0.0, 0.0], [0.0, 0.0, 0.3]])
    layout = Layout(np.array([0, 1, 2, 4]), np.array([0, 1, 0, 2], dtype=np.int32), None, 3)
    found = kernels.posterior(layout, np.array([0.9, 0.1, 0.0]), label_probs, compiled=compiled)
    np.testing.assert_allclose(found[0], [0, 1, 0], atol=1e-300)  # the prior vetoes class 2, the vote class 0
    np.testing.assert_allclose(found[1], [0.9, 0.1, 0], atol=1e-300)  # the vote vetoes all alike: the prior decides
    np.testing.assert_allclose(found[2], [0, 0.01 * 0.1 / 0.151, 0.15 / 0.151], atol=1e-12)  # one veto beats two


@every_form
def test_tasks_without_votes_have_the_prior_and_count_nowhere(compiled: bool) -> None:
    layout = Layout(np.array([0, 0, 0, 0]), np.empty(0, dtype=np.int32), None, 4)
    gold = np.array([-1, 1, -1], dtype=np.int32)
    found = kernels.expect(layout, np.array([1.0, 3.0]), np.ones((4, 2)), gold, posterior=True, compiled=compiled)
    assert found.log_likelihood == 0
    assert not found.class_counts.any()
    assert not found.tally.any()
    np.testing.assert_allclose(found.posterior, [[0.25, 0.75], [0, 1], [0.25, 0.75]])


@every_form
@pytest.mark.parametrize("weighted", [False, True])
def test_float32_tables_give_float32_answers_close_to_the_exact_ones(compiled: bool, weighted: bool) -> None:
    case = random_case(3, 40, n_tasks=50, n_pairs=30, weighted=weighted, clamped=True, zeros=0.1)
    found = kernels.expect(
        *case._replace(label_probs=case.label_probs.astype(np.float32)), posterior=True, compiled=compiled
    )
    assert found.posterior is not None
    assert found.tally.dtype == found.posterior.dtype == np.float32
    assert found.class_counts.dtype == np.float64
    assert_same(found, brute_force(case), tolerance=2e-5)


@every_form
@pytest.mark.parametrize("n_jobs", [2, 3, 64, -1])
@pytest.mark.parametrize("weighted", [False, True])
def test_threads_share_the_tasks_and_agree_to_the_bit_between_runs(compiled: bool, n_jobs: int, weighted: bool) -> None:
    case = random_case(8, 5, n_tasks=50, weighted=weighted, clamped=True)
    found = kernels.expect(*case, posterior=True, compiled=compiled, n_jobs=n_jobs)
    assert_same(found, brute_force(case))
    assert found.posterior is not None
    again = kernels.expect(*case, posterior=True, compiled=compiled, n_jobs=n_jobs)
    assert found.log_likelihood == again.log_likelihood
    np.testing.assert_array_equal(found.tally, again.tally)
    alone = kernels.tally(case.layout, found.posterior, compiled=compiled, n_jobs=n_jobs)
    np.testing.assert_allclose(alone, found.tally, rtol=1e-12)


@every_form
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_over_blocks_of_tasks_add_up(compiled: bool, weighted: bool) -> None:
    case = random_case(2, 3, n_tasks=30, weighted=weighted)
    whole = brute_force(case)
    blocks = [case.layout.slice_tasks(start, start + 10) for start in (0, 10, 20)]
    assert all(np.shares_memory(block.pair, case.layout.pair) for block in blocks)
    parts = [kernels.expect(block, *case[1:], posterior=True, compiled=compiled) for block in blocks]
    values, classes, tallies, posteriors = zip(*parts, strict=True)
    assert_same(Expectation(sum(values), sum(classes), sum(tallies), np.concatenate(posteriors)), whole)


@every_form
def test_inputs_may_be_read_only_and_stay_as_they_are(compiled: bool) -> None:
    case = random_case(4, 3, weighted=True, clamped=True, scale=5.0, zeros=0.2)
    arrays = [case.layout.offset, case.layout.pair, case.layout.weight, *case[1:]]
    before = [array.copy() for array in arrays]
    for array in arrays:
        array.flags.writeable = False
    kernels.expect(*case, posterior=True, compiled=compiled)
    for array, copy in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, copy)


@every_form
def test_a_nan_shows(compiled: bool) -> None:
    layout = Layout(np.array([0, 1, 2]), np.array([0, 1], dtype=np.int32), None, 2)
    found = kernels.expect(layout, np.ones(2), np.array([[np.nan, 0.5], [0.5, 0.5]]), compiled=compiled)
    assert math.isnan(found.log_likelihood)


@needs_numba
def test_no_threads_at_all_is_refused() -> None:
    with pytest.raises(UsageError, match=r"n_jobs .* got 0"):
        kernels.expect(*random_case(1, 2), compiled=True, n_jobs=0)


@every_form
def test_integers_for_a_posterior_are_counted_like_any_numbers(compiled: bool) -> None:
    case = random_case(9, 3, weighted=True)
    sure = np.eye(3, dtype=np.int64)[np.arange(case.layout.n_tasks) % 3]
    found = kernels.tally(case.layout, sure, compiled=compiled)
    np.testing.assert_allclose(found, kernels.tally(case.layout, sure.astype(float), compiled=False), rtol=1e-12)


@every_form
@pytest.mark.parametrize(
    "wrong",
    [
        {"prior": np.full(2, 0.5)},
        {"label_probs": np.ones((5, 3))},
        {"gold": np.zeros(6, dtype=np.int32)},
        {"gold": np.full(7, 3, dtype=np.int32)},
    ],
    ids=["prior", "label_probs", "gold", "class"],
)
def test_tables_that_do_not_fit_are_refused(compiled: bool, wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="must"):
        kernels.expect(*random_case(1, 3)._replace(**wrong), compiled=compiled)


@every_form
def test_a_posterior_that_does_not_fit_is_refused(compiled: bool) -> None:
    with pytest.raises(UsageError, match="posterior must be of shape"):
        kernels.tally(random_case(1, 3).layout, np.ones((6, 3)), compiled=compiled)


@every_form
@pytest.mark.parametrize(
    "changes",
    [
        {"pair": np.array([0, -1, 1], dtype=np.int32)},
        {"pair": np.array([0, 10**6, 1], dtype=np.int32)},
        {"pair": np.array([0, 2**32, 1])},
        {"offset": np.array([0, 2, 10**9])},
        {"offset": np.array([0, 10**9, 3])},
        {"offset": np.array([-(10**9), 2, 3])},
        {"weight": np.ones((3, 1))},
        {"weight": np.ones(1)},
    ],
    ids=range(8),
)
def test_machine_code_never_sees_invalid_codes(compiled: bool, changes: dict[str, Any]) -> None:
    columns = {"offset": np.array([0, 2, 3]), "pair": np.array([0, 1, 1], dtype=np.int32), "weight": None} | changes
    layout = Layout(**columns, n_pairs=2)
    prior, label_probs = np.full(2, 0.5), np.full((2, 2), 0.5)
    with pytest.raises(UsageError, match="layout"):
        kernels.expect(layout, prior, label_probs, compiled=compiled)
    with pytest.raises(UsageError, match="layout"):
        kernels.posterior(layout, prior, label_probs, compiled=compiled)
    with pytest.raises(UsageError, match="layout"):
        kernels.tally(layout, label_probs, compiled=compiled)


@every_form
def test_sums_of_another_shape_are_not_added_to(compiled: bool) -> None:
    case = random_case(1, 3)
    short = Expectation(0.0, np.zeros(3), np.zeros((2, 3)), None)
    with pytest.raises(UsageError, match="tally of accumulate_into must be of shape"):
        kernels.expect(*case, compiled=compiled, accumulate_into=short)
    posterior = np.full((case.layout.n_tasks, 3), 1 / 3)
    with pytest.raises(UsageError, match="accumulate_into must be of shape"):
        kernels.tally(case.layout, posterior, compiled=compiled, accumulate_into=np.zeros((2, 3)))
    with pytest.raises(UsageError, match="posterior must be of shape"):
        kernels.tally(case.layout, np.ones(case.layout.n_tasks), compiled=compiled)


@every_form
def test_sums_in_another_order_of_memory_are_added_to(compiled: bool) -> None:
    case = random_case(1, 3)
    alone = kernels.expect(*case, compiled=compiled)
    total = Expectation(0.0, np.zeros(3), np.asfortranarray(np.ones((6, 3))), None)
    found = kernels.expect(*case, compiled=compiled, accumulate_into=total)
    np.testing.assert_allclose(found.tally, alone.tally + 1)
    posterior = np.full((case.layout.n_tasks, 3), 1 / 3)
    found_tally = kernels.tally(
        case.layout, posterior, compiled=compiled, accumulate_into=np.asfortranarray(np.ones((6, 3)))
    )
    np.testing.assert_allclose(found_tally, kernels.tally(case.layout, posterior, compiled=compiled) + 1)
