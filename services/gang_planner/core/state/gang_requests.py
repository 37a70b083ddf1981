"""The ProvisioningRequests that gangs wait for (ADR 0087), and the queue's annotations that ask for
them.
"""

from typing import TYPE_CHECKING

import msgspec

from shared.contracts import annotations
from shared.contracts.provisioning import PROVISIONING_DIALECT, RequestName

if TYPE_CHECKING:
    from services.gang_planner.core.state.queues import QueueEntry
    from shared.contracts.cluster import Synced
    from shared.model.terms import Labels


class GangRequest(msgspec.Struct, eq=False):
    """The request that a waiting gang needs; the gang's assessment keeps it up to date."""

    name: RequestName
    #: (shape id, number of pods), in the order of the request's sets.
    sets: tuple[tuple[int, int], ...]
    #: Amounts of all its pods and units, by resource row.
    amounts: dict[int, int]
    #: The same as `sets` of reserved units of `minResources`, for which no pods exist.
    units: tuple[tuple[int, int], ...] = ()
    #: The gang's turn has come, and its quota suffices: the request is to be created.
    open: bool = False
    #: The cluster state has shown it.
    seen: bool = False
    #: When the controller was asked for it last, and how often it was asked again; None: the
    #: request is not open, or was seen.
    asked_ms: int | None = None
    repeats: int = 0
    #: Why the API server does not create it, and `repeats` when that was reported; "": it has not
    #: refused it.
    refusal: str = ""
    refused_at: int | None = None
    #: When it was seen first, and whether no autoscaler has answered it for too long.
    seen_ms: int | None = None
    overdue: bool = False
    #: When the planner saw that its capacity is not provided, or not kept any more; None: it has
    #: not.
    lost_ms: int | None = None
    #: Since when the gang has waited for something else than capacity; None: it has not.
    idle_ms: int | None = None
    #: It waited so for too long: its requests are to be deleted.
    lapsed: bool = False


def class_of(queue: "QueueEntry") -> str:
    """The class of the requests that gangs of the queue wait for; "": they wait for none."""
    return _setting(queue, annotations.PROVISIONING_CLASS)


def parameters_of(queue: "QueueEntry") -> "Labels":
    """The parameters of these requests, sorted by name."""
    text = _setting(queue, annotations.PROVISIONING_PARAMETERS)
    parts = [part.partition("=") for part in text.split(",") if part]
    return tuple(sorted((name, value) for name, _, value in parts))


def is_served(synced: "Synced | None") -> bool:
    """Whether the API server serves ProvisioningRequests, as the watcher reported last."""
    return synced is not None and PROVISIONING_DIALECT in synced.dialects


def _setting(queue: "QueueEntry", key: str) -> str:
    settings = queue.queue.settings if queue.queue is not None else ()
    return dict(settings).get(key, "") if settings else ""
