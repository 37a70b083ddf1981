"""Questions to all services about their states, few and bounded."""

from collections.abc import Sequence
from typing import Final

from services.api.answer_cache import AnswerCache
from services.api.errors import RequestFailed
from shared.bus.connection import Bus
from shared.bus.errors import BusError
from shared.bus.questions import ask_all
from shared.contracts import codec, subjects
from shared.contracts.questions import ServiceStatus, StatusRequest

#: The answers are as old as this at most, for all users.
_KEEP_S: Final = 5.0
#: Services answer within milliseconds; a busy planner answers between two cycles.
_WAIT_S: Final = 1.0


class InstanceQuestions:
    """See the module's docstring."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._answers: AnswerCache[None, Sequence[ServiceStatus]] = AnswerCache(
            keep_s=lambda _answers: _KEEP_S,
        )

    async def statuses(self) -> Sequence[ServiceStatus]:
        """The states of the processes that answer. Raises RequestFailed: 503, NATS does not."""
        try:
            return await self._answers.get(None, self._ask)
        except BusError as error:
            raise RequestFailed(
                503, f"the services cannot be asked: {error}", retry_after_s=5
            ) from None

    async def _ask(self) -> Sequence[ServiceStatus]:
        return await ask_all(
            self._bus,
            subjects.ASK_STATUS,
            StatusRequest(),
            codec.decode_status,
            wait_s=_WAIT_S,
        )
