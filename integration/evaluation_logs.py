"""Inspect, MLflow, DeepEval, the LM Evaluation Harness and promptfoo: logs of runs with mock models are read.

python integration/evaluation_logs.py [--venv FOLDER] [--record]

The four Python tools share an environment. promptfoo is installed with npm, if there is one, into the folder of the trial.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from _running import Trial, main

from wisecrowd.io.evaluations.evaluation_log import read_evaluation_log

PROMPTFOO = "promptfoo@0.121.20"
CONFIG = """
prompts: ["Say {{word}}", "Repeat {{word}}"]
providers: [echo]
tests:
  - vars: {word: cat}
    assert: [{type: contains, value: cat}, {type: icontains, value: say, metric: says}]
  - vars: {word: dog}
    assert: [{type: contains, value: owl}, {type: icontains, value: say, metric: says}]
"""
#: By file: script that writes it, format, numbers of scores and labels, and the sum of the scores.
EXPECTED = {
    "log.eval": ("inspect_run.py", "inspect", 18, 0, 2 * (2 + 21 + 2)),
    "log.json": ("inspect_run.py", "inspect", 18, 0, 2 * (2 + 21 + 2)),
    "traces.jsonl": ("mlflow_run.py", "mlflow", 8, 4, 2 + 1.5),
    "traces.parquet": ("mlflow_run.py", "mlflow", 8, 4, 2 + 1.5),
    "test_run.json": ("deepeval_run.py", "deepeval", 8, 0, 5.0),
    "result.json": ("deepeval_run.py", "deepeval", 8, 0, 5.0),
    "dummy/samples_sums.jsonl": ("lm_eval_run.py", "lm-eval", 10, 0, None),
    "promptfoo.json": (None, "promptfoo", 8, 0, 2 + 2),
}


def run_trial(context: Trial) -> None:
    """Run every tool, and read what it wrote."""
    for package in ("inspect-ai", "mlflow", "deepeval", "lm-eval"):
        print(f"{package} {context.version(package)}")
    has_promptfoo = run_promptfoo(context)
    done: set[str] = set()
    for name, (script, form, n_scores, n_labels, total) in EXPECTED.items():
        if script is None and not has_promptfoo:
            print("  skip  promptfoo: there is no npm")
            continue
        if script is not None and script not in done:
            context.run_inside(script)
            done.add(script)
        log = read_evaluation_log(name)
        facts = (log.format, len(log.scores), len(log.labels))
        context.check(f"{name} is read", facts == (form, n_scores, n_labels), facts)
        if total is not None:
            context.check(
                f"{name}: sum of scores", abs(log.scores["score"].sum() - total) < 1e-9, log.scores["score"].sum()
            )
        context.keep(Path(name), Path(name).name)


def run_promptfoo(context: Trial) -> bool:
    """Install and run promptfoo with a provider that repeats the prompt; return False without npm."""
    npm = shutil.which("npm")
    if npm is None:
        return False
    Path("promptfooconfig.yaml").write_text(CONFIG)
    environment = os.environ | {
        "PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1", "PROMPTFOO_CONFIG_DIR": str(context.folder / "home"),
    }  # fmt: skip
    subprocess.run([npm, "install", "--no-fund", "--no-audit", "--silent", PROMPTFOO], check=True)
    command = [
        "node_modules/.bin/promptfoo",
        "eval",
        "-c",
        "promptfooconfig.yaml",
        "-o",
        "promptfoo.json",
        "--no-cache",
    ]
    process = subprocess.run(command, env=environment, capture_output=True, text=True)
    if not Path("promptfoo.json").exists():  # failed assertions have an exit code, too
        raise RuntimeError(process.stderr[-2000:])
    return True


if __name__ == "__main__":
    packages = ["inspect_ai==0.3.285", "mlflow==3.17.2", "deepeval==4.3.1", "lm-eval==0.4.13"]
    main("evaluation_logs", packages, run_trial)
