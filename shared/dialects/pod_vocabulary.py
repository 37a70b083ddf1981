"""The annotations and labels that all dialects read on a pod, merged once from their files."""

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from sys import intern

from shared.dialects.discovery import by_precedence
from shared.dialects.group_references import ReferenceTable
from shared.dialects.protocol import NAME_CHARACTERS_MAX, Dialect, PodKeys, WorkloadLabels
from shared.kube.objects import ObjectMeta
from shared.kube.resources import Resource


class PodVocabulary:
    """The keys of all dialects, merged by precedence.

    Attributes:
        references: The places where pods declare their gangs.
        min_member: Keys of the number of pods that must run together.
        queue: Keys of the queue's name.
        index: Keys of a pod's rank in its role.
        without_implied_groups: Scheduler names whose bare pods get no PodGroup.
    """

    def __init__(self, dialects: Iterable[Dialect]) -> None:
        """Merge the keys of these dialects, given by precedence."""
        ordered = tuple(dialects)
        self.references = ReferenceTable(ordered)
        self.min_member = _merged(each.min_member for each in ordered)
        self.queue = _merged(each.queue for each in ordered)
        self.index = _merged(each.index for each in ordered)
        self._role = _merged(each.role for each in ordered)
        self._derive_role: tuple[Callable[[Mapping[str, str]], str], ...] = tuple(
            each.derive_role for each in ordered if each.derive_role is not None
        )
        self._workloads: tuple[WorkloadLabels, ...] = tuple(
            each.workload for each in ordered if each.workload is not None
        )
        self._device_parts = tuple(key for each in ordered for key in each.device_parts)
        self.without_implied_groups = frozenset(
            scheduler.name
            for each in ordered
            for scheduler in each.schedulers
            if not scheduler.implies_groups
        )
        self._grouped_later = {
            scheduler.name: (each.name, scheduler.grouped_later)
            for each in ordered
            for scheduler in each.schedulers
            if scheduler.grouped_later
        }

    def group_to_come(self, scheduler_name: str, served: Collection[str] | None) -> tuple[str, ...]:
        """Why a pod of this scheduler that declares no gang is not bound yet; () if it may be."""
        scheduler = self._grouped_later.get(scheduler_name)
        if scheduler is None or (served is not None and scheduler[0] not in served):
            return ()
        return (scheduler[1],)

    def device_parts(self, annotations: Mapping[str, str]) -> tuple[str, ...]:
        """The annotations by which a pod requests parts of devices, as messages name them."""
        return tuple(f"{key} (annotation)" for key in self._device_parts if annotations.get(key))

    def role(self, metadata: ObjectMeta) -> str:
        """The pod's role in its gang; "" when no dialect knows one."""
        role = self._role.read(metadata) or ""
        if not role and metadata.labels:
            role = next(filter(None, (derive(metadata.labels) for derive in self._derive_role)), "")
        return intern(role[:NAME_CHARACTERS_MAX])

    def workload(self, labels: Mapping[str, str]) -> tuple[str, str]:
        """The workload that a pod's labels name (`Workload.name`), and the pod's part of it; both
        "" where they name none.
        """
        for known in self._workloads:
            name = labels.get(known.name)
            if name:
                part = "-".join(labels.get(key, "") for key in known.parts)
                return workload_name(known.resource, name), intern(part[:NAME_CHARACTERS_MAX])
        return "", ""


@cache
def pod_vocabulary() -> PodVocabulary:
    """The vocabulary of the dialects that are installed."""
    return PodVocabulary(by_precedence())


def workload_name(resource: Resource, name: str) -> str:
    """`Workload.name` of an object: its resource's title and its name, unique in a namespace."""
    return intern(f"{resource.title}/{name[:NAME_CHARACTERS_MAX]}")


def _merged(keys: Iterable[PodKeys]) -> PodKeys:
    given = tuple(keys)
    return PodKeys(
        annotations=tuple(dict.fromkeys(key for pod_keys in given for key in pod_keys.annotations)),
        labels=tuple(dict.fromkeys(key for pod_keys in given for key in pod_keys.labels)),
    )
