"""Evaluate a mock model with Inspect and write the log twice: as .eval and as JSON."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, Target, includes, mean, scorer
from inspect_ai.solver import TaskState, generate

ANSWERS = ["0", "2", "5"]  # the last one is wrong


@scorer(metrics={"fluency": [mean()], "truth": [mean()]})
def quality() -> Any:
    """Score with two values."""

    async def score(state: TaskState, target: Target) -> Score:
        return Score(value={"fluency": 7, "truth": state.output.completion == target.text})

    return score


def make_output(text: str) -> ModelOutput:
    """Return an output with its usage, which is otherwise counted with a tokenizer from the network."""
    output = ModelOutput.from_content("mockllm/model", text)
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return output


for suffix in ("eval", "json"):
    samples = [Sample(id=f"q{n}", input=f"What is {n} + {n}?", target=str(2 * n)) for n in range(3)]
    task = Task(dataset=samples, solver=generate(), scorer=[includes(), quality()], name="sums", epochs=2)
    model = get_model("mockllm/model", custom_outputs=[make_output(text) for text in ANSWERS * 2])
    (log,) = eval(task, model=model, log_dir="logs", log_format=suffix, display="none", max_samples=1)
    shutil.copyfile(Path(log.location), f"log.{suffix}")
