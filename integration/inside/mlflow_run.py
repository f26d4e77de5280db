"""Log traces with assessments of people, judges and code, and write them as JSON lines and Parquet."""

from __future__ import annotations

import json

import mlflow
from mlflow.entities import AssessmentSource

mlflow.set_tracking_uri("sqlite:///mlflow.db")
mlflow.set_experiment("answers")
for number in range(4):
    with mlflow.start_span(name="answer") as span:
        span.set_inputs({"question": f"q{number}"})
        span.set_outputs({"answer": str(number)})
    mlflow.flush_trace_async_logging()
    for name, value, kind, who in (
        ("relevance", number % 2 == 0, "LLM_JUDGE", "mock:/judge"),
        ("relevance", number > 0, "HUMAN", "ann@example.com"),
        ("length", number / 4, "CODE", "len"),
    ):
        mlflow.log_feedback(trace_id=span.trace_id, name=name, value=value, source=AssessmentSource(kind, who))
    source = AssessmentSource("HUMAN", "ann@example.com")
    mlflow.log_expectation(trace_id=span.trace_id, name="expected", value=str(number), source=source)
frame = mlflow.search_traces()[["trace_id", "assessments"]]
frame.to_json("traces.jsonl", orient="records", lines=True, default_handler=str)
frame.assign(assessments=frame["assessments"].map(lambda value: json.dumps(value, default=str))).to_parquet(
    "traces.parquet"
)
