"""toloka-kit: assignments that its client downloads and its users save.

    python integration/toloka.py [--venv FOLDER] [--record]

Toloka itself cannot be run. Its table of assignments, in the documented form, is served to the real client on loopback.
"""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from _running import Trial, main

from wisecrowd.io import read_project

TABLE = """INPUT:image\tOUTPUT:animal\tOUTPUT:colours\tGOLDEN:animal\tHINT:text\tASSIGNMENT:assignment_id\tASSIGNMENT:worker_id\tASSIGNMENT:status\tASSIGNMENT:started
a.jpg\tcat\t["red","blue"]\t\t\ta1\tw1\tAPPROVED\t2024-05-31T14:00:00.000
b.jpg\tdog\t["red"]\tdog\t\ta1\tw1\tAPPROVED\t2024-05-31T14:00:00.000
a.jpg\tcat\t["red"]\t\t\ta2\tw2\tAPPROVED\t2024-05-31T15:00:00.000
b.jpg\tcat\t\tdog\t\ta2\tw2\tAPPROVED\t2024-05-31T15:00:00.000
a.jpg\tdog\t["blue"]\t\t\ta3\tw3\tREJECTED\t2024-05-31T16:00:00.000
"""  # noqa: E501


class Toloka(BaseHTTPRequestHandler):
    """Server that answers every request with one table."""

    requested_paths: list[str] = []  # noqa: RUF012

    def do_GET(self) -> None:
        """Send the table."""
        self.requested_paths.append(self.path)
        self.send_response(200)
        self.send_header("Content-Type", "text/tab-separated-values; charset=utf-8")
        self.end_headers()
        self.wfile.write(TABLE.encode())

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def run_trial(context: Trial) -> None:
    """Serve the table, download it with toloka-kit, and read it."""
    print(f"toloka-kit {context.version('toloka-kit')}")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Toloka)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    context.run_inside("toloka_download.py", f"http://127.0.0.1:{server.server_port}", "7")
    server.shutdown()
    context.check(
        "it asked for the table of a pool",
        "/pools/7/assignments.tsv" in Toloka.requested_paths[0],
        Toloka.requested_paths,
    )
    Path("served.tsv").write_text(TABLE)
    served = read_project("served.tsv")
    for name in ("saved.tsv", "saved-with-index.tsv"):
        context.keep(Path(name))
        project = read_project(name)
        context.check(f"{name} is recognised", project.format == "toloka", project.format)
        for question in ("animal", "colours"):
            actual, expected = project.questions[question], served.questions[question]
            context.check(f"{name}: {question}", actual.crowd == expected.crowd, actual.crowd)
            context.check(
                f"{name}: excluded answers of {question}", actual.excluded == expected.excluded, actual.excluded
            )
        truth = project.questions["animal"].truth
        context.check(f"{name}: gold", truth is not None and truth.to_dict() == {"b.jpg": "dog"}, truth)


if __name__ == "__main__":
    # toloka-kit 1.2.3 came before later versions of these.
    main("toloka", ["toloka-kit==1.2.3", "pandas", "httpx<0.28", "cattrs<22.2", "attrs<23"], run_trial)
