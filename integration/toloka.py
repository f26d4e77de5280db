"""toloka-kit: assignments that it downloads, and its users save.

    python integration/toloka.py [--venv FOLDER] [--record]

Toloka itself cannot be run: its table of assignments, in the documented form, is served on loopback to the real client.
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
    """One table, whoever asks."""

    asked: list[str] = []  # noqa: RUF012

    def do_GET(self) -> None:
        """Give the table."""
        self.asked.append(self.path)
        self.send_response(200)
        self.send_header("Content-Type", "text/tab-separated-values; charset=utf-8")
        self.end_headers()
        self.wfile.write(TABLE.encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def trial(tried: Trial) -> None:
    """Serve, download, read."""
    print(f"toloka-kit {tried.version('toloka-kit')}")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Toloka)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    tried.run_inside("toloka_download.py", f"http://127.0.0.1:{server.server_port}", "7")
    server.shutdown()
    tried.check("it asked for the table of a pool", "/pools/7/assignments.tsv" in Toloka.asked[0], Toloka.asked)
    Path("served.tsv").write_text(TABLE)
    served = read_project("served.tsv")
    for name in ("saved.tsv", "saved-with-index.tsv"):
        tried.keep(Path(name))
        project = read_project(name)
        tried.check(f"{name} is recognised", project.format == "toloka", project.format)
        for question in ("animal", "colours"):
            found, wanted = project.questions[question], served.questions[question]
            tried.check(f"{name}: {question}", found.crowd == wanted.crowd, found.crowd)
            tried.check(f"{name}: left out of {question}", found.excluded == wanted.excluded, found.excluded)
        truth = project.questions["animal"].truth
        tried.check(f"{name}: gold", truth is not None and truth.to_dict() == {"b.jpg": "dog"}, truth)


if __name__ == "__main__":
    # toloka-kit 1.2.3 came before later versions of these.
    main("toloka", ["toloka-kit==1.2.3", "pandas", "httpx<0.28", "cattrs<22.2", "attrs<23"], trial)
