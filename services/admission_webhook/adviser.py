"""Asks the planner whether a new gang could run; without an answer in time the review continues
without.
"""

import logging
from collections.abc import Callable
from typing import Final, Literal

from shared.bus.connection import Bus
from shared.bus.errors import BusError, NoAnswer
from shared.bus.questions import ask
from shared.contracts import codec, subjects
from shared.contracts.questions import FitAnswer, FitRequest

log = logging.getLogger(__name__)

#: Questions in flight at once. A planner that cannot keep up is not asked more: no client would
#: wait for the answers.
QUESTIONS_MAX: Final = 16

#: How long a dry run may wait: the API server gives up after three seconds.
PATIENCE_S: Final = 2.0

Ending = Literal["answered", "unanswered", "skipped"]


class Adviser:
    """Asks, within a deadline."""

    def __init__(self, bus: Bus, *, timeout_s: float, on_end: Callable[[Ending], None]) -> None:
        """Prepare; `on_end` is called with how each question ended. A timeout of 0 asks nothing."""
        self._bus = bus
        self._timeout_s = timeout_s
        self._on_end = on_end
        self._in_flight = 0

    async def fit(self, question: FitRequest, *, patient: bool = False) -> FitAnswer | None:
        """The planner's answer; None when there is none in time.

        `patient`: nothing is stored, and a user waits for the answer: finding the victims of a
        large gang takes a while.
        """
        if not self._timeout_s:
            return None
        if not self._bus.connected or self._in_flight >= QUESTIONS_MAX:
            self._on_end("skipped")
            return None
        self._in_flight += 1
        try:
            answer = await ask(
                self._bus,
                subjects.ASK_FIT,
                question,
                codec.decode_fit_answer,
                timeout_s=max(self._timeout_s, PATIENCE_S) if patient else self._timeout_s,
            )
        except NoAnswer:
            self._on_end("unanswered")
            return None
        except BusError as error:
            log.info("no advice for %s: %s", question.group.name, error)
            self._on_end("unanswered")
            return None
        finally:
            self._in_flight -= 1
        self._on_end("answered")
        return answer
