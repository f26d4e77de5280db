"""``wisecrowd serve``: an HTTP service that takes votes and returns labels."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from wisecrowd import __version__
from wisecrowd.base.default_method import DEFAULT_METHOD
from wisecrowd.cli._answers import refuse_objects_and_texts
from wisecrowd.cli._console import print_note
from wisecrowd.cli._options import Quiet, flag, with_options
from wisecrowd.cli._reading import Reading

if TYPE_CHECKING:
    from wisecrowd.em.confusion import ConfusionEM
    from wisecrowd.service.coordinator import Coordinator

#: Formats of the messages.
LOG_FORMATS = ("text", "json")
#: Votes of a file that are written in one transaction.
VOTES_PER_TRANSACTION = 2_000


@with_options(Reading)
def serve(
    database: Annotated[
        str,
        typer.Argument(
            metavar="DATABASE",
            help="SQLite file, created if missing, or URL of a PostgreSQL database: postgresql+psycopg://host/name",
        ),
    ] = "wisecrowd.db",
    *,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on. Default: this machine only.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="Port; 0 chooses a free one.")] = 8765,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            "-m",
            metavar="NAME",
            help="model-average, dawid-skene, ibcc, lfc, one-coin, hds or zencrowd.",
        ),
    ] = DEFAULT_METHOD,
    begin_with: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            metavar="FILE",
            show_default=False,
            help="Earlier votes to load: a table or an export of a labelling tool. Loading them again changes nothing.",
        ),
    ] = None,
    target: Annotated[float, typer.Option(metavar="P", help="Confidence from which a task needs no more votes.")] = 0.9,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", show_default=False, help="File with the token. Default: variable WISECROWD_TOKEN."
        ),
    ] = None,
    max_bytes: Annotated[int, typer.Option(metavar="BYTES", min=1_000, help="Maximum size of a request.")] = 4_000_000,
    max_classes: Annotated[
        int, typer.Option(metavar="N", min=2, help="Maximum number of classes of a question; memory grows with it.")
    ] = 1_000,
    max_connections: Annotated[
        int, typer.Option(metavar="N", min=1, help="Maximum number of simultaneous connections.")
    ] = 2_000,
    max_connections_per_address: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, help="Maximum number of connections of a client address that have not sent the token."
        ),
    ] = 200,
    header_seconds: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0.1, help="Time within which a client must send the header of a request."),
    ] = 10.0,
    body_seconds: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0.1, help="Time within which a client must send the rest of a request."),
    ] = 60.0,
    insecure: Annotated[
        bool, flag("--insecure", help="Listen on other addresses without TLS, for use behind a proxy with TLS.")
    ] = False,
    log_format: Annotated[
        str, typer.Option(metavar="FORMAT", help="Messages on standard error: text, or json with one object per line.")
    ] = "text",
    quiet: Quiet = False,
    reading: Reading,
) -> None:
    """Take votes over HTTP while people label, and return labels at any time.

    Choose a token and start the service:

      export WISECROWD_TOKEN=$(openssl rand -hex 24)
      wisecrowd serve votes.db

    Send a vote and read the labels with that token:

      URL=http://127.0.0.1:8765
      AUTH="Authorization: Bearer $WISECROWD_TOKEN"
      VOTE='{"task": "t1", "worker": "ann", "label": "good"}'
      curl -H "$AUTH" -d "$VOTE" $URL/votes
      curl -H "$AUTH" $URL/consensus

    Label Studio sends annotations through a webhook to /webhooks/label-studio
    with the same header. Load earlier votes from an export or a table:

      wisecrowd serve votes.db --from export.json
      wisecrowd serve votes.db --from votes.csv --task photo --label answer

    An acknowledged vote is on disk and survives a crash. A vote that is sent
    twice counts once. Labels are updated with every vote, and a refit to all
    votes follows regularly. The link that is printed opens the status page.
    """
    from wisecrowd.errors import UsageError

    if not 0 < target <= 1:
        raise UsageError(f"--target must be a probability above 0, such as 0.9; got {target}")
    check_host(host, insecure=insecure)
    if log_format not in LOG_FORMATS:
        raise UsageError(f"--log-format must be {' or '.join(LOG_FORMATS)}; got {log_format!r}")
    if not begin_with and reading != Reading(max_unpacked=reading.max_unpacked):
        raise UsageError(
            f"{' '.join(reading.to_words({}))} describes a file of votes, but none is given; add it with --from, or leave the "
            "option out"
        )
    limits = {
        "connections": max_connections, "connections_per_address": max_connections_per_address,
        "header_seconds": header_seconds, "body_seconds": body_seconds,
    }  # fmt: skip
    _run(
        database, host, port, _method(method), target, token_file, max_bytes, max_classes, limits, begin_with or [],
        reading, as_json=log_format == "json", quiet=quiet,
    )  # fmt: skip


def _method(name: str) -> ConfusionEM:
    from wisecrowd.base.registry import find
    from wisecrowd.em.confusion import ConfusionEM
    from wisecrowd.em.live import LIVE_METHODS, LiveModel
    from wisecrowd.errors import UsageError

    kind: Any = find(name)
    if not issubclass(kind, ConfusionEM):
        raise UsageError(f"{name} cannot be updated vote by vote; use {LIVE_METHODS}")
    model = kind()
    LiveModel(model)  # refuses those that cannot
    return model


def _run(
    database: str, host: str, port: int, method: ConfusionEM, target: float, token_file: Path | None, max_bytes: int,
    max_classes: int, limits: dict[str, Any], begin_with: list[Path], reading: Reading, *, as_json: bool,
    quiet: bool,
) -> None:  # fmt: skip
    from wisecrowd.errors import MissingExtra, UsageError

    try:
        from wisecrowd.service.authentication import load_token
        from wisecrowd.service.connections import ConnectionLimits
        from wisecrowd.service.coordinator import Coordinator
        from wisecrowd.service.database import find_passwords, mask_password
        from wisecrowd.service.logs import write_json_logs, write_warnings_only
        from wisecrowd.service.server import bind_socket, run
        from wisecrowd.service.store import Store
    except ImportError as error:
        raise MissingExtra("serve", "services") from error
    token, is_new = load_token(token_file)
    if as_json and is_new:
        raise UsageError(
            "--log-format json needs a token of your own, because logs contain no secrets; set WISECROWD_TOKEN, or use --token-file"
        )
    log = logging.getLogger("wisecrowd.service")
    bound_socket, address = bind_socket(host, port)  # before a database is made for nothing
    with (
        write_json_logs([token, *find_passwords(database)]) if as_json else write_warnings_only(),
        exit_on_sigterm(),
        contextlib.closing(bound_socket),
        contextlib.closing(
            Coordinator(
                Store(database, on_wait=log.warning if as_json else print_note, max_classes=max_classes), method, target
            )
        ) as coordinator,
    ):
        for path in begin_with:
            _load_votes(coordinator, path, reading, quiet=quiet or as_json)
        if as_json:
            with coordinator.lock:
                votes = sum(question.live.n_votes for question in coordinator.questions())
            fields = {
                "version": __version__, "database": mask_password(database), "n_votes": votes, "method": method.name,
                "address": address,
            }  # fmt: skip
            log.info("the service starts", extra={"fields": fields})
        elif not quiet:
            with coordinator.lock:
                votes = sum(question.live.n_votes for question in coordinator.questions())
            print_note(f"Database {mask_password(database)} with {votes:,} votes; method {method.name}")
        if is_new:  # the user cannot know it otherwise
            print_note(f"New token for this run: {token}")
        if is_new or not (quiet or as_json):
            print_note(f"Status page: {describe_link(address, token, is_new=is_new)} (stop with Ctrl-C)")
        with contextlib.suppress(KeyboardInterrupt, Terminated):  # Ctrl-C and SIGTERM stop the service
            run(coordinator, token, bound_socket, max_bytes=max_bytes, limits=ConnectionLimits(**limits))


def describe_link(address: str, token: str, *, is_new: bool) -> str:
    """Return the link that opens a page in a browser, or how to make it where the user's token must not be shown.

    Parameters
    ----------
    address : str
        Address of the server.
    token : str
        Token of the server.
    is_new : bool
        Whether the token was made for this run, so that nobody knows it otherwise. A token of the user is shown on a terminal
        only: other output may be a log.

    Returns
    -------
    str
    """
    if is_new or sys.stderr.isatty():
        return f"{address}/?token={quote(token, safe='')}"
    return f"{address}/?token= followed by your token"


class Terminated(SystemExit):
    """SIGTERM was received."""


@contextlib.contextmanager
def exit_on_sigterm() -> Iterator[None]:
    """Exit by an exception on SIGTERM, so that processes and semaphores are released; uvicorn does so only while it runs.

    Ctrl-C is the usual way to stop these commands. Errors afterwards are therefore printed as errors, not as an interruption.
    """
    import signal
    import threading

    def terminate(*_: object) -> None:
        raise Terminated(128 + signal.SIGTERM)

    if threading.current_thread() is not threading.main_thread():  # Python handles signals in the main thread only
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    signal.signal(signal.SIGTERM, terminate)
    if callable(before[signal.SIGINT]):  # not ignored
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _load_votes(coordinator: Coordinator, path: Path, reading: Reading, *, quiet: bool) -> None:
    """Write the votes of a file to the service, one transaction after the other."""
    from collections import Counter
    from itertools import islice

    from wisecrowd.service.events import Upsert
    from wisecrowd.service.vote_files import read_events

    source = reading.open(path)
    if not source.format.is_tool:  # the questions of a tool are distinguished when they are read
        refuse_objects_and_texts(path, reading, "serve")
    count: Counter[str] = Counter()
    n_records, n_answers = 0, 0
    loaded: set[str] = set()
    # The last of several votes counts, as in the service.
    rule = "last" if reading.duplicates == "error" else reading.duplicates
    notes: list[str] = []
    events = read_events(source, on_note=notes.append, **reading.read_arguments() | {"duplicates": rule})
    while part := list(islice(events, VOTES_PER_TRANSACTION)):
        count.update(coordinator.apply(part).result().outcomes)
        for event in part:
            if isinstance(event, Upsert):
                n_records += len(event.records)
                n_answers += 1
                loaded.update(record.question for record in event.records)
    if quiet:
        return
    # An annotation of Label Studio answers several questions.
    counted, of_votes = ("Votes", "") if n_records == n_answers else ("Annotations", f", with {n_records:,} votes")
    print_note(
        f"{counted} in {path}: {count['new']:,} new, {count['changed']:,} changed, {count['unchanged']:,} unchanged{of_votes}"
    )
    for note in notes:
        print_note(f"Note: {path}: {note}")
    for name, other in find_second_copies(loaded, (state.vocabulary.name for state in coordinator.questions())):
        print_note(
            f"Note: {path}: the question '{name}' is stored beside '{other}'. If both are one question of one project, its "
            "votes are now stored twice, because a file did not name the project; load the export in JSON only, into a new database"
        )


def find_second_copies(loaded: Iterable[str], stored: Iterable[str]) -> list[tuple[str, str]]:
    """Return questions that are probably stored twice: once with the number of their project, and once without.

    Parameters
    ----------
    loaded : iterable of str
        Questions of a file.
    stored : iterable of str
        Questions of the database.

    Returns
    -------
    list of (str, str)
        Each question of the file with the other question.

    Examples
    --------
    >>> find_second_copies(["mood", "stars"], ["2:mood", "mood", "stars"])
    [('mood', '2:mood')]
    """
    names = list(stored)
    return [
        (name, other)
        for name in sorted(loaded)
        for other in names
        if other.endswith(f":{name}") or name.endswith(f":{other}")
    ]


def check_host(host: str, *, insecure: bool) -> None:
    """Raise an error if other machines could reach an address and the user has not allowed it.

    Parameters
    ----------
    host : str
        Address to listen on.
    insecure : bool
        Whether the user allows it.
    """
    from wisecrowd.errors import UsageError

    if not _is_loopback(host) and not insecure:
        raise UsageError(
            f"--host {host} would send votes and the token unencrypted over the network; leave --host out and use a proxy "
            "with TLS, or add --insecure"
        )


def _is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    import ipaddress

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
