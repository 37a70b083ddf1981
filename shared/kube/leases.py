"""Leases of coordination.k8s.io, and whether their holders are alive."""

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from shared.kube.objects import KubeObject, KubeStruct

#: A holder counts as alive for this long after a renewal; leader election renews every 2 to 15 s.
LIVES_S: Final = 60.0
#: Name of the Lease of Volcano's controllers, in any namespace.
VOLCANO_CONTROLLERS: Final = "vc-controller-manager"
#: The Lease that the status controller renews while a planner is alive. Every user may read it.
PLANNER_LEASE: Final = "tutti-gang-planner"
#: Interval of its renewals, and the time without one after which no planner counts as alive.
PLANNER_RENEWAL_S: Final = 2.0
PLANNER_SILENT_S: Final = 10.0
#: Annotation of that Lease: the scheduler names that its planner serves, separated by commas.
SCHEDULER_NAMES: Final = "tutti.dev/scheduler-names"


class LeaseSpec(KubeStruct, frozen=True, kw_only=True):
    """`spec` of a Lease; kube-batch's lock in a ConfigMap has the same fields."""

    holder_identity: str = ""
    acquire_time: datetime | None = None
    renew_time: datetime | None = None

    def age_s(self, now: datetime) -> float:
        """Seconds since the last renewal by the wall clock; infinite without a renewal."""
        if self.renew_time is None:
            return float("inf")
        return (now - aware(self.renew_time)).total_seconds()

    def lives(self, now: datetime) -> bool:
        """Whether a holder has renewed it within `LIVES_S`."""
        return bool(self.holder_identity) and self.age_s(now) <= LIVES_S


class Lease(KubeObject, frozen=True, kw_only=True):
    spec: LeaseSpec = LeaseSpec()


def aware(instant: datetime) -> datetime:
    """The instant in its own zone, or in UTC if it has none."""
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


def micro_time(instant: datetime) -> str:
    """An instant as Kubernetes' MicroTime writes it."""
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def server_time(headers: Mapping[str, str]) -> datetime | None:
    """The API server's time when it answered, to the second; None without a valid Date header."""
    try:
        return aware(parsedate_to_datetime(headers.get("Date", "")))
    except ValueError:
        return None
