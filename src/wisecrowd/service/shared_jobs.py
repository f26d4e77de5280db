"""Jobs that several clients wait for, and that are cancelled when the last of them has gone."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

from starlette.requests import Request

Result = TypeVar("Result")


class ClientGone(Exception):
    """The client has closed its connection while it waited for a job.

    Examples
    --------
    >>> issubclass(ClientGone, Exception)
    True
    """


class JobInterrupted(Exception):
    """The server stops while a client waits for a job.

    Examples
    --------
    >>> issubclass(JobInterrupted, Exception)
    True
    """


class SharedJob(Generic[Result]):
    """A job with the number of clients that wait for it.

    Parameters
    ----------
    on_abandoned : callable
        Called when the last client has gone before the job has ended.

    Attributes
    ----------
    future : concurrent.futures.Future
        Result of the job.

    Examples
    --------
    >>> job = SharedJob(lambda: print("nobody waits"))
    >>> job.join(), job.join(), job.leave()
    (True, True, None)
    >>> job.leave()
    nobody waits
    >>> job.join()
    False
    """

    def __init__(self, on_abandoned: Callable[[], object]) -> None:
        self.future: Future[Result] = Future()
        self._on_abandoned = on_abandoned
        self._lock = threading.Lock()
        self._n_clients = 0
        self._is_abandoned = False

    @property
    def is_abandoned(self) -> bool:
        """True if all clients have gone before the job has ended."""
        return self._is_abandoned

    def join(self) -> bool:
        """Count one more client.

        Returns
        -------
        bool
            Whether the job can still be waited for; False if it was abandoned.
        """
        with self._lock:
            if self._is_abandoned:
                return False
            self._n_clients += 1
            return True

    def leave(self) -> None:
        """Count one client less."""
        with self._lock:
            self._n_clients -= 1
            if self._n_clients > 0 or self._is_abandoned or self.future.done():
                return
            self._is_abandoned = True
        self._on_abandoned()


async def wait_for_job(request: Request, job: SharedJob[Result], seconds: float) -> Result:
    """Wait for a job as long as the client does. The caller has joined the job.

    Parameters
    ----------
    request : starlette.requests.Request
        Request of the client, whose body is not used.
    job : SharedJob
        Job.
    seconds : float
        Maximum time to wait.

    Returns
    -------
    object
        Result of the job.

    Raises
    ------
    TimeoutError
        If the job takes too long.
    ClientGone
        If the client has closed its connection.
    JobInterrupted
        If the server stops.
    """
    loop, has_ended = asyncio.get_running_loop(), asyncio.Event()

    def notify(_: Future[Result]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody waits
            loop.call_soon_threadsafe(has_ended.set)

    job.future.add_done_callback(notify)
    ending: asyncio.Task[Any] = asyncio.ensure_future(has_ended.wait())
    departure: asyncio.Task[Any] = asyncio.ensure_future(_wait_for_departure(request))
    try:
        await asyncio.wait({ending, departure}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if job.future.done():
            return job.future.result()
        if departure.done():
            raise ClientGone
        raise TimeoutError
    except asyncio.CancelledError:
        raise JobInterrupted("the service is shutting down; try again in a moment") from None
    finally:
        ending.cancel()
        departure.cancel()
        job.leave()


async def _wait_for_departure(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
