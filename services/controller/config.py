"""Settings of the controllers."""

from typing import Annotated, Final

from msgspec import Meta

from shared.dialects.discovery import scheduler_names
from shared.runtime.settings import KubeSettings, SettingsError

#: Those that read verdicts, then those that reconcile (`service.RECONCILERS`).
CONTROLLERS: Final = (
    "podgroup",
    "status",
    "cronjob",
    "gc",
    "hypernode",
    "job",
    "jobflow",
    "queue",
    "workload",
)

#: What Volcano calls them.
_ALIASES: Final = {
    "gc-controller": "gc",
    "hyperNode-controller": "hypernode",
    "job-controller": "job",
    "jobflow-controller": "jobflow",
    "jobtemplate-controller": "jobflow",
    "pg-controller": "podgroup workload",
    "queue-controller": "queue",
    "cronjob-controller": "cronjob",
}


class ControllerSettings(KubeSettings, frozen=True, kw_only=True):
    """The controllers' settings."""

    controllers: Annotated[
        tuple[str, ...],
        Meta(
            description="which controllers to run, by name; *: all, -NAME: not that one; Volcano's "
            "names (job-controller) are understood"
        ),
    ] = ("status",)
    scheduler_name: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=63)], ...],
        Meta(min_length=1, description="scheduler names that are ours; Jobs name one of them"),
    ] = scheduler_names()
    take_over: Annotated[
        bool, Meta(description="act although Volcano's programs live (their Leases are renewed)")
    ] = False
    lease_namespace: Annotated[
        str,
        Meta(
            min_length=1,
            description="where replicas keep the Leases by which they divide keys, and where the "
            "Lease is that shows that a planner lives",
        ),
    ] = "kube-system"
    pod_uid: Annotated[
        str,
        Meta(description="UID of the pod that --instance names, which owns this replica's Lease"),
    ] = ""
    controller_configmap: Annotated[
        str,
        Meta(
            pattern="^[^/]+/[^/]+$",
            description="NAMESPACE/NAME of the ConfigMap whose key volcano-controller.conf says by "
            "which labels of nodes HyperNodes are discovered",
        ),
    ] = "volcano-system/volcano-controller-configmap"
    writes_per_s: Annotated[
        int, Meta(ge=1, le=10_000, description="writes of statuses, conditions, events a second")
    ] = 200
    pod_events_per_s: Annotated[
        int, Meta(ge=1, le=10_000, description="Scheduled events of pods a second, others dropped")
    ] = 10
    waiting_pod_events_per_s: Annotated[
        int,
        Meta(
            ge=0,
            le=10_000,
            description="FailedScheduling events of waiting pods a second, the first pods of each "
            "gang before the rest; 0: none",
        ),
    ] = 20
    objects_per_s: Annotated[
        int,
        Meta(
            ge=1, le=100_000, description="pods and other objects that are made or deleted a second"
        ),
    ] = 2_000

    def __post_init__(self) -> None:
        """Refuse controllers that there are not.

        Raises:
            SettingsError: One is unknown, or none is left.
        """
        self.chosen()

    def chosen(self) -> tuple[str, ...]:
        """The controllers to run, each once, by their own names, sorted.

        Raises:
            SettingsError: One is unknown, or none is left.
        """
        names = [name for name in self.controllers if name]
        unknown = [name for name in names if name != "*" and not _own(name) <= set(CONTROLLERS)]
        if unknown:
            raise _refusal(f"unknown: {', '.join(unknown)}")
        chosen: set[str] = set()
        for name in names:
            if name == "*":
                chosen.update(CONTROLLERS)
            elif not name.startswith("-"):
                chosen.update(_own(name))
        for name in names:
            if name.startswith("-"):
                chosen.difference_update(_own(name))
        if not chosen:
            raise _refusal("none given")
        return tuple(sorted(chosen))


def _own(name: str) -> set[str]:
    """Our names for what was given, without the sign that says whether it is wanted."""
    bare = name[1:] if name[0] in "+-" else name
    return {*_ALIASES.get(bare, bare).split()}


def _refusal(why: str) -> SettingsError:
    return SettingsError(f"--controllers: {why}; there are: {', '.join(CONTROLLERS)}")
