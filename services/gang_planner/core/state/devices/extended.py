"""Extended resources that DeviceClasses serve: which class has a resource, and what a pod needs of
it where no device plugin has the resource.

The requests of the pod's claim, their names and the containers that they are for are those of
kube-scheduler: kubelets and drivers of a node see no difference.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from services.gang_planner.core.state.devices.selection import DeviceRequirement
from services.gang_planner.core.state.reference_objects import ReferenceObjects
from shared.model.devices import CLASS_RESOURCE_PREFIX, DeviceClass
from shared.model.objects import ContainerDevices

#: Before the pod's UID, the name under which the devices of a pod are accounted. No object has such
#: a name.
_OF_POD: Final = "pod:"
_NAME_CHARACTERS_MAX: Final = 253
_DIGEST_CHARACTERS: Final = 10
#: Characters of a claim's name after those of the pod's.
_SUFFIX_CHARACTERS: Final = len("-extended-resources-") + _DIGEST_CHARACTERS


class ExtendedRequest(NamedTuple):
    """Devices of a class for one or more containers."""

    name: str
    resource: str
    device_class: str
    number: int


class RequestMapping(NamedTuple):
    """A container that uses the devices of a request for one of its resources."""

    container: str
    resource: str
    request: str


class ExtendedNeed(NamedTuple):
    """What a pod needs if all its extended resources with a class are served by devices."""

    requests: tuple[ExtendedRequest, ...]
    mappings: tuple[RequestMapping, ...]

    def only(self, names: Iterable[str]) -> "ExtendedNeed":
        """The part of these requests."""
        chosen = frozenset(names)
        return ExtendedNeed(
            tuple(request for request in self.requests if request.name in chosen),
            tuple(mapping for mapping in self.mappings if mapping.request in chosen),
        )


def requirement_of(
    device_class: DeviceClass, selectors: tuple[str, ...] = (), namespace: str = ""
) -> DeviceRequirement | None:
    """The devices of a class that these selectors of a claim in the namespace match, too; None: the
    class's are not known.
    """
    own = len(selectors), namespace if selectors else ""
    if device_class.driver:
        return DeviceRequirement(device_class.driver, selectors, *own)
    if device_class.selectors is None:
        return None
    return DeviceRequirement(None, device_class.selectors + selectors, *own)


class ClassesOfResources:
    """The DeviceClass of each extended resource, cached until a class changes."""

    def __init__(self, tables: ReferenceObjects) -> None:
        self._tables = tables
        self._at = 0
        self._named: dict[str, DeviceClass] = {}

    def find(self, resource: str) -> DeviceClass | None:
        """The class that has the resource."""
        classes = self._tables.device_classes
        if resource.startswith(CLASS_RESOURCE_PREFIX):
            return classes.by_name.get(("", resource.removeprefix(CLASS_RESOURCE_PREFIX)))
        self._refresh()
        return self._named.get(resource)

    def named(self) -> Sequence[str]:
        """The resources that classes name."""
        self._refresh()
        return list(self._named)

    def need_of(self, containers: tuple[ContainerDevices, ...]) -> ExtendedNeed:
        """What these containers of a pod need."""
        resources = sorted(
            {request[0] for container in containers for request in container.requests}
        )
        requests: list[ExtendedRequest] = []
        mappings: list[RequestMapping] = []
        for resource in resources:
            device_class = self.find(resource)
            if device_class is not None:
                of_one = _need_of(resource, device_class.name, containers)
                requests += of_one.requests
                mappings += of_one.mappings
        return ExtendedNeed(tuple(sorted(requests)), tuple(mappings))

    def _refresh(self) -> None:
        classes = self._tables.device_classes
        if self._at == classes.changes:
            return
        self._at = classes.changes
        # Of several classes the newest one, then the one with the lowest name, as kube-scheduler.
        order = sorted(classes.values(), key=_precedence)
        self._named = {served.extended_resource: served for served in order}
        self._named.pop("", None)


def name_of_pod(pod_uid: str) -> str:
    """The name under which the devices for extended resources of a pod are accounted."""
    return _OF_POD + pod_uid


def pod_uid_of(name: str) -> str | None:
    """The pod that such a name is for; None: it is the name of a ResourceClaim."""
    return name.removeprefix(_OF_POD) if name.startswith(_OF_POD) else None


def claim_name(pod: str, pod_uid: str, need: ExtendedNeed) -> str:
    """The name of the ResourceClaim for a need of a pod: the same whenever it is computed."""
    # Also by a later version of the planner.
    requests = ["/".join(map(str, request)) for request in need.requests]
    text = "\n".join([pod_uid, *requests])
    digest = hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_CHARACTERS]
    start = pod[: _NAME_CHARACTERS_MAX - _SUFFIX_CHARACTERS].rstrip(".-")
    return f"{start}-extended-resources-{digest}"


def _precedence(device_class: DeviceClass) -> tuple[int, ...]:
    """A sort key that puts the newest class last, of several the one with the lowest name."""
    return device_class.created_ms, *(-ord(character) for character in device_class.name), 1


def _need_of(
    resource: str, device_class: str, containers: tuple[ContainerDevices, ...]
) -> ExtendedNeed:
    """The requests for one resource: one for each container that stays, and at most one for all
    init containers that end, which first use the devices of the containers after them.
    """
    lasting = {
        container.index: ExtendedRequest(name, resource, device_class, number)
        for container in containers
        if not container.short_lived
        for name, number in _requests(container, resource)
    }
    names = {container.index: container.container for container in containers}
    users = [(names[index], request.name) for index, request in lasting.items()]
    own: list[ExtendedRequest] = []
    for container in containers:
        for name, number in _requests(container, resource) if container.short_lived else ():
            used, left = _used(lasting, container.index, number)
            users += [(container.container, request) for request in used]
            if left:
                own.append(ExtendedRequest(name, resource, device_class, left))
                users.append((container.container, name))
    largest = max(own, key=lambda request: request.number, default=None)
    one_for_all = {request.name: largest.name for request in own} if largest is not None else {}
    mappings = (
        RequestMapping(container, resource, one_for_all.get(name, name))
        for container, name in users
    )
    requests = [*lasting.values(), *([largest] if largest is not None else [])]
    return ExtendedNeed(tuple(requests), tuple(mappings))


def _used(lasting: Mapping[int, ExtendedRequest], index: int, number: int) -> tuple[list[str], int]:
    """The requests of later containers that a container which ends uses for its `number` of
    devices, and how many it lacks then.
    """
    used: list[str] = []
    for place, request in lasting.items():
        if place >= index and number > 0:
            used.append(request.name)
            number -= request.number
    return used, max(number, 0)


def _requests(container: ContainerDevices, resource: str) -> list[tuple[str, int]]:
    """The name of the container's request for the resource, and the number of devices."""
    return [
        (f"container-{container.index}-request-{position}", number)
        for name, position, number in container.requests
        if name == resource
    ]
