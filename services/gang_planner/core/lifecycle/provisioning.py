"""Whether a gang whose queue asks for ProvisioningRequests waits for its own (ADR 0087).

The answer depends on the requests that the cluster state shows. What a planner remembers beside
them only decides when the next attempt is made, and what a verdict says of a request without an
answer (ADR 0087). So a planner that takes over continues with the existing requests.
"""

from typing import Final

import msgspec

from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.lifecycle.promises import PROMISED_MS
from services.gang_planner.core.queueing.requested_capacity import request_for, unrequestable_words
from services.gang_planner.core.state.existing_requests import LOST, request_of, requests_of
from services.gang_planner.core.state.gang_requests import GangRequest, class_of, is_served
from services.gang_planner.core.state.gang_table import GangTable
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.needs import Need, ProvisioningStage
from services.gang_planner.core.state.reference_objects import ReferenceObjects
from services.gang_planner.core.state.timers import Timers
from shared.contracts.pending_reasons import PendingReason
from shared.contracts.provisioning import RequestName, parse_request_name
from shared.contracts.questions import RequestRefused
from shared.contracts.verdicts import Verdict
from shared.model.reference_objects import ProvisioningRequest

#: The wait after the first failed attempt; each further one doubles it.
_BACKOFF_MS: Final = 60_000
_BACKOFF_MS_MAX: Final = 1_800_000
#: A request that is not seen for so long is asked for again: it was refused, or it was deleted
#: before the cluster state showed it.
_REPEAT_MS: Final = 60_000
#: cluster-autoscaler accepts one request every ten seconds or faster.
_ANSWER_MS: Final = 120_000


def review(work: CycleContext, gang: Gang, need: Need) -> tuple[Need, PendingReason | None]:
    """Update the gang's request, and return its need with the stage of provisioning; and the
    pending reason if the gang must not be in the backlog.
    """
    if not class_of(gang.queue):
        gang.request = None
        return need, None
    if gang.have():
        # It has started, or been placed in part: repairs need no request.
        return need, None
    if not is_served(work.state.view.synced):
        gang.request = None
        return need, PendingReason.PROVISIONING_UNAVAILABLE
    request = gang.request = _current(work, gang, need)
    if unrequestable_words(work.state.shapes, request):
        return need, PendingReason.PROVISIONING_UNAVAILABLE
    if not request.open:
        return _at(need, ProvisioningStage.UNREQUESTED), None
    work.state.requesting[gang.key] = gang
    existing = request_of(work.state.reference_objects, gang)
    if existing is None:
        _ask_again(work.timers, gang, request, work.now_ms)
        return need, _reason(lost=bool(request.refusal))
    _await_answer(work, gang, request, existing)
    if existing.state == "Provisioned":
        return _at(need, ProvisioningStage.PROVISIONED), None
    return need, _reason(lost=existing.state in LOST)


def let_lapse(reference_objects: ReferenceObjects, timers: Timers, gang: Gang, now_ms: int) -> None:
    """End the requests of a gang that has waited for something else than capacity for too long:
    its pods are gone or have gates, or its queue is closed. Otherwise nodes would be added for
    nothing, and the request would use the quota of other gangs.
    """
    request = gang.request
    if request is None and not gang.history.dormant:
        # A planner that took over finds it among those that exist.
        for existing in requests_of(reference_objects, gang)[-1:]:
            name = RequestName(gang.gang_id, existing.digest, existing.attempt)
            request = gang.request = GangRequest(name, (), {})
    if request is None or request.lapsed or gang.have() or gang.history.notes.any_open:
        return
    if request.idle_ms is None or request.idle_ms > now_ms:
        request.idle_ms = now_ms
    until_ms = request.idle_ms + PROMISED_MS
    if now_ms < until_ms:
        timers.set(until_ms, gang)
        return
    request.lapsed, request.open = True, False


def refused(gangs: GangTable, report: RequestRefused) -> None:
    """Keep the API server's refusal of a gang's request, until the request is seen."""
    gang = gangs.by_id.get(report.gang_id)
    request = gang.request if gang is not None else None
    if gang is None or request is None or request.seen or str(request.name) != report.request:
        return
    if request.refused_at == request.repeats:
        # The verdict with the refusal makes the controller try again. If the API server's message
        # differs each time, that would be a loop.
        return
    request.refusal, request.refused_at = report.message, request.repeats
    gangs.touch(gang)


def recall(gangs: GangTable, verdict: Verdict) -> None:
    """Continue with the request that an earlier planner asked for last: the controller may just be
    creating it, and another one would be provided beside it.
    """
    gang, wanted = gangs.by_id.get(verdict.gang_id), verdict.provisioning
    name = parse_request_name(wanted.request) if wanted is not None else None
    if gang is not None and gang.request is None and name is not None:
        # The next assessment adds sets and amounts, unless another digest is wanted by now.
        gang.request = GangRequest(name, (), {})


def _reason(*, lost: bool) -> PendingReason:
    return PendingReason.PROVISIONING_FAILED if lost else PendingReason.AWAITS_PROVISIONING


def _current(work: CycleContext, gang: Gang, need: Need) -> GangRequest:
    """The gang's request, with the attempt that is due."""
    known = gang.request
    wanted = request_for(work.state.shapes, gang, need, attempt=1)
    if known is None or known.name.digest != wanted.name.digest:
        known = wanted
    else:
        # Ids of shapes may have changed, and the queue of the gang.
        known.sets, known.amounts, known.units = wanted.sets, wanted.amounts, wanted.units
    known.idle_ms, known.lapsed = None, False
    attempts = requests_of(work.state.reference_objects, gang)
    newest = next(
        (attempt for attempt in reversed(attempts) if attempt.digest == known.name.digest), None
    )
    if newest is None or newest.attempt < known.name.attempt:
        # Not created yet; or an administrator has deleted it.
        return _next(known) if known.seen else known
    if newest.attempt > known.name.attempt:
        known = _attempt(known, newest.attempt)
    known.open = known.seen = True
    known.asked_ms, known.repeats, known.refusal, known.refused_at = None, 0, "", None
    if newest.state in LOST and _backoff_is_over(work, gang, known, newest):
        return _next(known)
    return known


def _ask_again(timers: Timers, gang: Gang, request: GangRequest, now_ms: int) -> None:
    """Repeat the verdict of a gang whose request is not seen for a minute. Nothing is requested
    twice by that: the name is the same.
    """
    if request.asked_ms is None or request.asked_ms > now_ms:
        # Asked for the first time, or the clock was set back.
        request.asked_ms = now_ms
    elif now_ms >= request.asked_ms + _REPEAT_MS:
        request.asked_ms = now_ms
        request.repeats += 1
    timers.set(request.asked_ms + _REPEAT_MS, gang)


def _await_answer(
    work: CycleContext, gang: Gang, request: GangRequest, existing: ProvisioningRequest
) -> None:
    """Note whether no autoscaler has answered a request for too long."""
    if existing.state or existing.reason:
        request.overdue = False
        return
    now_ms = work.now_ms
    if request.seen_ms is None or request.seen_ms > now_ms:
        request.seen_ms = now_ms
    request.overdue = now_ms >= request.seen_ms + _ANSWER_MS
    if not request.overdue:
        work.timers.set(request.seen_ms + _ANSWER_MS, gang)


def _backoff_is_over(
    work: CycleContext, gang: Gang, request: GangRequest, existing: ProvisioningRequest
) -> bool:
    now_ms = work.now_ms
    if request.lost_ms is None or request.lost_ms > now_ms:
        # Seen for the first time, or the clock was set back.
        request.lost_ms = now_ms
    doublings = min(request.name.attempt - 1, 10)
    if existing.state == "BookingExpired":
        # The capacity was there, so the first one is followed at once. An autoscaler that ends
        # every booking before the gang is placed must not be asked without a pause.
        doublings -= 1
    delay_ms = min(_BACKOFF_MS << doublings, _BACKOFF_MS_MAX) if doublings >= 0 else 0
    until_ms = request.lost_ms + delay_ms
    if now_ms < until_ms:
        work.timers.set(until_ms, gang)
    return now_ms >= until_ms


def _next(request: GangRequest) -> GangRequest:
    return _attempt(request, request.name.attempt + 1)


def _attempt(request: GangRequest, attempt: int) -> GangRequest:
    """The request of another attempt, not open."""
    name = request.name._replace(attempt=attempt)
    return GangRequest(name, request.sets, request.amounts, units=request.units)


def _at(need: Need, stage: ProvisioningStage) -> Need:
    return msgspec.structs.replace(need, provisioning=stage)
