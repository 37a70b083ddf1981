"""Whether a gang whose queue asks for ProvisioningRequests waits for its own (ADR 0087).

The answer depends on the requests that the cluster state shows. What a planner remembers beside
them only decides when the next attempt is made, so a planner that takes over continues with the
existing requests.
"""

from typing import Final

import msgspec

from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.queueing.provisioning import request_for
from services.gang_planner.core.state.existing_requests import request_of, requests_of
from services.gang_planner.core.state.gang_requests import GangRequest, class_of, is_served
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.needs import Need, ProvisioningStage
from shared.contracts.pending_reasons import PendingReason
from shared.contracts.provisioning import POD_SETS_MAX

#: The wait after the first failed attempt; each further one doubles it.
_BACKOFF_MS: Final = 60_000
_BACKOFF_MS_MAX: Final = 1_800_000
_FAILED: Final = frozenset({"Failed", "CapacityRevoked"})


def review(work: CycleContext, gang: Gang, need: Need) -> tuple[Need, PendingReason | None]:
    """Update the gang's request, and return its need with the stage of provisioning; and the
    pending reason if the gang must not be in the backlog.
    """
    if not class_of(gang.queue) or gang.history.started:
        gang.request = None
        return need, None
    if gang.have():
        # It has been placed in part: repairs need no request.
        return need, None
    if not is_served(work.state.view.synced):
        gang.request = None
        return need, PendingReason.PROVISIONING_UNAVAILABLE
    request = gang.request = _current(work, gang, need)
    if len(request.sets) > POD_SETS_MAX:
        return need, PendingReason.PROVISIONING_UNAVAILABLE
    if not request.open:
        return _at(need, ProvisioningStage.UNREQUESTED), None
    work.state.requesting[gang.key] = gang
    found = request_of(work.state, gang)
    state = found.state if found is not None else ""
    if state == "Provisioned":
        return _at(need, ProvisioningStage.PROVISIONED), None
    if state in _FAILED:
        return need, PendingReason.PROVISIONING_FAILED
    return need, PendingReason.AWAITS_PROVISIONING


def _current(work: CycleContext, gang: Gang, need: Need) -> GangRequest:
    """The gang's request, with the attempt that is due."""
    known = gang.request
    wanted = request_for(work.state, gang, need, attempt=1)
    if known is None or known.name.digest != wanted.name.digest:
        known = wanted
    else:
        # Ids of shapes may have changed, and the queue of the gang.
        known.sets, known.amounts = wanted.sets, wanted.amounts
    attempts = requests_of(work.state, gang)
    found = next((one for one in reversed(attempts) if one.digest == known.name.digest), None)
    if found is None or found.attempt < known.name.attempt:
        # Not created yet; or an administrator has deleted it.
        return _next(known) if known.seen else known
    if found.attempt > known.name.attempt:
        known = _attempt(known, found.attempt)
    known.open = known.seen = True
    if found.state == "BookingExpired":
        return _next(known)
    if found.state in _FAILED and _backoff_is_over(work, gang, known):
        return _next(known)
    return known


def _backoff_is_over(work: CycleContext, gang: Gang, request: GangRequest) -> bool:
    now_ms = work.now_ms
    if request.failed_ms is None or request.failed_ms > now_ms:
        # Seen for the first time, or the clock was set back.
        request.failed_ms = now_ms
    doublings = min(request.name.attempt - 1, 10)
    until_ms = request.failed_ms + min(_BACKOFF_MS << doublings, _BACKOFF_MS_MAX)
    if now_ms < until_ms:
        work.timers.set(until_ms, gang)
    return now_ms >= until_ms


def _next(request: GangRequest) -> GangRequest:
    return _attempt(request, request.name.attempt + 1)


def _attempt(request: GangRequest, attempt: int) -> GangRequest:
    """The request of another attempt, not open."""
    return GangRequest(request.name._replace(attempt=attempt), request.sets, request.amounts)


def _at(need: Need, stage: ProvisioningStage) -> Need:
    return msgspec.structs.replace(need, provisioning=stage)
