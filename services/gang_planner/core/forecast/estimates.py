"""Makes estimates of starts of two forecasts: with whole run limits, and with short runs."""

from collections.abc import Iterable
from typing import Final

from services.gang_planner.core.forecast.forecast import SHORT_PERCENT, StartForecast, WaitingGang
from services.gang_planner.core.state.instants import duration
from shared.contracts.questions import ESTIMATE_BASIS_MAX, StartEstimate
from shared.model.bounded_text import shortened

#: Gangs with an estimate, the first ones of all queues.
ESTIMATES_MAX: Final = 5_000
_NAMED_MAX: Final = 2


def estimates_of(
    late: StartForecast, early: StartForecast | None, now_ms: int
) -> tuple[StartEstimate, ...]:
    """The estimates of all waiting gangs, by id.

    Args:
        late: With whole run limits.
        early: With short runs; None: there are too few past runs.
        now_ms: The instant at which both began.
    """
    first = sorted(late.waiting, key=lambda gang: (gang.position, gang.queue))[:ESTIMATES_MAX]
    estimates = [_estimate(gang, late, early, now_ms) for gang in first]
    return tuple(sorted(estimates, key=lambda estimate: estimate.gang_id))


def _estimate(
    gang: WaitingGang, late: StartForecast, early: StartForecast | None, now_ms: int
) -> StartEstimate:
    latest_ms = late.starts.get(gang.gang_id)
    if latest_ms is None:
        basis = shortened(_missing(gang, late, now_ms), ESTIMATE_BASIS_MAX)
        return StartEstimate(gang_id=gang.gang_id, position=gang.position, basis=basis)
    if early is None:
        # Any gang may end before its limit.
        earliest_ms = now_ms
        basis = "run limits; too few runs have ended to know how early"
    else:
        basis = f"run limits, and the shortest {SHORT_PERCENT} % of past runs"
        # It has not started by then, if the forecast was cut off.
        not_before_ms = early.until_ms if early.cut_off else now_ms
        earliest_ms = early.starts.get(gang.gang_id, not_before_ms)
    return StartEstimate(
        gang_id=gang.gang_id,
        position=gang.position,
        # Shorter runs may change which gang is next, so one may start later with them.
        earliest_ms=min(earliest_ms, latest_ms),
        latest_ms=max(earliest_ms, latest_ms),
        basis=basis,
    )


def _missing(gang: WaitingGang, late: StartForecast, now_ms: int) -> str:
    """Why there is no instant."""
    if late.cut_off:
        return f"it starts later than in {duration(late.until_ms - now_ms)}, as far as was computed"
    if not late.endless:
        return "it does not start even when all running gangs have ended"
    own = [title for namespace, title in late.endless if namespace == gang.namespace]
    verb = "holds" if len(late.endless) == 1 else "hold"
    return f"{_listed(own, len(late.endless))} {verb} capacity without a run limit"


def _listed(own: Iterable[str], count: int) -> str:
    """The first names, and how many others there are."""
    names = sorted(own)[:_NAMED_MAX]
    others = count - len(names)
    if others:
        noun = "gang" if others == 1 else "gangs"
        names.append(f"{others} other {noun}" if names else f"{others} {noun}")
    return " and ".join((", ".join(names[:-1]), names[-1]) if len(names) > 1 else names)
