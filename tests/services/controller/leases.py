"""Leases as other projects' programs keep them."""

from datetime import UTC, datetime, timedelta
from typing import Any

from shared.kube.resources import LEASES


def a_lease(name: str, *, age_s: float = 0.0, holder: str = "somebody-0") -> dict[str, Any]:
    """A lease that was renewed so long ago by its holder's own clock; "": it was released."""
    renewed = datetime.now(UTC) - timedelta(seconds=age_s)
    return {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"name": name},
        "spec": {
            "holderIdentity": holder,
            "renewTime": renewed.isoformat(timespec="microseconds").replace("+00:00", "Z"),
        },
    }
