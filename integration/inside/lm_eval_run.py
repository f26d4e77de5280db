"""Evaluate the dummy model of the LM Evaluation Harness on five questions."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

Path("questions.jsonl").write_text(
    "".join(json.dumps({"question": f"question {number}", "key": number % 2}) + "\n" for number in range(5))
)
Path("sums.yaml").write_text(
    "task: sums\ndataset_path: json\ndataset_kwargs: {data_files: {test: questions.jsonl}}\ntest_split: test\n"
    "output_type: multiple_choice\ndoc_to_text: '{{question}}'\ndoc_to_choice: [a, b]\ndoc_to_target: key\n"
    "metric_list: [{metric: acc}, {metric: acc_norm}]\n"
)
subprocess.run(
    [sys.executable, "-m", "lm_eval", "--model", "dummy", "--tasks", "sums", "--include_path", ".", "--output_path", "out",
     "--log_samples"],
    check=True,
)  # fmt: skip
Path("dummy").mkdir()
shutil.copyfile(next(Path("out").rglob("samples_sums_*.jsonl")), "dummy/samples_sums.jsonl")
