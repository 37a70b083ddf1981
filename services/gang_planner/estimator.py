"""Computes when waiting gangs are expected to start, in a copy of this process.

A forecast runs the planner's own cycles for minutes of processor time, and changes its state. So it
runs in a fork: the copy costs nothing that is not changed, is of one instant, and cannot disturb
what the planner follows. It only computes, writes its result to a pipe, and ends: no thread, no
connection and no file of the planner is used in it.
"""

import asyncio
import contextlib
import gc
import logging
import os
import signal
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, NoReturn, TypeAlias, TypeVar

import msgspec

from services.gang_planner.core.forecast.estimates import estimates_of
from services.gang_planner.core.forecast.forecast import StartForecast, forecast
from services.gang_planner.core.forecast.present import Present
from services.gang_planner.core.forecast.suggestions import Change, starts_with, suggestions_for
from services.gang_planner.core.planner import Planner
from services.gang_planner.core.state.past_runs import PartsOfLimits
from shared.contracts.questions import (
    ESTIMATES_PAGE,
    EstimatesAnswer,
    StartEstimate,
    SuggestionsAnswer,
)

log = logging.getLogger(__name__)

#: Processor time of one forecast. There are two in a run, so estimates are a minute old at most.
_FORECAST_S: Final = 10.0
#: A run is given up after this.
_RUN_S: Final = 120.0
#: After this no more changes are tried.
_SUGGESTIONS_S: Final = 5.0
#: The pause after a run, as a multiple of what it took.
_REST: Final = 1.0
#: The copy is no more urgent than what is idle.
_NICE: Final = 15
_DESCRIPTORS_MAX: Final = 1 << 20
_OOM_SCORE: Final = Path("/proc/self/oom_score_adj")


_Estimates: TypeAlias = tuple[StartEstimate, ...]
_Result = TypeVar("_Result")


class _Failure(msgspec.Struct, tag="failure"):
    """Instead of a result."""

    why: str


class Estimator:
    """The newest estimates of a standby planner."""

    def __init__(self, planner: Planner, now_ms: Callable[[], int], every_s: float) -> None:
        self._planner = planner
        self._now_ms = now_ms
        self._every_s = every_s
        self._as_of_ms = 0
        self._estimates: tuple[StartEstimate, ...] = ()

    async def run(self, may_run: Callable[[], bool]) -> None:
        """Keep the estimates up to date, while `may_run` says that this planner is a standby that
        has read everything.
        """
        while True:
            begun_s = time.monotonic()
            if may_run():
                await self._estimate()
            took_s = time.monotonic() - begun_s
            await asyncio.sleep(max(self._every_s - took_s, _REST * took_s))

    async def _estimate(self) -> None:
        as_of_ms = self._now_ms()
        try:
            estimates = await _in_copy(self._planner, as_of_ms) if self._planner.has_waiting else ()
        except EstimateFailed as error:
            log.error("no estimates of starts: %s", error)
            return
        self._as_of_ms, self._estimates = as_of_ms, estimates

    def page(self, after: str) -> EstimatesAnswer:
        """The estimates of gangs whose ids are greater."""
        rest = [estimate for estimate in self._estimates if estimate.gang_id > after]
        return EstimatesAnswer(
            as_of_ms=self._as_of_ms,
            estimates=tuple(rest[:ESTIMATES_PAGE]),
            more=len(rest) > ESTIMATES_PAGE,
        )


class EstimateFailed(Exception):
    """The copy has no estimates, for this reason."""


async def _in_copy(planner: Planner, now_ms: int) -> _Estimates:
    """As `estimates_now`; at most for `_RUN_S`."""
    copy = _start(partial(_both, planner, now_ms))
    try:
        async with asyncio.timeout(_RUN_S):
            return _read(await asyncio.to_thread(copy.read), _Estimates)
    except TimeoutError:
        raise EstimateFailed(f"it took more than {_RUN_S:g} s") from None
    finally:
        copy.end()


def estimates_now(planner: Planner, now_ms: int) -> _Estimates:
    """The estimates of all waiting gangs, as of now; the planner stays as it is.

    Raises:
        EstimateFailed: The process cannot be copied, or the copy has failed.
    """
    return _computed(partial(_both, planner, now_ms), _Estimates)


def _both(planner: Planner, now_ms: int) -> _Estimates:
    """In the copy: both forecasts, the one with short runs in a copy of its own."""
    early: StartForecast | None = None
    if PartsOfLimits(planner.past_runs).known:
        early = _computed(partial(_forecast, planner, now_ms, short=True), StartForecast)
    return estimates_of(_forecast(planner, now_ms, short=False), early, now_ms)


async def suggestions_in_copy(planner: Planner, now_ms: int, gang_id: str) -> SuggestionsAnswer:
    """What would let a waiting gang start at once.

    Raises:
        EstimateFailed: The process cannot be copied, or the copy has failed.
    """
    copy = _start(partial(_suggested, planner, now_ms, gang_id))
    try:
        async with asyncio.timeout(_RUN_S):
            return _read(await asyncio.to_thread(copy.read), SuggestionsAnswer)
    except TimeoutError:
        raise EstimateFailed(f"it took more than {_RUN_S:g} s") from None
    finally:
        copy.end()


def suggestions_now(
    planner: Planner, now_ms: int, gang_id: str, within_s: float = _SUGGESTIONS_S
) -> SuggestionsAnswer:
    """As `suggestions_in_copy`; the caller waits."""
    return _computed(partial(_suggested, planner, now_ms, gang_id, within_s), SuggestionsAnswer)


def _suggested(
    planner: Planner, now_ms: int, gang_id: str, within_s: float = _SUGGESTIONS_S
) -> SuggestionsAnswer:
    """In the copy; each change is tried in a copy of that one."""
    end_s = time.monotonic() + within_s
    present = Present(planner, now_ms)
    present.decide(now_ms)
    gang = present.state.gangs.by_id.get(gang_id)
    if gang is None or gang.history.started or gang.bucket is None:
        return SuggestionsAnswer(sentence="it does not wait for capacity")

    def trial(change: Change) -> bool:
        if time.monotonic() > end_s:
            return False
        return _computed(partial(starts_with, change, present, gang), bool)

    suggestions = tuple(suggestions_for(gang, present, trial))
    sentence = "" if suggestions else "no single change that was tried lets it start at once"
    return SuggestionsAnswer(suggestions=suggestions, sentence=sentence)


def _forecast(planner: Planner, now_ms: int, *, short: bool) -> StartForecast:
    return forecast(planner, now_ms, short=short, go_on=_budget())


def _computed(work: Callable[[], object], type_: type[_Result]) -> _Result:
    copy = _start(work)
    try:
        return _read(copy.read(), type_)
    finally:
        copy.end()


def _start(work: Callable[[], object]) -> "_Copy":
    try:
        return _Copy(work)
    except OSError as error:
        raise EstimateFailed(f"the process cannot be copied: {error}") from None


def _read(result: bytes, type_: type[_Result]) -> _Result:
    try:
        answer: _Result | _Failure = msgspec.msgpack.decode(result, type=type_ | _Failure)
    except msgspec.DecodeError:
        raise EstimateFailed("the copy of the process was ended") from None
    if isinstance(answer, _Failure):
        raise EstimateFailed(answer.why)
    return answer


def _budget() -> Callable[[], bool]:
    end_s, parent = time.process_time() + _FORECAST_S, os.getppid()
    return lambda: time.process_time() < end_s and os.getppid() == parent


class _Copy:
    """A copy of this process that computes bytes, and ends."""

    def __init__(self, work: Callable[[], object]) -> None:
        """Raises OSError: the process cannot be copied."""
        self._source, sink = os.pipe()
        try:
            with warnings.catch_warnings():
                # Newer Pythons warn that other threads may hold locks. The copy takes none.
                warnings.simplefilter("ignore", DeprecationWarning)
                self._pid = os.fork()
        except OSError:
            os.close(self._source)
            os.close(sink)
            raise
        if not self._pid:
            _compute(work, sink)
        os.close(sink)

    def read(self) -> bytes:
        """What it has computed, once it has; less if it was ended before. To be called once."""
        with os.fdopen(self._source, "rb") as source:
            return source.read()

    def end(self) -> None:
        """End it if it still computes."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._pid, 0)


def _compute(work: Callable[[], object], sink: int) -> NoReturn:
    """In the copy: nothing of the planner may go on here, also not at its exit, and no connection
    may stay open because of it.
    """
    status = 1
    try:
        os.closerange(3, sink)
        os.closerange(sink + 1, _DESCRIPTORS_MAX)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        gc.disable()
        os.nice(_NICE)
        # Where memory does not suffice for both, this one goes.
        with contextlib.suppress(OSError):
            _OOM_SCORE.write_text("1000", encoding="ascii")
        try:
            result = work()
        except Exception as error:  # noqa: BLE001 - the planner logs it
            result = _Failure(f"{type(error).__name__}: {error}")
        with os.fdopen(sink, "wb") as file:
            file.write(msgspec.msgpack.encode(result))
        status = 0
    finally:
        os._exit(status)
