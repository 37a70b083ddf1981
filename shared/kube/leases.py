"""Leases of coordination.k8s.io, and whether their holders live."""

from datetime import UTC, datetime
from typing import Final

from shared.kube.objects import KubeStruct, ObjectMeta

#: For how long after a renewal a holder is taken to live; leader election renews every 2 to 15 s.
LIVES_S: Final = 60.0
#: The Lease of Volcano's controllers, wherever it is.
VOLCANO_CONTROLLERS: Final = "vc-controller-manager"


class LeaseSpec(KubeStruct, frozen=True, kw_only=True):
    """`spec` of a Lease; kube-batch's lock in a ConfigMap has the same fields."""

    holder_identity: str = ""
    acquire_time: datetime | None = None
    renew_time: datetime | None = None

    def age_s(self, now: datetime) -> float:
        """Seconds since the last renewal by the wall clock; infinite where there was none."""
        if self.renew_time is None:
            return float("inf")
        return (now - aware(self.renew_time)).total_seconds()

    def lives(self, now: datetime) -> bool:
        """Whether somebody holds it and has renewed it lately."""
        return bool(self.holder_identity) and self.age_s(now) <= LIVES_S


class Lease(KubeStruct, frozen=True, kw_only=True):
    """coordination.k8s.io/v1 Lease."""

    metadata: ObjectMeta = ObjectMeta()
    spec: LeaseSpec = LeaseSpec()


def aware(instant: datetime) -> datetime:
    """The instant in its own zone, in UTC where it names none."""
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)
