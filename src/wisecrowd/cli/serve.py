"""``wisecrowd serve``: votes as they are cast, and answers at any moment."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.cli._console import remark
from wisecrowd.cli._options import Quiet, flag

if TYPE_CHECKING:
    from wisecrowd.em.confusion import ConfusionEM
    from wisecrowd.service.coordinator import Coordinator

#: Votes of a file that are told at once.
AT_ONCE = 2_000


def serve(
    database: Annotated[
        str,
        typer.Argument(
            metavar="DATABASE",
            help="A file, made if it is not there, or the URL of a PostgreSQL database: postgresql+psycopg://host/name",
        ),
    ] = "wisecrowd.db",
    *,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen; this machine alone unless given.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="Port; 0 takes a free one.")] = 8765,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            "-m",
            metavar="NAME",
            help="dawid-skene, ibcc, lfc, one-coin, hds or zencrowd; auto is one-coin until half of the tasks have two votes, "
            "then dawid-skene.",
        ),
    ] = "auto",
    begin_with: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            metavar="FILE",
            show_default=False,
            help="Votes that were cast before: a table, or an export of a labelling tool. Told again, they are the same.",
        ),
    ] = None,
    target: Annotated[
        float, typer.Option(metavar="P", help="How probable a label must be for its task to need no more votes.")
    ] = 0.95,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", show_default=False, help="The token in a file; else in the variable WISECROWD_TOKEN."
        ),
    ] = None,
    largest: Annotated[int, typer.Option(metavar="BYTES", min=1_000, help="A request's size at most.")] = 4_000_000,
    insecure: Annotated[
        bool, flag("--insecure", help="Listen to other machines without TLS; put a proxy with TLS before it.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Take votes while they are cast, and answer at any moment.

      export WISECROWD_TOKEN=$(openssl rand -hex 24)
      wisecrowd serve votes.db

    A vote is sent, and answers are asked for, with that token:

      URL=http://127.0.0.1:8765
      AUTH="Authorization: Bearer $WISECROWD_TOKEN"
      VOTE='{"task": "t1", "worker": "ann", "label": "good"}'
      curl -H "$AUTH" -d "$VOTE" $URL/votes
      curl -H "$AUTH" $URL/consensus

    Label Studio sends annotations by itself: add a webhook to /webhooks/label-studio with that header. What was there before is
    in an export, and votes of other tools in tables:

      wisecrowd serve votes.db --from export.json

    What was acknowledged is on the disk and survives a kill. The same vote sent twice counts once. Answers follow every vote at
    once, and a fit to all votes is made again and again. Open the link that is printed to see how it stands.
    """
    from wisecrowd.errors import UsageError

    if not 0 < target <= 1:
        raise UsageError(f"--target is the probability at which a task is done, for example 0.95; got {target}")
    if not _is_loopback(host) and not insecure:
        raise UsageError(
            f"other machines could listen in when votes and the token come to {host} without TLS; leave --host out and put a "
            "proxy with TLS before the service, or say --insecure"
        )
    early = _method("one-coin") if method == "auto" else None
    settled = _method("dawid-skene" if method == "auto" else method)
    _run(database, host, port, settled, early, target, token_file, largest, begin_with or [], quiet=quiet)


def _method(name: str) -> ConfusionEM:
    from wisecrowd.base.registry import find
    from wisecrowd.em.confusion import ConfusionEM
    from wisecrowd.em.live import Live
    from wisecrowd.errors import UsageError

    kind: Any = find(name)
    if not issubclass(kind, ConfusionEM):
        raise UsageError(
            f"{name} cannot follow votes one by one; use dawid-skene, ibcc, lfc, one-coin, hds or zencrowd"
        )
    found = kind()
    Live(found)  # refuses those that cannot
    return found


def _run(
    database: str, host: str, port: int, method: ConfusionEM, early: ConfusionEM | None, target: float,
    token_file: Path | None, largest: int, begin_with: list[Path], *, quiet: bool,
) -> None:  # fmt: skip
    from wisecrowd.errors import MissingExtra

    try:
        from wisecrowd.service.access import token_from
        from wisecrowd.service.coordinator import Coordinator
        from wisecrowd.service.database_schema import hidden
        from wisecrowd.service.server import listen, run
        from wisecrowd.service.store import Store
    except ImportError as error:
        raise MissingExtra("serve", "services") from error
    token, is_new = token_from(token_file)
    listening, address = listen(host, port)  # before a database is made for nothing
    with (
        contextlib.closing(listening),
        contextlib.closing(Coordinator(Store(database), method, target, early=early)) as keeper,
    ):
        for path in begin_with:
            _tell(keeper, path, quiet=quiet)
        if not quiet:
            with keeper.lock:
                votes = sum(topic.live.n_votes for topic in keeper.topics())
            remark(f"Votes are kept in {hidden(database)}, {votes:,} so far; method {_named(method, early)}")
        if is_new:  # which nobody could know otherwise
            remark(f"A new token, for this run only: {token}")
            remark(f"Open {address}/?token={token} to see how it stands; Ctrl-C ends it")
        elif not quiet:
            remark(f"Open {address}/?token= with your token behind it to see how it stands; Ctrl-C ends it")
        with contextlib.suppress(KeyboardInterrupt):  # which is how it is ended
            run(keeper, token, listening, largest=largest)


def _tell(keeper: Coordinator, path: Path, *, quiet: bool) -> None:
    """Have what is in a file written, some at a time."""
    from collections import Counter
    from itertools import islice

    from wisecrowd.cli._reading import located
    from wisecrowd.service.uploads import told_in

    count: Counter[str] = Counter()
    told = told_in(located(path))
    while part := list(islice(told, AT_ONCE)):
        count.update(keeper.tell(part).result().outcomes)
    if not quiet:
        remark(f"Votes in {path}: {count['new']:,} new, {count['changed']:,} changed, {count['same']:,} as they were")


def _is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    import ipaddress

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _named(method: ConfusionEM, early: ConfusionEM | None) -> str:
    if early is None:
        return method.name
    return f"{early.name}, and {method.name} when half of the tasks have two votes"
