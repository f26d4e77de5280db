"""The guards guard: they are shown what they must stop and what they must let pass.

In processes of their own, because what the guards must stop would stop this test too.
"""

from __future__ import annotations

from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"


@pytest.fixture
def guarded(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeconftest(CONFTEST.read_text(encoding="utf-8"))
    return pytester


@pytest.mark.slow
def test_global_randomness_is_stopped_and_own_generators_are_not(guarded: pytest.Pytester) -> None:
    guarded.makepyfile(
        """
        import random
        import numpy as np
        from hypothesis import given, strategies as st

        def test_draws(): random.random()
        def test_draws_with_numpy(): np.random.rand()
        def test_seeds(): np.random.seed(0)

        def test_own_generator(): np.random.default_rng(0).random(), random.Random(0).random()

        @given(st.integers())
        def test_property(number): assert number == number
        """
    )
    result = guarded.runpytest_subprocess("-rE")
    result.assert_outcomes(passed=5, errors=3)
    result.stdout.fnmatch_lines(["ERROR *::test_draws*", "ERROR *::test_draws_with_numpy*", "ERROR *::test_seeds*"])


@pytest.mark.slow
def test_markdown_examples_end_at_the_fence_and_write_elsewhere(guarded: pytest.Pytester) -> None:
    guarded.makefile(
        ".md",
        right="```python\n>>> 1 + 1\n2\n```\nand more words\n",
        wrong="```python\n>>> 1 + 1\n3\n```\n",
        writes="```python\n>>> import pathlib\n>>> pathlib.Path('votes.csv').write_text('task')\n4\n```\n",
    )
    result = guarded.runpytest_subprocess("--doctest-glob=*.md")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["FAILED wrong.md::wrong.md"])
    assert not (guarded.path / "votes.csv").exists()


@pytest.mark.slow
def test_the_fast_tier_leaves_out_what_is_marked_and_stops_heavy_imports(guarded: pytest.Pytester) -> None:
    heavy = guarded.mkpydir("nn")
    (heavy / "test_network.py").write_text("raise AssertionError('this file is not even imported')")
    guarded.makepyfile(
        test_tiers="""
        import sys, types
        import pytest

        @pytest.mark.parametrize("name", ["lagnn", "majority-vote"])
        def test_every_method(name): assert name != "lagnn"
        @pytest.mark.slow
        def test_slow(): raise AssertionError
        def test_heavy(): sys.modules["torch"] = types.ModuleType("torch")
        def test_after_it(): pass
        """
    )
    guarded.makeini("[pytest]\nmarkers =\n" + "".join(f"  {mark}\n" for mark in ("torch", "slow")))
    result = guarded.runpytest_subprocess("--fast", "-rE")
    result.assert_outcomes(passed=3, errors=1, deselected=2)
    result.stdout.fnmatch_lines(["ERROR *::test_heavy*imports torch; mark the test*"])
    guarded.runpytest_subprocess("--fast", "-k", "heavy or slow", "-m", "slow").assert_outcomes(deselected=5)
