"""Questions to the standby planner, and to all services about their states: few and bounded, so
that readers do not slow them down.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

from services.api.answer_cache import AnswerCache
from services.api.core.fit_objects import GangQuestion
from services.api.core.start_estimates import NO_ESTIMATES, StartEstimates
from services.api.errors import RequestFailed
from shared.bus.connection import Bus
from shared.bus.errors import BusError, MessageTooLarge
from shared.bus.questions import ask, ask_all, ask_estimates, ask_ledger
from shared.contracts import codec, subjects
from shared.contracts.questions import (
    FitAnswer,
    FragmentationAnswer,
    FragmentationRequest,
    LedgerAnswer,
    ServiceStatus,
    StatusRequest,
    SuggestionsAnswer,
    SuggestionsRequest,
)
from shared.runtime.user_turns import UserTurns

#: The answers are as old as this at most, for all users.
_KEEP_S: Final = 5.0
#: Services answer within milliseconds; a busy planner answers between two cycles.
_WAIT_S: Final = 1.0


class InstanceQuestions:
    """Questions to all services about their states."""

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


#: The ledger is as old as this at most, for all users.
_LEDGER_KEEP_S: Final = 2.0
_TIMEOUT_S: Final = 5.0
#: Likewise.
_FRAGMENTATION_KEEP_S: Final = 5.0
#: Likewise; a planner makes estimates less often.
_ESTIMATES_KEEP_S: Final = 10.0
#: For a page. After a failure it is not asked for some time.
_ESTIMATES_TIMEOUT_S: Final = 1.0
_ESTIMATES_PAUSE_S: Final = 5.0
#: So that a planner that does not answer hardly delays reads of gangs.
_ESTIMATES_READER_S: Final = 0.2
#: Gangs that the planner is asked about at a time, and those of one user. A standby answers one
#: question after the other; a large gang takes it a while, and the gangs of no user shall be ahead
#: of another user's by more than one.
_GANGS_IN_FLIGHT_MAX: Final = 8
_GANGS_OF_USER_MAX: Final = 1
_FIT_TIMEOUT_S: Final = 10.0
#: For all gangs of a Fit: the API server gives up after a minute.
_FITS_TIMEOUT_S: Final = 45.0
_NO_PLANNER: Final = "no standby planner answers: queues, pod shapes, fits and suggestions need one"
#: A planner answers one question about suggestions after the other, each in up to 6 s, in a copy of
#: its process. One at a time leaves time for those of another API service.
_SUGGESTIONS_IN_FLIGHT_MAX: Final = 1
_SUGGESTIONS_TIMEOUT_S: Final = 15.0
#: With the turns of other users: the API server gives up after a minute.
_SUGGESTIONS_TURN_S: Final = 45.0
_SUGGESTIONS_KEEP_S: Final = 10.0
_SUGGESTIONS_BYTES_MAX: Final = 1024 * 1024


class PlannerQuestions:
    """See the module's docstring."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._ledgers: AnswerCache[None, LedgerAnswer] = AnswerCache(
            keep_s=lambda _ledger: _LEDGER_KEEP_S,
        )
        self._fragmentation: AnswerCache[None, FragmentationAnswer] = AnswerCache(
            keep_s=lambda _answer: _FRAGMENTATION_KEEP_S,
        )
        self._estimates: AnswerCache[None, StartEstimates] = AnswerCache(
            keep_s=lambda answer: (
                _ESTIMATES_PAUSE_S if answer is NO_ESTIMATES else _ESTIMATES_KEEP_S
            ),
            renews=True,
        )
        self._turns = UserTurns(places=_GANGS_IN_FLIGHT_MAX, of_user=_GANGS_OF_USER_MAX)
        #: By the gang's id.
        self._suggestions: AnswerCache[str, SuggestionsAnswer] = AnswerCache(
            keep_s=lambda _answer: _SUGGESTIONS_KEEP_S,
            bytes_max=_SUGGESTIONS_BYTES_MAX,
            bytes_of=lambda answer: sum(len(each.change) for each in answer.suggestions),
        )
        self._suggestion_turns = UserTurns(
            places=_SUGGESTIONS_IN_FLIGHT_MAX, of_user=_SUGGESTIONS_IN_FLIGHT_MAX
        )

    async def ledger(self) -> LedgerAnswer:
        """All queues. Raises RequestFailed: 503, no planner answers."""
        try:
            return await self._ledgers.get(None, self._ask_ledger)
        except BusError:
            raise RequestFailed(503, _NO_PLANNER, retry_after_s=5) from None

    async def fragmentation(self) -> FragmentationAnswer:
        """How many more pods of common shapes fit. Raises RequestFailed, as `ledger`."""
        try:
            return await self._fragmentation.get(None, self._ask_fragmentation)
        except BusError:
            raise RequestFailed(503, _NO_PLANNER, retry_after_s=5) from None

    async def estimates(self) -> StartEstimates:
        """When waiting gangs are expected to start; of no gang if no planner answers at once."""
        try:
            async with asyncio.timeout(_ESTIMATES_READER_S):
                return await self._estimates.get(None, self._ask_estimates)
        except TimeoutError:
            return NO_ESTIMATES

    async def fits(self, user: str, questions: Sequence[GangQuestion]) -> list[FitAnswer]:
        """Whether each of these gangs would fit, for the user of this name.

        Raises:
            RequestFailed: 422, a question is too large for a message or breaks a rule; 500, an
                error of the planner; 503, no planner answers; 504, it does not answer all in time.
        """
        try:
            async with asyncio.timeout(_FITS_TIMEOUT_S):
                return [
                    await self._turns.run(user, partial(self._ask_fit, question))
                    for question in questions
                ]
        except BusError:
            raise RequestFailed(503, _NO_PLANNER, retry_after_s=5) from None
        except TimeoutError:
            raise RequestFailed(
                504, f"the planner has not answered for all gangs within {_FITS_TIMEOUT_S:g} s"
            ) from None

    async def suggestions(self, user: str, gang_id: str) -> SuggestionsAnswer:
        """What would let a waiting gang start, for the user of this name.

        Raises:
            RequestFailed: 500, an error of the planner; 503, no planner answers; 504, the user's
                turn has not come in time.
        """
        question = partial(self._ask_suggestions, gang_id)
        kept = self._suggestions.kept(gang_id, question)
        if kept is not None:
            return kept
        try:
            async with asyncio.timeout(_SUGGESTIONS_TURN_S):
                return await self._suggestion_turns.run(
                    user, partial(self._suggestions.get, gang_id, question)
                )
        except BusError:
            raise RequestFailed(503, _NO_PLANNER, retry_after_s=5) from None
        except TimeoutError:
            raise RequestFailed(
                504,
                "the planner answers one question about suggestions after the other, and has not "
                f"answered this one within {_SUGGESTIONS_TURN_S:g} s",
            ) from None

    async def _ask_suggestions(self, gang_id: str) -> SuggestionsAnswer:
        answer = await ask(
            self._bus,
            subjects.ASK_SUGGESTIONS,
            SuggestionsRequest(gang_id=gang_id),
            codec.decode_suggestions_answer,
            timeout_s=_SUGGESTIONS_TIMEOUT_S,
        )
        if answer.failed:
            raise RequestFailed(500, f"the planner has no suggestions: {answer.sentence}")
        return answer

    async def _ask_estimates(self) -> StartEstimates:
        try:
            answer = await ask_estimates(self._bus, timeout_s=_ESTIMATES_TIMEOUT_S)
        except BusError:
            return NO_ESTIMATES
        return StartEstimates(answer)

    async def _ask_fit(self, question: GangQuestion) -> FitAnswer:
        name = question.name
        try:
            answer = await ask(
                self._bus,
                subjects.ASK_FIT,
                question.payload,
                codec.decode_fit_answer,
                timeout_s=_FIT_TIMEOUT_S,
            )
        except MessageTooLarge as error:
            raise RequestFailed(
                422, f"spec.manifests: {name}: its pods are too large: {error}"
            ) from None
        match answer.failure:
            case "invalid":
                raise RequestFailed(422, f"spec.manifests: {name}: {answer.sentence}")
            case "internal":
                raise RequestFailed(500, f"{name}: {answer.sentence}")
            case _:
                return answer

    async def _ask_fragmentation(self) -> FragmentationAnswer:
        return await ask(
            self._bus,
            subjects.ASK_FRAGMENTATION,
            FragmentationRequest(),
            codec.decode_fragmentation_answer,
            timeout_s=_TIMEOUT_S,
        )

    async def _ask_ledger(self) -> LedgerAnswer:
        return await ask_ledger(self._bus, timeout_s=_TIMEOUT_S)
