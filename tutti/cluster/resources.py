"""The served kinds: a table of built-in ones, and those of CRDs.

A kind is stored once, in any number of served versions; `Resource.view` converts it to a version.
Events are one kind in two groups with different field names, as in Kubernetes: Tutti writes the new
one, `kubectl describe` reads the old one.
"""

import msgspec

from tutti.cluster.objects import Obj

Key = tuple[str, str]  # (group of storage, plural)

CRDS: Key = ("apiextensions.k8s.io", "customresourcedefinitions")
NAMESPACES: Key = ("", "namespaces")
PODS: Key = ("", "pods")
NODES: Key = ("", "nodes")
EVENTS: Key = ("", "events")
SERVICES: Key = ("", "services")
CONFIG_MAPS: Key = ("", "configmaps")
BUDGETS: Key = ("policy", "poddisruptionbudgets")
PRIORITY_CLASSES: Key = ("scheduling.k8s.io", "priorityclasses")
MUTATING: Key = ("admissionregistration.k8s.io", "mutatingwebhookconfigurations")
VALIDATING: Key = ("admissionregistration.k8s.io", "validatingwebhookconfigurations")
API_SERVICES: Key = ("apiregistration.k8s.io", "apiservices")
TOKEN_REVIEWS: Key = ("authentication.k8s.io", "tokenreviews")
ACCESS_REVIEWS: Key = ("authorization.k8s.io", "subjectaccessreviews")
#: Kinds that are only created: the answer is in the status, and nothing is stored.
REVIEWS: frozenset[Key] = frozenset((TOKEN_REVIEWS, ACCESS_REVIEWS))

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


class Resource(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """One kind under one group."""

    group: str
    versions: tuple[str, ...]  # served ones, the preferred first
    kind: str
    plural: str
    namespaced: bool
    singular: str
    short_names: tuple[str, ...] = ()
    new_event: bool = False  # events.k8s.io's view of core events
    has_status: bool = False  # a status subresource
    keeps_status: bool = False  # a status given at creation stays although there is a subresource
    has_generation: bool = False
    custom: bool = False
    schemas: dict[str, Obj] = {}  # by version
    columns: dict[str, list[Obj]] = {}  # printer columns by version

    @property
    def key(self) -> Key:
        """Its key in the store."""
        return EVENTS if self.new_event else (self.group, self.plural)

    @property
    def qualified(self) -> str:
        """Its name in messages: `pods`, `podgroups.scheduling.volcano.sh`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def api_version(self, version: str) -> str:
        """`v1`, `policy/v1`."""
        return f"{self.group}/{version}" if self.group else version

    def view(self, obj: Obj, version: str) -> Obj:
        """A stored object in a version; kind and apiVersion first (lists cut them off)."""
        head: Obj = {"kind": self.kind, "apiVersion": self.api_version(version)}
        return head | (_renamed(obj, _NEW_NAMES) if self.new_event else obj) | head

    def stored_form(self, obj: Obj) -> Obj:
        """The inverse of `view`: the stored form of an object in any version."""
        if self.new_event:
            return _renamed(obj, _OLD_NAMES) | {"kind": self.kind, "apiVersion": "v1"}
        return obj | {"kind": self.kind, "apiVersion": self.api_version(self.versions[0])}


def _renamed(event: Obj, names: dict[str, str]) -> Obj:
    return {names.get(key, key): value for key, value in event.items()}


# group version kind plural flags short names. Flags: - cluster-wide, s status subresource, c its
# status may be given at creation, g generation, e another spelling of core events.
_TABLE = """
core v1 Namespace namespaces s- ns
core v1 Node nodes sc- no
core v1 Pod pods sg po
core v1 Event events . ev
core v1 Service services s svc
core v1 ConfigMap configmaps . cm
core v1 Secret secrets .
core v1 ServiceAccount serviceaccounts . sa
core v1 ResourceQuota resourcequotas s quota
core v1 PersistentVolume persistentvolumes s- pv
core v1 PersistentVolumeClaim persistentvolumeclaims s pvc
scheduling.k8s.io v1 PriorityClass priorityclasses g- pc
policy v1 PodDisruptionBudget poddisruptionbudgets sg pdb
coordination.k8s.io v1 Lease leases .
networking.k8s.io v1 NetworkPolicy networkpolicies g netpol
storage.k8s.io v1 StorageClass storageclasses - sc
storage.k8s.io v1 CSINode csinodes -
storage.k8s.io v1 CSIDriver csidrivers -
storage.k8s.io v1 CSIStorageCapacity csistoragecapacities .
storage.k8s.io v1 VolumeAttachment volumeattachments -
resource.k8s.io v1 DeviceClass deviceclasses g-
resource.k8s.io v1 ResourceSlice resourceslices g-
resource.k8s.io v1 ResourceClaim resourceclaims s
apps v1 Deployment deployments sg deploy
apps v1 ReplicaSet replicasets sg rs
apps v1 StatefulSet statefulsets sg sts
apps v1 DaemonSet daemonsets sg ds
batch v1 Job jobs sg
events.k8s.io v1 Event events e ev
apiextensions.k8s.io v1 CustomResourceDefinition customresourcedefinitions sg- crd crds
admissionregistration.k8s.io v1 MutatingWebhookConfiguration mutatingwebhookconfigurations g-
admissionregistration.k8s.io v1 ValidatingAdmissionPolicy validatingadmissionpolicies sg-
admissionregistration.k8s.io v1 ValidatingAdmissionPolicyBinding validatingadmissionpolicybindings -
admissionregistration.k8s.io v1 ValidatingWebhookConfiguration validatingwebhookconfigurations g-
apiregistration.k8s.io v1 APIService apiservices s-
authentication.k8s.io v1 TokenReview tokenreviews -
authorization.k8s.io v1 SubjectAccessReview subjectaccessreviews -
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
        new_event="e" in flags,
        has_status="s" in flags,
        keeps_status="c" in flags,
        has_generation="g" in flags,
    )


class Registry(dict[Key, Resource]):
    """The resources that are served now, by (group, plural)."""

    def __init__(self) -> None:
        rows = [_row(line) for line in _TABLE.strip().splitlines()]
        super().__init__({(row.group, row.plural): row for row in rows})

    def all(self) -> list[Resource]:
        """Every resource, ordered by group and plural."""
        return [self[name] for name in sorted(self)]
