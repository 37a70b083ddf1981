"""Settings of the controllers."""

from typing import Annotated, Final

from msgspec import Meta

from shared.dialects.discovery import scheduler_names
from shared.runtime.settings import KubeSettings, SettingsError

#: The controllers that read verdicts, then the reconcilers (`service.RECONCILERS`).
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

#: Volcano's name -> ours.
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
    controllers: Annotated[
        tuple[str, ...],
        Meta(
            description="controllers to run, by name; *: all, -NAME: not that one; Volcano's names "
            "(job-controller) are accepted"
        ),
    ] = ("status",)
    scheduler_name: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=63)], ...],
        Meta(min_length=1, description="scheduler names that Tutti serves; Jobs name one of them"),
    ] = scheduler_names()
    take_over: Annotated[
        bool,
        Meta(description="write although Volcano's programs are active (they renew their Leases)"),
    ] = False
    lease_namespace: Annotated[
        str,
        Meta(
            min_length=1,
            description="namespace of the Leases by which replicas divide keys, and of the Lease "
            "that shows that a planner is alive",
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
            description="NAMESPACE/NAME of the ConfigMap whose key volcano-controller.conf has the "
            "node labels by which HyperNodes are discovered",
        ),
    ] = "volcano-system/volcano-controller-configmap"
    queue_command_namespaces: Annotated[
        tuple[Annotated[str, Meta(max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")], ...],
        Meta(
            max_length=100,
            description="namespaces whose Commands on queues are carried out for all users; "
            "elsewhere the creator needs the right to update the queue",
        ),
    ] = ()
    queue_command_policy: Annotated[
        str,
        Meta(
            max_length=253,
            pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
            description="name of the ValidatingAdmissionPolicy that reviews Commands on queues, "
            "and of its binding",
        ),
    ] = "tutti-queue-commands"
    owner_cluster_role: Annotated[
        str, Meta(description="ClusterRole that this policy belongs to and goes with; empty: none")
    ] = ""
    writes_per_s: Annotated[
        int, Meta(ge=1, le=10_000, description="writes of statuses, conditions and Events a second")
    ] = 200
    pod_events_per_s: Annotated[
        int,
        Meta(ge=1, le=10_000, description="Scheduled Events of pods a second; others are dropped"),
    ] = 10
    waiting_pod_events_per_s: Annotated[
        int,
        Meta(
            ge=0,
            le=10_000,
            description="FailedScheduling Events of waiting pods a second, the first pods of each "
            "gang before the rest; 0: none",
        ),
    ] = 20
    objects_per_s: Annotated[
        int,
        Meta(ge=1, le=100_000, description="pods and other objects created or deleted a second"),
    ] = 2_000

    def __post_init__(self) -> None:
        """Check the chosen controllers.

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
    """Our names for a given name, without its sign."""
    bare = name[1:] if name[0] in "+-" else name
    return {*_ALIASES.get(bare, bare).split()}


def _refusal(why: str) -> SettingsError:
    return SettingsError(f"--controllers: {why}; there are: {', '.join(CONTROLLERS)}")
