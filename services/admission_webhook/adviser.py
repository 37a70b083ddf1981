"""Asks the planner whether a new gang could run. Without an answer in time, there is no advice."""

import logging
from collections.abc import Callable
from typing import Final, Literal

from shared.bus.connection import Bus
from shared.bus.errors import BusError, NoAnswer
from shared.bus.questions import ask
from shared.contracts import codec, subjects
from shared.contracts.questions import FitAnswer, FitRequest

log = logging.getLogger(__name__)

#: Requests in flight at once. A planner that cannot keep up gets no more: no client would wait for
#: the answers.
REQUESTS_MAX: Final = 16

#: Timeout for a dry run. The API server waits three seconds for the webhook.
DRY_RUN_TIMEOUT_S: Final = 2.0

Ending = Literal["answered", "unanswered", "skipped"]


class Adviser:
    """Sends fit requests to the planner, each with a timeout."""

    def __init__(self, bus: Bus, *, timeout_s: float, on_end: Callable[[Ending], None]) -> None:
        """Send nothing before `fit`. `on_end` is called with the ending of each request. With a
        timeout of 0, no request is ever sent.
        """
        self._bus = bus
        self._timeout_s = timeout_s
        self._on_end = on_end
        self._in_flight = 0

    async def fit(self, request: FitRequest, *, dry_run: bool = False) -> FitAnswer | None:
        """The planner's answer; None when there is none in time, or it cannot answer.

        A dry run has a longer timeout: a user waits for the answer, and finding the victims of a
        large gang takes a while.
        """
        if not self._timeout_s:
            return None
        if not self._bus.connected or self._in_flight >= REQUESTS_MAX:
            self._on_end("skipped")
            return None
        self._in_flight += 1
        try:
            answer = await ask(
                self._bus,
                subjects.ASK_FIT,
                request,
                codec.decode_fit_answer,
                timeout_s=max(self._timeout_s, DRY_RUN_TIMEOUT_S) if dry_run else self._timeout_s,
            )
        except BusError as error:
            if not isinstance(error, NoAnswer):
                log.info("the planner gave no advice for %s: %s", request.group.name, error)
            self._on_end("unanswered")
            return None
        finally:
            self._in_flight -= 1
        self._on_end("answered")
        if answer.failure is not None:
            log.info("the planner gave no advice for %s: %s", request.group.name, answer.sentence)
            return None
        return answer
