"""Whether a planner is active, by the Lease that the status controller renews while one is
(`services.controller.planner_heartbeat`). Without an active planner, a verdict describes the time
when it was written.

Both compared instants are times of the API server: the controller writes its time into the Lease,
and the answer with the Lease has its time as Date. The clocks of several API servers may differ, so
a Lease that looks old is read again after two renewals. If it has changed, the planner is active.
"""

import asyncio
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final, Literal

import msgspec

from shared.kube.client import KubeClient
from shared.kube.errors import Forbidden, KubeError
from shared.kube.leases import (
    PLANNER_LEASE,
    PLANNER_RENEWAL_S,
    PLANNER_SILENT_S,
    SCHEDULER_NAMES,
    Lease,
    server_time,
)
from shared.kube.objects import KubeStruct
from shared.kube.resources import LEASES

_LOOK_AGAIN_S: Final = 2 * PLANNER_RENEWAL_S + 0.5

State = Literal["alive", "silent", "missing", "unknown"]


class PlannerLiveness(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    #: silent: it has not reported for more than ten seconds; missing: no Lease has been
    #: renewed, or `tutti up` has deleted it when it ended;
    #: unknown: the Lease cannot be read, for the reason in `detail`.
    state: State = "unknown"
    #: Seconds since its last report; None if it never reported or that is unknown.
    silent_s: int | None = None
    detail: str = ""
    #: The API server's time; None if unknown.
    now: datetime | None = None

    @property
    def lives(self) -> bool | None:
        """Whether a planner is active; None if unknown."""
        return None if self.state == "unknown" else self.state == "alive"

    @property
    def warning(self) -> str:
        """A warning to print first; "" while a planner is active or that is unknown."""
        match self.state:
            case "silent":
                return (
                    f"No planner is active: none has reported for {self.silent_s} s. "
                    "This answer may be out of date."
                )
            case "missing":
                return (
                    f"No planner is active: there is no renewed Lease {PLANNER_LEASE}, so Tutti "
                    "was stopped or has not run here yet. This answer may be out of date."
                )
            case "alive" | "unknown":
                return ""


class _Leases(KubeStruct, frozen=True, kw_only=True):
    items: tuple[Lease, ...] = ()


async def read_liveness(
    client: KubeClient, scheduler_names: Collection[str], *, look_again_s: float = _LOOK_AGAIN_S
) -> PlannerLiveness:
    """Read whether a planner is active that serves any of the names; without names, any planner
    counts. A Lease that looks old is read again after `look_again_s`. Never fails.
    """
    try:
        leases, now = await _read(client, scheduler_names)
        liveness = _judge(leases, now)
        if liveness.state == "silent":
            await asyncio.sleep(look_again_s)
            later, now = await _read(client, scheduler_names)
            renewed = {lease.spec.renew_time for lease in later} - {
                lease.spec.renew_time for lease in leases
            }
            liveness = (
                PlannerLiveness(state="alive", silent_s=0, now=now)
                if renewed
                else _judge(later, now)
            )
    except Forbidden:
        return PlannerLiveness(detail=f"no right to read the Lease {PLANNER_LEASE}")
    except KubeError as error:
        return PlannerLiveness(detail=str(error))
    return liveness


async def _read(
    client: KubeClient, scheduler_names: Collection[str]
) -> tuple[list[Lease], datetime | None]:
    """The Leases of planners that serve the names, and the API server's time."""
    params = {"fieldSelector": f"metadata.name={PLANNER_LEASE}"}
    reply = await client.request("GET", LEASES.path(), params=params)
    leases = msgspec.json.decode(reply.body, type=_Leases).items
    serving = [lease for lease in leases if _served(lease) & set(scheduler_names)]
    return serving or list(leases), server_time(reply.headers)


def _served(lease: Lease) -> set[str]:
    return {*lease.metadata.annotations.get(SCHEDULER_NAMES, "").split(",")} - {""}


def _judge(leases: Sequence[Lease], now: datetime | None) -> PlannerLiveness:
    if now is None:
        return PlannerLiveness(detail="the API server does not report its time")
    ages = [lease.spec.age_s(now) for lease in leases if lease.spec.renew_time is not None]
    if not ages:
        return PlannerLiveness(state="missing", now=now)
    # A renewal far in the future is as unreliable as an old one.
    age_s = min(ages, key=abs)
    state: State = "alive" if abs(age_s) <= PLANNER_SILENT_S else "silent"
    # A Lease that looks old was read again after this time.
    least_s = 0 if state == "alive" else int(_LOOK_AGAIN_S)
    return PlannerLiveness(state=state, silent_s=max(least_s, int(age_s)), now=now)
