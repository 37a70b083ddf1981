"""Settings of the watcher."""

from typing import Annotated

from msgspec import Meta

from shared.dialects.discovery import scheduler_names
from shared.runtime.settings import KubeSettings

SchedulerName = Annotated[
    str, Meta(min_length=1, max_length=63, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
]


class WatcherSettings(KubeSettings, frozen=True, kw_only=True):
    """A watcher's settings."""

    scheduler_name: Annotated[
        tuple[SchedulerName, ...],
        Meta(min_length=1, description="scheduler names that are ours; pods name one of them"),
    ] = scheduler_names()
    #: True where `controller --controllers=podgroup` runs: bare pods will get a PodGroup of
    #: Volcano's.
    podgroup_controller: Annotated[
        bool, Meta(description="whether our controller makes PodGroups for bare pods")
    ] = True
