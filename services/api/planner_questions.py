"""Questions to the standby planner, few and bounded, so that readers do not slow it down."""

from typing import Final

from services.api.answer_cache import AnswerCache
from services.api.errors import RequestFailed
from shared.bus.connection import Bus
from shared.bus.errors import BusError
from shared.bus.questions import ask
from shared.contracts import codec, subjects
from shared.contracts.questions import FitAnswer, FitRequest, LedgerAnswer, LedgerRequest

#: The ledger is as old as this at most, for all users.
_LEDGER_KEEP_S: Final = 2.0
_LEDGER_TIMEOUT_S: Final = 5.0
#: A standby answers one question at a time; a large gang takes it a while.
_FITS_IN_FLIGHT_MAX: Final = 8
_FIT_TIMEOUT_S: Final = 10.0
_NO_PLANNER: Final = "no standby planner answers: queues and fits need one"


class PlannerQuestions:
    """See the module's docstring."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._ledgers: AnswerCache[None, LedgerAnswer] = AnswerCache(
            keep_s=lambda _ledger: _LEDGER_KEEP_S, entries_max=1, in_flight_max=1
        )
        self._fits = 0

    async def ledger(self) -> LedgerAnswer:
        """All queues. Raises RequestFailed: 503, no planner answers."""
        try:
            return await self._ledgers.get(None, self._ask_ledger)
        except BusError:
            raise RequestFailed(503, _NO_PLANNER, retry_after_s=5) from None

    async def fit(self, request: FitRequest) -> FitAnswer:
        """Whether a gang would fit.

        Raises:
            RequestFailed: 429, too many questions are in flight; 503, no planner answers.
        """
        if self._fits >= _FITS_IN_FLIGHT_MAX:
            raise RequestFailed(429, "too many fits are being answered", retry_after_s=1)
        self._fits += 1
        try:
            return await ask(
                self._bus,
                subjects.ASK_FIT,
                request,
                codec.decode_fit_answer,
                timeout_s=_FIT_TIMEOUT_S,
            )
        except BusError:
            raise RequestFailed(503, _NO_PLANNER, retry_after_s=5) from None
        finally:
            self._fits -= 1

    async def _ask_ledger(self) -> LedgerAnswer:
        return await ask(
            self._bus,
            subjects.ASK_LEDGER,
            LedgerRequest(),
            codec.decode_ledger_answer,
            timeout_s=_LEDGER_TIMEOUT_S,
        )
