"""The kinds that are served: the built-in table, and what custom resource definitions add.

A kind is stored once whatever versions it is served in; `Resource.view` says what a version shows
of it. Events are one kind under two groups with two spellings, as in Kubernetes.
"""

import msgspec

from tutti.cluster.objects import Obj

Key = tuple[str, str]  # (group of storage, plural)


class Resource(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One kind under one group."""

    group: str
    versions: tuple[str, ...]  # served ones, the preferred first
    kind: str
    plural: str
    namespaced: bool
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    stored_group: str | None = None  # where it differs from `group`
    has_status: bool = False  # a status subresource
    keeps_status: bool = False  # a status given at creation stays although there is a subresource
    has_generation: bool = False
    needs_version: bool = False  # an update must name the resourceVersion it changes
    custom: bool = False
    schemas: dict[str, Obj] = {}  # by version
    columns: dict[str, list[Obj]] = {}  # printer columns by version

    @property
    def key(self) -> Key:
        """Where the store keeps it."""
        return (self.group if self.stored_group is None else self.stored_group, self.plural)

    @property
    def qualified(self) -> str:
        """`pods`, `podgroups.scheduling.volcano.sh`: the name in messages."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def api_version(self, version: str) -> str:
        """`v1`, `policy/v1`."""
        return f"{self.group}/{version}" if self.group else version

    def view(self, obj: Obj, version: str) -> Obj:
        """A stored object as a version shows it; kind and apiVersion first (lists cut them)."""
        head: Obj = {"kind": self.kind, "apiVersion": self.api_version(version)}
        return head | (obj if self.stored_group is None else _renamed(obj, _NEW_NAMES)) | head

    def stored_form(self, obj: Obj) -> Obj:
        """The inverse of `view`: what is kept of an object that came in any version."""
        if self.stored_group is not None:
            return _renamed(obj, _OLD_NAMES) | {"kind": self.kind, "apiVersion": "v1"}
        return obj | {"kind": self.kind, "apiVersion": self.api_version(self.versions[0])}


# events.k8s.io/v1 calls fields differently than v1 does.
_NEW_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "count": "deprecatedCount",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
}
_OLD_NAMES = {new: old for old, new in _NEW_NAMES.items()}


def _renamed(event: Obj, names: dict[str, str]) -> Obj:
    return {names.get(key, key): value for key, value in event.items()}


# group version kind plural flags short names. Flags: - cluster-wide, s status subresource, c its
# status may be given at creation, g generation, v an update needs a resourceVersion, a in `all`,
# e another spelling of core events.
_TABLE = """
core v1 Namespace namespaces s- ns
core v1 Node nodes sc- no
core v1 Pod pods sga po
core v1 Event events . ev
core v1 Service services sa svc
core v1 ConfigMap configmaps . cm
core v1 Secret secrets .
core v1 ServiceAccount serviceaccounts . sa
core v1 ResourceQuota resourcequotas s quota
core v1 PersistentVolume persistentvolumes s- pv
core v1 PersistentVolumeClaim persistentvolumeclaims s pvc
scheduling.k8s.io v1 PriorityClass priorityclasses g- pc
policy v1 PodDisruptionBudget poddisruptionbudgets sgv pdb
coordination.k8s.io v1 Lease leases v
storage.k8s.io v1 StorageClass storageclasses - sc
apps v1 Deployment deployments sga deploy
apps v1 ReplicaSet replicasets sga rs
apps v1 StatefulSet statefulsets sga sts
apps v1 DaemonSet daemonsets sga ds
batch v1 Job jobs sga
events.k8s.io v1 Event events e ev
apiextensions.k8s.io v1 CustomResourceDefinition customresourcedefinitions sgv- crd crds
admissionregistration.k8s.io v1 MutatingWebhookConfiguration mutatingwebhookconfigurations gv-
admissionregistration.k8s.io v1 ValidatingWebhookConfiguration validatingwebhookconfigurations gv-
authorization.k8s.io v1 SelfSubjectAccessReview selfsubjectaccessreviews -
"""


def _row(line: str) -> Resource:
    group, version, kind, plural, flags, *names = line.split()
    return Resource(
        group="" if group == "core" else group,
        versions=(version,),
        kind=kind,
        plural=plural,
        singular=kind.lower(),
        namespaced="-" not in flags,
        short_names=tuple(names),
        categories=("all",) if "a" in flags else (),
        stored_group="" if "e" in flags else None,
        has_status="s" in flags,
        keeps_status="c" in flags,
        has_generation="g" in flags,
        needs_version="v" in flags,
    )


CRDS: Key = ("apiextensions.k8s.io", "customresourcedefinitions")
NAMESPACES: Key = ("", "namespaces")
PODS: Key = ("", "pods")
NODES: Key = ("", "nodes")
EVENTS: Key = ("", "events")
BUDGETS: Key = ("policy", "poddisruptionbudgets")
PRIORITY_CLASSES: Key = ("scheduling.k8s.io", "priorityclasses")
MUTATING: Key = ("admissionregistration.k8s.io", "mutatingwebhookconfigurations")
VALIDATING: Key = ("admissionregistration.k8s.io", "validatingwebhookconfigurations")
ACCESS_REVIEWS: Key = ("authorization.k8s.io", "selfsubjectaccessreviews")


class Registry:
    """What is served at this moment, by (group, plural)."""

    def __init__(self) -> None:
        rows = [_row(line) for line in _TABLE.strip().splitlines()]
        self._by_name = {(row.group, row.plural): row for row in rows}
        self.built_in = frozenset(self._by_name)

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """The resource behind an address, or None if this version of it is not served."""
        resource = self._by_name.get((group, plural))
        return resource if resource is not None and version in resource.versions else None

    def at(self, key: Key) -> Resource:
        """The resource of a key. Raises KeyError when it is not served (any more)."""
        return self._by_name[key]

    def all(self) -> list[Resource]:
        """Every resource, ordered by group and plural."""
        return [self._by_name[name] for name in sorted(self._by_name)]

    def add(self, resource: Resource) -> None:
        """Serves a custom resource, or its new definition."""
        self._by_name[(resource.group, resource.plural)] = resource

    def remove(self, key: Key) -> None:
        """Ends a custom resource."""
        self._by_name.pop(key, None)
