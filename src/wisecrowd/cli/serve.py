"""``wisecrowd serve``: votes as they are cast, and answers at any moment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wisecrowd.cli._console import remark
from wisecrowd.cli._options import Quiet, flag

if TYPE_CHECKING:
    from wisecrowd.em import ConfusionEM

#: Addresses that only this machine can reach.
LOOPBACK = ("127.0.0.1", "localhost", "::1")


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
            help="dawid-skene, ibcc, lfc, one-coin, hds or zencrowd; auto is one-coin until tasks have two votes each, then "
            "dawid-skene.",
        ),
    ] = "auto",
    target: Annotated[
        float, typer.Option(metavar="P", help="How probable a label must be for its task to need no more votes.")
    ] = 0.95,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", show_default=False, help="The token in a file; else in the variable WISECROWD_TOKEN."
        ),
    ] = None,
    largest: Annotated[int, typer.Option(metavar="BYTES", min=1_000, help="A request's size at most.")] = 2_000_000,
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

    Label Studio sends annotations by itself: add a webhook to /webhooks/label-studio with that header.

    What was acknowledged is on the disk and survives a kill. The same vote sent twice counts once. Answers follow every vote at
    once, and a fit to all votes is made again and again. Open the link that is printed to see how it stands.
    """
    from wisecrowd.errors import UsageError

    if not 0 < target <= 1:
        raise UsageError(f"--target is the probability at which a task is done, for example 0.95; got {target}")
    if host not in LOOPBACK and not insecure:
        raise UsageError(
            f"other machines could listen in when votes and the token come to {host} without TLS; leave --host out and put a "
            "proxy with TLS before the service, or say --insecure"
        )
    early = _method("one-coin") if method == "auto" else None
    settled = _method("dawid-skene" if method == "auto" else method)
    _run(database, host, port, settled, early, target, token_file, largest, quiet=quiet)


def _method(name: str) -> ConfusionEM:
    from wisecrowd.em import ConfusionEM
    from wisecrowd.errors import UsageError
    from wisecrowd.live import Live
    from wisecrowd.registry import find

    found: Any = find(name)()
    if not isinstance(found, ConfusionEM):
        raise UsageError(f"{name} cannot follow votes one by one; use dawid-skene, ibcc or one-coin")
    Live(found)  # refuses those that cannot
    return found


def _run(
    database: str, host: str, port: int, method: ConfusionEM, early: ConfusionEM | None, target: float,
    token_file: Path | None, largest: int, *, quiet: bool,
) -> None:  # fmt: skip
    from wisecrowd.errors import MissingExtra

    try:
        from wisecrowd.serve._access import token_from
        from wisecrowd.serve._tables import hidden
        from wisecrowd.serve.keeper import Keeper
        from wisecrowd.serve.running import listen, run
        from wisecrowd.serve.store import Store
    except ImportError as error:
        raise MissingExtra("serve", "services") from error
    token, is_new = token_from(token_file)
    keeper = Keeper(Store(database), method, target, early=early)
    try:
        listening, address = listen(host, port)
        if not quiet:
            with keeper.lock:
                votes = sum(topic.live.n_votes for topic in keeper.topics())
            remark(f"Votes are kept in {hidden(database)}, {votes:,} so far; method {_named(method, early)}")
            if is_new:
                remark(f"A new token, for this run only: {token}")
            remark(
                f"Open {address}/{f'?token={token}' if is_new else '?token=… (yours)'} to see how it stands; Ctrl-C ends it"
            )
        run(keeper, token, listening, largest=largest)
    finally:
        keeper.close()


def _named(method: ConfusionEM, early: ConfusionEM | None) -> str:
    if early is None:
        return method.name
    return f"{early.name}, and {method.name} when tasks have two votes each"
