"""Evaluate four cases with two metrics of DeepEval that need no model."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

os.environ |= {"DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "DEEPEVAL_RESULTS_FOLDER": "results", "HOME": os.getcwd()}

from deepeval import evaluate
from deepeval.metrics import BaseMetric
from deepeval.test_case import LLMTestCase


class Contains(BaseMetric):
    """Metric by a word in the output."""

    def __init__(self, word: str) -> None:
        self.word, self.threshold, self.evaluation_model, self.async_mode = word, 0.5, "mock", False

    def measure(self, test_case: LLMTestCase, *args: Any, **kwargs: Any) -> float:
        """Score a case."""
        self.score = 1.0 if self.word in (test_case.actual_output or "") else 0.25
        self.success, self.reason = self.score >= self.threshold, "by word"
        return self.score

    async def a_measure(self, test_case: LLMTestCase, *args: Any, **kwargs: Any) -> float:
        """Score a case."""
        return self.measure(test_case)

    def is_successful(self) -> bool:
        """Return whether the score is high."""
        return bool(self.success)

    @property
    def __name__(self) -> str:  # type: ignore[override]
        return f"Contains {self.word}"


cases = [LLMTestCase(name=f"case {n}", input=f"q{n}", actual_output="cat" if n % 2 else "dog") for n in range(4)]
result = evaluate(test_cases=cases, metrics=[Contains("cat"), Contains("dog")])
Path("result.json").write_text(result.model_dump_json())
shutil.copyfile(next(Path("results").glob("test_run_*.json")), "test_run.json")
