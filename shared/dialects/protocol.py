"""The interface of a dialect's file: one `Dialect`, made of the types of this module.

Each field of `Dialect` but its name has a default, so that a file states only what its dialect has:
the two API groups of kube-batch have kinds and a status, training-operator has nothing but labels.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias, TypedDict

import msgspec

from shared.contracts.verdicts import Verdict
from shared.dialects.ignored_fields import IgnoredField
from shared.kube.decoding import Undecodable
from shared.kube.objects import ObjectMeta
from shared.kube.resources import Resource
from shared.model.objects import GROUP_NAME_SCOPE, ClusterObject, PodGroup

JsonObject: TypeAlias = dict[str, Any]
"""A Kubernetes object as plain JSON, of whatever shape its author gave it."""

#: kube-scheduler's name, which pods get that name no scheduler.
DEFAULT_SCHEDULER: Final = "default-scheduler"
#: Name of the dialect of the groups and queues that Tutti makes itself, and of Volcano's Jobs.
VOLCANO: Final = "volcano"
#: Names in Kubernetes are at most this long: more of a text cannot name anything.
NAME_CHARACTERS_MAX: Final = 253
#: `Dialect.precedence` of a dialect that states none.
PRECEDENCE_DEFAULT: Final = 1000


class ReadingContext(msgspec.Struct, frozen=True, kw_only=True):
    """The input for reading an object besides the object itself.

    Attributes:
        scheduler_names: Scheduler names that Tutti serves; pods that name another one are foreign.
        implied_groups: Whether the controller creates PodGroups for bare pods here: then such pods
            are read as members of the PodGroup that will be created for them.
        served: Names of the dialects with both kinds and group references whose kinds the API
            server serves; None: take each of them for served.
    """

    scheduler_names: frozenset[str]
    implied_groups: bool = False
    served: frozenset[str] | None = None


class FieldError(msgspec.Struct, frozen=True, kw_only=True):
    """One violation: the field's path ("spec.minMember") and the rule it breaks."""

    path: str
    message: str
    #: The whole violation in another product's words, if that names the path in its own way.
    words: str = ""

    @property
    def text(self) -> str:
        """Both in one line, as messages show them."""
        return self.words or f"{self.path}: {self.message}"


class StatusPatch(msgspec.Struct, frozen=True, kw_only=True):
    """A patch for a group object, which is sent to the served version of its resource.

    The body's `metadata.uid` makes the API server answer 409 when the name belongs to another
    object by now.
    """

    resource: Resource
    namespace: str
    name: str
    #: "status", or "" for the main resource.
    subresource: str = ""
    body: JsonObject
    #: Version of the resource -> its body, where it differs from `body`.
    bodies: dict[str, JsonObject] = {}
    #: "merge" replaces lists; "strategic", for built-in kinds only, keeps the conditions of others.
    patch_type: Literal["merge", "strategic"] = "merge"
    #: Whether conditions of other types than those in the body are kept, because other components
    #: write them. For lists that the API server can only replace: the stored ones are read before.
    keeps_conditions: bool = False

    @property
    def carries_metadata(self) -> bool:
        """Whether annotations put into this body are stored; if not, they need a patch of the main
        resource.
        """
        return self.subresource == ""


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """How the controller shows a verdict on the group object, while there is one.

    Attributes:
        body: The status on a verdict; None: only the verdict's annotation is written.
        at: Where it is written: "" is the main resource, "status" the subresource.
        versions: The versions of the resource with another status.
        patch_type: As in `StatusPatch`.
        keeps_conditions: Likewise.
    """

    body: Callable[[Verdict], JsonObject] | None = None
    at: Literal["", "status"] = "status"
    versions: Mapping[str, Callable[[Verdict], JsonObject]] = {}
    patch_type: Literal["merge", "strategic"] = "merge"
    keeps_conditions: bool = False

    def patch(self, resource: Resource, verdict: Verdict) -> StatusPatch | None:
        """The patch of a group object of this resource; None: there is none."""
        if verdict.phase == "Gone" or not verdict.uid:
            return None
        of_object: JsonObject = {"metadata": {"uid": verdict.uid}}
        return StatusPatch(
            resource=resource,
            namespace=verdict.namespace,
            name=verdict.name,
            subresource=self.at,
            body=of_object if self.body is None else {**of_object, "status": self.body(verdict)},
            bodies={
                version: {**of_object, "status": body(verdict)}
                for version, body in self.versions.items()
            },
            patch_type=self.patch_type,
            keeps_conditions=self.keeps_conditions,
        )


def _left_out(_undecodable: Undecodable) -> None:
    return


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """One resource that a dialect reads, and the neutral object that it becomes.

    Kinds of one resource (a PodDisruptionBudget is a gang to one dialect, and a budget to the
    planner) share its watch, so they have one `decoded`.

    Attributes:
        resource: The resource that the watcher lists and watches.
        neutral: Neutral kind (`shared.model.objects.KINDS`) that it becomes.
        decoded: Typed struct that the watcher decodes it into.
        read: Makes the neutral object; None when scheduling does not need this object. Never raises
            for what users wrote.
        read_undecodable: The same for an object that does not fit `decoded`: its error must be
            reported to users. By default the object is left out.
        in_context: Whether both have the `ReadingContext` as a second argument.
        lookup: The planner only looks such objects up, many clusters do not have the kind, and no
            service waits until it is served.
        status: For `neutral` "podgroup": how a verdict is written; None: it is not.
        claims_by_owner: Likewise: its objects claim the pods of their controller
            (`PodGroup.by_owner`), so that no pod names them.
        shared: Likewise: other schedulers have such groups, too (`PodGroup.shared`, which `read`
            sets).
        of_groups: Likewise: its objects are groups of groups (`PodGroup.min_groups`), so that no
            pod names them.
    """

    resource: Resource
    neutral: str
    decoded: type[msgspec.Struct]
    read: Callable[..., ClusterObject | None]
    read_undecodable: Callable[..., ClusterObject | None] = _left_out
    in_context: bool = False
    lookup: bool = False
    status: Status | None = None
    claims_by_owner: bool = False
    shared: bool = False
    of_groups: bool = False

    def neutral_object(self, decoded: object, context: ReadingContext) -> ClusterObject | None:
        """The neutral object of a decoded one, or of an `Undecodable`."""
        read = self.read_undecodable if isinstance(decoded, Undecodable) else self.read
        return read(decoded, context) if self.in_context else read(decoded)


class Scheduler(msgspec.Struct, frozen=True, kw_only=True):
    """A scheduler name that the users of a dialect put into `spec.schedulerName`.

    Attributes:
        name: The name.
        prefers_own_groups: Among several group objects of one gang, its pods prefer those of its
            own dialects, whatever the precedence of other dialects.
        implies_groups: Whether its bare pods become members of a PodGroup that the controller
            creates for them.
        by_default: Whether every service serves the name unless `--scheduler-name` says otherwise.
            If not, its scheduler is expected to run in many clusters: Tutti takes its pods where
            `--scheduler-name` names it, and in namespaces that opt in.
        grouped_later: Why a pod that declares no gang is not bound: a component gives each pod of
            this scheduler a group after its creation. Only while the dialect's kinds are served.
            "": such a pod is bound by itself.
    """

    name: str
    prefers_own_groups: bool = False
    implies_groups: bool = True
    by_default: bool = True
    grouped_later: str = ""


class PodKeys(msgspec.Struct, frozen=True, kw_only=True):
    """Annotations and labels of a pod that hold one text.

    The first key that a pod has counts: annotations before labels, dialects by precedence, keys of
    one dialect in the order in which they are written.
    """

    annotations: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()

    def read(self, metadata: ObjectMeta) -> str | None:
        """The value of the first key that the pod has; None when it has none."""
        marks = metadata.annotations
        if marks:
            for key in self.annotations:
                if key in marks:
                    return marks[key]
        marks = metadata.labels
        if marks:
            for key in self.labels:
                if key in marks:
                    return marks[key]
        return None


class GroupReference(msgspec.Struct, frozen=True, kw_only=True):
    """One place in which pods declare their gang.

    Attributes:
        place: Whether it is a label, an annotation, or a field of the pod's spec.
        key: Key of the label or annotation, or path of the field ("spec.schedulingGroup").
        declared_by: The API or scheduler that gives it its meaning, as messages name it.
        names_group: Whether the value is the group's name; if not, it is a list, or names a part.
        remedy: What makes Tutti read the gang while no dialect reads this reference.
    """

    place: Literal["label", "annotation", "field"]
    key: str
    declared_by: str
    names_group: bool = True
    remedy: str = ""

    @property
    def title(self) -> str:
        """As users find it in their manifests: "label scheduling.x-k8s.io/pod-group"."""
        return f"{self.place} {self.key}"


class Membership(msgspec.Struct, frozen=True, kw_only=True):
    """The gang that a pod declares, as one dialect reads it.

    Attributes:
        group_name: The group's name in the pod's namespace.
        min_member: The number of pods that must run together, if the pod itself has it; None:
            `Dialect.min_member` or the group object determines it.
        self_declared: Whether the pods declare the gang completely. If not, the gang waits until a
            group object of its name exists.
        scope: As in `Dialect`.
        group: The whole group, if this pod declares it and there is no object: without a UID, and
            with the name, namespace and scope of the membership.
        role: The pod's role, where it follows from the gang; "": from the pod's own keys.
    """

    group_name: str
    min_member: int | None = None
    self_declared: bool = False
    scope: str = GROUP_NAME_SCOPE
    group: PodGroup | None = None
    role: str = ""


class WorkloadLabels(msgspec.Struct, frozen=True, kw_only=True):
    """Labels by which a pod names the workload that creates it again, and its part of it.

    Attributes:
        resource: The workload's resource.
        name: Label that holds the workload's name.
        parts: Labels that together identify the pod's part of the workload.
    """

    resource: Resource
    name: str
    parts: tuple[str, ...]


class DurationAnnotation(msgspec.Struct, frozen=True, kw_only=True):
    """An annotation by which a dialect's users ask for a setting of Tutti.

    Attributes:
        key: The annotation's key.
        setting: The setting.
        read: The seconds in the annotation's value; None: it cannot be read.
    """

    key: str
    setting: str
    read: Callable[[str], int | None]


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """One way in which users declare gangs: `DIALECT` in a file of `shared.dialects`.

    Attributes:
        name: Unique; stored in `PodGroup.dialect` and `Queue.dialect`.
        precedence: Where dialects contradict each other about a pod, a gang or a queue, the
            smallest number counts, then the first name.
        kinds: Resources that it reads.
        checks: Kubernetes kind ("PodGroup", "Pod") -> every reason for which admission refuses this
            object. Only what the object itself shows: whether its queue exists is the webhook's
            business.
        schedulers: Scheduler names of its users.
        references: Where pods declare their gang. A dialect that has kinds reads them only while
            the API server serves one of them.
        membership: The gang of a pod that has one of the `references`; None: it declares none. By
            default the value of the first reference that names a group.
        self_declared: `Membership.self_declared` of the default membership.
        kube_scheduler_ignores: Whether kube-scheduler, with any of its plugins, binds pods with
            such a declaration one by one: users are warned of pods that name `default-scheduler`.
        scope: The scope in which its gangs' names are unique in a namespace. Dialects of one scope
            declare the same gang where they use the same name, and dialects of two scopes never
            do. A dialect with a scope of its own uses the title of its group's resource, or its
            name, and sets it in each `Membership` and `PodGroup` that it makes.
        min_member: Keys of the number of pods of its gang that must run together.
        role: A pod's role in its gang.
        derive_role: A pod's role from its labels where no `role` key holds it; "": unknown.
        index: A pod's rank in its role.
        queue: Queue of a pod without a group object.
        durations: Annotations with durations that have a ceiling.
        workload: How pods name the workload that creates them again; None: they do not.
        ignored: Fields of the objects of `kinds`, and marks of pods, that the dialect's API has and
            that have no effect here by design.
        device_parts: Keys of annotations by which pods request a part of a device, which Tutti does
            not allocate. A pod with one is not bound, and waits with the reason UnsupportedDevice.
    """

    name: str
    precedence: int = PRECEDENCE_DEFAULT
    kinds: tuple[Kind, ...] = ()
    checks: Mapping[str, Callable[[JsonObject], list[FieldError]]] = {}
    schedulers: tuple[Scheduler, ...] = ()
    references: tuple[GroupReference, ...] = ()
    membership: Callable[[ObjectMeta], Membership | None] | None = None
    self_declared: bool = False
    kube_scheduler_ignores: bool = False
    scope: str = GROUP_NAME_SCOPE
    min_member: PodKeys = PodKeys()
    role: PodKeys = PodKeys()
    derive_role: Callable[[Mapping[str, str]], str] | None = None
    index: PodKeys = PodKeys()
    queue: PodKeys = PodKeys()
    durations: tuple[DurationAnnotation, ...] = ()
    workload: WorkloadLabels | None = None
    ignored: tuple[IgnoredField, ...] = ()
    device_parts: tuple[str, ...] = ()

    def status(self, verdict: Verdict) -> StatusPatch | None:
        """What to write on the group object of a verdict; None: there is nothing to write to."""
        for kind in self.kinds:
            if kind.status is not None:
                return kind.status.patch(kind.resource, verdict)
        return None

    def validate(self, kind: str, candidate: JsonObject) -> list[FieldError]:
        """The errors of `checks` in an object of a Kubernetes kind."""
        check = self.checks.get(kind)
        return [] if check is None else check(candidate)


class ClusterIdentity(TypedDict):
    """The first fields of a neutral object without a namespace."""

    uid: str
    name: str
    resource_version: int


class Identity(ClusterIdentity):
    """The first fields of a neutral object in a namespace."""

    namespace: str


def cluster_identity(metadata: ObjectMeta) -> ClusterIdentity:
    return {"uid": metadata.uid, "name": metadata.name, "resource_version": metadata.version}


def identity(metadata: ObjectMeta) -> Identity:
    return {**cluster_identity(metadata), "namespace": metadata.namespace}
