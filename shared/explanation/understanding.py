"""Reads manifests as the services do: gangs, schedulers, and what has no effect. Pure.

Group objects, queues and pods are read by the functions of their dialects, which the watcher calls;
declarations and scheduler names by those of the webhook; the pods and groups of workloads by those
of the controllers. The API server is not asked, so every dialect counts as served.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from shared.admission.judgement import admit, in_namespace, repeated
from shared.admission.parts import as_list, text_at
from shared.admission.rules import ReferenceObjects
from shared.contracts.annotations import GANG, GROUP_NAME, QUEUE_NAME
from shared.contracts.visibility import (
    ExplainedDeclaration,
    ExplainedObject,
    ExplainedScheduling,
    ExplanationStatus,
)
from shared.dialects.discovery import dialects, dialects_watched_for_pods
from shared.dialects.ignored_fields import fields_set
from shared.dialects.owned_gangs import may_be_owned
from shared.dialects.owner_kinds import limiting_kind
from shared.dialects.pod_vocabulary import pod_vocabulary
from shared.dialects.pods import read_pod
from shared.dialects.protocol import (
    DEFAULT_SCHEDULER,
    VOLCANO,
    Dialect,
    JsonObject,
    Kind,
    ReadingContext,
)
from shared.dialects.run_limits import Stated, stated, stated_by_owner
from shared.dialects.scheduler_choice import (
    EXCLUDED_NAMESPACES,
    NAMESPACE_LABELS,
    NAMESPACE_LABELS_FOR_OWNED,
    gives_way,
    name_for_pods,
)
from shared.dialects.workload_sizes import ALL, Workload, gang_size, pods_at_once
from shared.dialects.workloads import REPLICATED, Part, declared, parts_of
from shared.explanation.gangs import Gangs, Members
from shared.explanation.owner_gangs import OwnerGang, is_known_owner, owner_gang
from shared.job_plugins.discovery import registered_plugins, with_needed_plugins
from shared.kinds.job import Job
from shared.kinds.job_shape import completed
from shared.kube import objects as kube
from shared.kube.decoding import KindDecoder, Undecodable, without_nulls
from shared.kube.resources import JOBS_BATCH, JOBS_VOLCANO, NAMESPACES, PODS, Resource
from shared.model.gang_keys import GangKey
from shared.model.objects import PodGroup

#: Kinds whose pods belong to objects of another kind: its API version and kind.
_OWNERS: Final = {"Deployment": ("apps/v1", "ReplicaSet"), "JobSet": ("batch/v1", "Job")}
#: The scheduler name that the training operators set.
_OPERATORS_SCHEDULER: Final = "volcano"
#: Neutral kinds of the objects that dialects read as a whole.
_WHOLLY_READ: Final = frozenset({"podgroup", "queue"})
#: Fewer pods are no gang.
_GANG_MIN: Final = 2
_ALONE: Final = "nothing declares a gang: each pod is placed on its own"

_encode: Final = msgspec.json.Encoder().encode


def understand(
    documents: Iterable[tuple[str, JsonObject]],
    *,
    namespace: str,
    scheduler_names: tuple[str, ...],
    namespaces: Iterable[JsonObject] = (),
    stored: bool = False,
) -> ExplanationStatus:
    """How Tutti understands the objects, and why admission would refuse them.

    Args:
        documents: Each object, without nulls, with its place in the files.
        namespace: For objects without one.
        scheduler_names: Scheduler names that Tutti serves.
        namespaces: Namespaces, beside those among the objects: their labels count.
        stored: They are objects of a cluster: its API server knows their fields.
    """
    objects = list(documents)
    labels = _labels_of_namespaces([*namespaces, *(manifest for _, manifest in objects)])
    reader = _Reader(namespace, scheduler_names, labels, stored=stored)
    read = [(place, reader.read(manifest)) for place, manifest in objects]
    if not stored:
        named = [(place, in_namespace(manifest, namespace)) for place, manifest in objects]
        for (_, subject), twice in zip(read, repeated(named), strict=True):
            subject.missing.extend(twice)
    reports = tuple(subject.report(place, reader.gangs) for place, subject in read)
    gangs = reader.gangs.reports()
    complete = all(gang.scheduled for gang in gangs) and not any(
        explained.missing for explained in reports
    )
    return ExplanationStatus(complete=complete, objects=reports, gangs=gangs)


def _labels_of_namespaces(objects: Iterable[JsonObject]) -> dict[str, JsonObject]:
    """The labels of those of the objects that are namespaces, by their names."""
    return {
        str(_member(manifest, "metadata").get("name", "")): _member(manifest, "metadata", "labels")
        for manifest in objects
        if manifest.get("kind") == NAMESPACES.kind
    }


class _Object:
    """One object of the files, and what is reported of it."""

    def __init__(self, manifest: JsonObject, namespace: str) -> None:
        self.json = manifest
        self.kind = str(manifest.get("kind", ""))
        self.api_group = str(manifest.get("apiVersion", "")).rpartition("/")[0]
        self.metadata = _member(manifest, "metadata")
        self.spec = _member(manifest, "spec")
        self.namespace = str(self.metadata.get("namespace") or namespace)
        self.name = str(self.metadata.get("name") or self.metadata.get("generateName") or "unnamed")
        #: The kinds of dialects that it is read as.
        self.kinds = [
            (dialect, kind)
            for dialect in dialects()
            for kind in dialect.kinds
            if self.is_of(kind.resource)
        ]
        of_cluster = any(not kind.resource.namespaced for _, kind in self.kinds)
        place = self.name if of_cluster else f"{self.namespace}/{self.name}"
        self.title = f"{self.kind} {place}"
        self.gangs = list[GangKey]()
        self.facts: list[str] = []
        self.declared: list[ExplainedDeclaration] = []
        self.scheduling: list[ExplainedScheduling] = []
        self.missing: list[str] = []
        self.ignored: list[str] = []

    def is_of(self, resource: Resource) -> bool:
        """Whether it is an object of this kind, in any version."""
        return (self.api_group, self.kind) == (resource.group, resource.kind)

    def report(self, place: str, gangs: Gangs) -> ExplainedObject:
        """The report on it, each sentence once, after all objects are read."""
        return ExplainedObject(
            place=place,
            title=self.title,
            gangs=tuple(dict.fromkeys(map(gangs.title, self.gangs))),
            facts=tuple(dict.fromkeys(self.facts)),
            declared=tuple(dict.fromkeys(self.declared)),
            scheduling=tuple(dict.fromkeys(self.scheduling)),
            missing=tuple(dict.fromkeys(self.missing)),
            ignored=tuple(dict.fromkeys(self.ignored)),
        )


class _Reader:
    """Reads objects one after the other, and collects their gangs."""

    def __init__(
        self,
        namespace: str,
        scheduler_names: tuple[str, ...],
        labels_of_namespaces: Mapping[str, JsonObject],
        *,
        stored: bool,
    ) -> None:
        self.gangs = Gangs(stored=stored)
        self._stored = stored
        self._known = ReferenceObjects(scheduler_names=scheduler_names)
        self._namespace = namespace
        self._scheduler_names = scheduler_names
        self._labels_of_namespaces = labels_of_namespaces
        self._context = ReadingContext(
            scheduler_names=frozenset(scheduler_names),
            implied_groups=True,
            served=dialects_watched_for_pods(),
        )

    def read(self, manifest: JsonObject) -> _Object:
        """Read one object; what it adds to gangs is kept."""
        subject = _Object(manifest, self._namespace)
        whole = in_namespace(manifest, self._namespace)
        admitted = admit(whole, self._known, with_fields=not self._stored)
        subject.missing += [f"admission refuses it: {error}" for error in admitted.errors]
        subject.ignored += [warning.removeprefix("tutti: ") for warning in admitted.warnings]
        try:
            self._read(subject)
        except ValueError as error:  # msgspec.ValidationError is one
            subject.missing.append(f"cannot be read: {error}")
        return subject

    def _read(self, subject: _Object) -> None:
        if subject.is_of(PODS):
            self._pod(subject)
            return
        for dialect, kind in subject.kinds:
            self._object(subject, dialect, kind)
        if subject.is_of(JOBS_VOLCANO):
            self._volcano_job(subject)
        elif (gang := self._owner_gang(subject)) is not None:
            self._whole_owner(subject, gang)
        elif parts := [*parts_of(subject.kind, subject.api_group, subject.spec)]:
            if any(key.endswith("ReplicaSpecs") for key in subject.spec):
                self._operated(subject, parts)
            else:
                self._workload(subject, parts)
        elif not subject.kinds:
            subject.facts.append("declares no gang, and no pods that this command reads")

    def _owner_gang(self, subject: _Object) -> OwnerGang | None:
        return owner_gang(
            subject.json, subject.namespace, subject.name, asked_by_default=self._is_asked(subject)
        )

    def _is_asked(self, subject: _Object) -> bool:
        """Whether the namespace asks for a gang of the object's pods, and the object allows it."""
        labels = self._labels_of_namespaces.get(subject.namespace, {})
        jobs = as_list(subject.spec.get("replicatedJobs")) if subject.kind == "JobSet" else []
        above_pods = [subject.metadata, *(_member(job, "template", "metadata") for job in jobs)]
        stated = any(GANG in _member(metadata, "annotations") for metadata in above_pods)
        return labels.get(GANG) == ALL and not stated

    def _object(self, subject: _Object, dialect: Dialect, kind: Kind) -> None:
        """An object of a dialect's kind."""
        neutral = self._neutral(subject, kind, subject.json)
        if isinstance(neutral, PodGroup):
            subject.facts.append(f"a group object of the dialect {dialect.name}")
            subject.gangs.append(self.gangs.put_group(neutral))
            self.gangs.put_limits(subject.gangs[-1], _stated_by(subject), subject.title)
        elif kind.neutral != "workload":
            subject.facts.append(f"read as {kind.neutral} (dialect {dialect.name})")
        fields = [field for field in dialect.ignored if field.kind == subject.kind]
        for field in fields_set(subject.json, fields):
            subject.ignored.append(field.sentence)
        if kind.neutral in _WHOLLY_READ and not kind.claims_by_owner:
            known = {*_fields_of(kind.decoded, "spec"), *(field.steps[1] for field in fields)}
            for key in subject.spec.keys() - known:
                subject.ignored.append(f"spec.{key}: the dialect {dialect.name} does not know it")

    def _neutral(self, subject: _Object, kind: Kind, manifest: JsonObject) -> object:
        """The neutral object that the watcher would read."""
        metadata = {"uid": subject.title, **subject.metadata, "name": subject.name}
        if kind.resource.namespaced:
            metadata["namespace"] = subject.namespace
        decoded: Any = KindDecoder(kind.decoded).object(_encode({**manifest, "metadata": metadata}))
        if isinstance(decoded, Undecodable):
            subject.missing.append(f"cannot be read: {decoded.error}")
        return kind.neutral_object(decoded, self._context)

    def _pod(self, subject: _Object) -> None:
        metadata = {**subject.metadata, "name": subject.name}
        pod = {"metadata": metadata, "spec": subject.json.get("spec")}
        self._pods(subject, pod, 1, "", 1, [])

    def _workload(self, subject: _Object, parts: Sequence[Part]) -> None:
        """A workload whose controller creates pods and no group."""
        if is_known_owner(str(subject.json.get("apiVersion")), subject.kind):
            subject.facts.append(
                f"the annotation {GANG}: {ALL} on it would make one gang of all its pods"
            )
        given = (str(subject.json.get("apiVersion")), subject.kind)
        api_version, owner_kind = _OWNERS.get(subject.kind, given)
        for part in parts:
            metadata = _member(part.template, "metadata")
            notes = _member(metadata, "annotations")
            stem = f"{subject.name}-{part.role}" if part.role else subject.name
            owner = {
                "apiVersion": api_version,
                "kind": owner_kind,
                "name": stem,
                "uid": f"{subject.kind.lower()}-{stem}",
                "controller": True,
            }
            made = {**metadata, "name": stem, "ownerReferences": [owner]}
            role = f" ({part.role})" if part.role else ""
            sizes = _sizes(subject, part)
            size = gang_size(owner_kind, sizes, self._is_asked(subject), notes)
            count = part.replicas
            if subject.kind == "JobSet" and sizes is not None:
                count = pods_at_once(sizes.spec)
                jobs = part.replicas // count if count else 0
                subject.facts.append(
                    f"each of {jobs} Jobs{role} is read by itself, with {count} pods"
                )
            else:
                subject.facts.append(f"its controller creates {count} pods{role}")
            limits = [*_stated_by(subject)] if subject.kind == "JobSet" or sizes is None else []
            limits += stated_by_owner(sizes) if sizes is not None else ()
            pod = {**part.template, "metadata": made}
            self._pods(subject, pod, count, part.role, size, limits)

    def _whole_owner(self, subject: _Object, gang: OwnerGang) -> None:
        """An operator's object that asks for one gang of all its pods."""
        if not gang.wanted:
            subject.facts.append("wants no pods at present")
        each = "it" if gang.gangs == 1 else f"each of its {gang.gangs} replicas; this is the first"
        declared_by = f"{subject.title}: Tutti creates a PodGroup for {each}"
        subject.gangs.append(self.gangs.put_made_group(gang.group, declared_by))
        self.gangs.put_limits(subject.gangs[-1], _stated_by(subject), subject.title)
        for part, pod in gang.pods:
            of_job = stated_by_owner(part.job)
            self.gangs.put_limits(subject.gangs[-1], of_job, f"the Jobs of {subject.title}")
            later = part.expected - part.least
            if later > 0:
                subject.facts.append(
                    f"{later} pods ({part.role}) are created later: capacity is reserved for them"
                )
            scheduler = pod.spec.scheduler_name or DEFAULT_SCHEDULER
            spec = msgspec.structs.replace(pod.spec, scheduler_name=scheduler)
            typed = msgspec.structs.replace(pod, spec=spec)
            dialect, objections = self._declarations(subject, typed)
            read = msgspec.structs.replace(read_pod(typed, self._context), role=part.role)
            # The pods get the name of a group that Tutti makes after they were created.
            is_named = read.group_name != gang.group.name
            scheduling = self._scheduling(
                subject, scheduler, dialect if is_named else None, owned=not is_named
            )
            count = max(part.least, part.expected)
            of_pods = _limits_of(typed)
            self._join(subject, Members(read, count, scheduling, objections, of_pods))

    def _operated(self, subject: _Object, parts: Sequence[Part]) -> None:
        """A job of a training operator, which creates the group and sets the scheduler name."""
        condition = "if the operator runs with --gang-scheduler-name=volcano"
        subject.facts.append(
            f"its operator creates the PodGroup and sets the scheduler name, {condition}"
        )
        if not _member(subject.spec, "runPolicy", "schedulingPolicy"):
            subject.facts.append("without runPolicy.schedulingPolicy all its pods are the minimum")
        group = self._group(subject, f"{subject.title}, {condition}", _stated_by(subject))
        for part in parts:
            self._add(subject, part, _OPERATORS_SCHEDULER, group)

    def _volcano_job(self, subject: _Object) -> None:
        """A Volcano Job, whose controller creates pods and their group."""
        given = msgspec.convert(without_nulls({"spec": subject.spec}), Job, strict=False)
        job = with_needed_plugins(completed(given))
        known = registered_plugins()
        for name in sorted(job.spec.plugins):
            if name in known and name not in given.spec.plugins:
                subject.facts.append(f"gets the plugin {name}, which another of its plugins needs")
        scheduler = job.spec.scheduler_name
        if scheduler not in self._scheduler_names:
            subject.missing.append("Tutti's Job controller leaves Jobs of other schedulers alone")
        made_by = f"{subject.title}, whose controller creates its PodGroup"
        group = self._group(subject, made_by, _stated_by(subject))
        parts = [*parts_of(subject.kind, subject.api_group, subject.spec)]
        for task, part in zip(job.spec.tasks, parts, strict=True):
            if task.depends_on is not None:
                names = ", ".join(task.depends_on.name)
                subject.facts.append(f"{part.role} waits for {names}; until then it is left out")
            own = text_at(part.template, "spec", "schedulerName")
            self._add(subject, part, own or scheduler, group)

    def _group(self, subject: _Object, declared_by: str, limits: Iterable[Stated]) -> PodGroup:
        """The group that the controller of a workload creates, with these run limits.

        Raises:
            ValueError: Its pods cannot be read.
        """
        metadata = {**subject.metadata, "name": subject.name, "namespace": subject.namespace}
        whole = {**subject.json, "metadata": metadata}
        request = declared(whole, uid=subject.title, context=self._context)
        if request is None:
            raise ValueError("it has no pods")
        subject.gangs.append(self.gangs.put_made_group(request.group, declared_by))
        self.gangs.put_limits(subject.gangs[-1], limits, subject.title)
        return request.group

    def _add(self, subject: _Object, part: Part, scheduler: str, group: PodGroup) -> None:
        """Pods whose group and scheduler name their controller sets."""
        metadata = _member(part.template, "metadata")
        notes = {**_member(metadata, "annotations"), GROUP_NAME: group.name}
        made = {**metadata, "name": f"{subject.name}-{part.role}", "annotations": notes}
        self._ignored_of_pod(subject, part.template)
        read = self._typed(subject, {**part.template, "metadata": made}, scheduler)
        dialect, objections = self._declarations(subject, read)
        pod = msgspec.structs.replace(read_pod(read, self._context), role=part.role)
        scheduling = self._scheduling(subject, scheduler, dialect)
        limits = _limits_of(read)
        self._join(subject, Members(pod, part.replicas, scheduling, objections, limits))

    def _pods(
        self,
        subject: _Object,
        pod: JsonObject,
        count: int,
        role: str,
        size: int,
        limits_above: Iterable[Stated],
    ) -> None:
        """Pods as they are written, or as their template is.

        Args:
            subject: Their object.
            pod: One of them.
            count: Their number.
            role: Their role, if no dialect finds one; "": unknown.
            size: The size of the gang that a controller makes of them if they declare none.
            limits_above: The run limits that this gang inherits of the objects above them.
        """
        self._ignored_of_pod(subject, pod)
        read = self._typed(subject, pod, "")
        dialect, objections = self._declarations(subject, read)
        references = pod_vocabulary().references
        declared = references.declarations(read.metadata, read.spec, self._context.served)
        owned = not declared and may_be_owned(read.metadata)
        scheduling = self._scheduling(subject, read.spec.scheduler_name, dialect, owned=owned)
        if owned and scheduling.taken:
            ours = msgspec.structs.replace(
                read.spec, scheduler_name=name_for_pods(self._scheduler_names)
            )
            read = msgspec.structs.replace(read, spec=ours)
        neutral = read_pod(read, self._context)
        if role and not neutral.role:
            neutral = msgspec.structs.replace(neutral, role=role)
        if neutral.group_implied and size >= _GANG_MIN:
            above = (
                ""
                if subject.kind in REPLICATED
                else text_at(subject.metadata, "annotations", QUEUE_NAME)
            )
            group = PodGroup(
                uid=neutral.group_name,
                dialect=VOLCANO,
                namespace=subject.namespace,
                name=neutral.group_name,
                resource_version=0,
                min_member=size,
                queue=neutral.queue or above,
                priority_class=neutral.priority_class,
            )
            by = f"{subject.title}: Tutti creates a PodGroup for it"
            key = self.gangs.put_made_group(group, by)
            self.gangs.put_limits(key, limits_above, subject.title)
        elif neutral.group_implied:
            neutral = msgspec.structs.replace(neutral, group_name="", group_implied=False)
        limits = _limits_of(read)
        self._join(subject, Members(neutral, count, scheduling, objections, limits))

    def _ignored_of_pod(self, subject: _Object, pod: JsonObject) -> None:
        """Report the marks of a pod, or of a template, that no dialect acts upon."""
        for dialect in dialects():
            marks = (mark for mark in dialect.ignored if mark.kind == PODS.kind)
            for mark in fields_set(pod, marks):
                subject.ignored.append(mark.sentence)

    def _join(self, subject: _Object, members: Members) -> None:
        """Add equal pods to their gang, if they have one."""
        subject.scheduling.append(members.scheduling)
        gang = self.gangs.put_members(members)
        if gang is not None:
            subject.gangs.append(gang)
        elif not members.objections:
            subject.facts.append(_ALONE)

    def _typed(self, subject: _Object, pod: JsonObject, scheduler: str) -> kube.Pod:
        """The pod of a manifest, with what the API server or its controller fills in."""
        read = msgspec.convert(without_nulls(pod), kube.Pod, strict=False)
        uid = read.metadata.uid or f"{subject.title}/{read.metadata.name}"
        metadata = msgspec.structs.replace(read.metadata, namespace=subject.namespace, uid=uid)
        name = scheduler or read.spec.scheduler_name or DEFAULT_SCHEDULER
        spec = msgspec.structs.replace(read.spec, scheduler_name=name)
        return msgspec.structs.replace(read, metadata=metadata, spec=spec)

    def _declarations(
        self, subject: _Object, pod: kube.Pod
    ) -> tuple[Dialect | None, tuple[str, ...]]:
        """Report where the pod declares a gang; returns the dialect that finds it, and why the pod
        is not bound as a member.
        """
        references, served = pod_vocabulary().references, self._context.served
        _, objections = references.read(pod.metadata, pod.spec, served)
        winner: Dialect | None = None
        for declaration in references.declarations(pod.metadata, pod.spec, served):
            counts = winner is None and declaration.membership is not None
            if counts:
                winner, sentence = declaration.dialect, "this is its gang"
            elif declaration.dialect is None:
                sentence = f"no dialect reads gangs of {declaration.reference.declared_by}"
            elif winner is not None:
                sentence = f"{winner.name} has precedence"
            else:
                sentence = "names no gang by itself"
            subject.declared.append(
                ExplainedDeclaration(
                    place=declaration.reference.title,
                    value=declaration.value,
                    dialect=declaration.dialect.name if declaration.dialect is not None else "",
                    counts=counts,
                    sentence=sentence,
                )
            )
        for objection in objections:
            subject.missing.append(f"not bound: {objection}")
        return winner, objections

    def _scheduling(
        self, subject: _Object, name: str, dialect: Dialect | None, *, owned: bool = False
    ) -> ExplainedScheduling:
        """Whether Tutti schedules pods with this scheduler name and a gang of this dialect, or that
        declare nothing below an operator's object (`owned`).
        """
        ours = name_for_pods(self._scheduler_names)
        if name in self._scheduler_names:
            return ExplainedScheduling(
                scheduler=name, taken=True, sentence="Tutti serves this name"
            )
        wanted: Mapping[str, str] = {}
        if subject.namespace not in EXCLUDED_NAMESPACES:
            if dialect is not None and gives_way(name, dialect):
                wanted = NAMESPACE_LABELS
            elif owned and name == DEFAULT_SCHEDULER:
                wanted = NAMESPACE_LABELS_FOR_OWNED
        labels = self._labels_of_namespaces.get(subject.namespace, {})
        if wanted and labels.items() >= wanted.items():
            sentence = f"the namespace has opted in: the webhook sets {ours}"
            return ExplainedScheduling(scheduler=name, taken=True, sentence=sentence)
        sentence = f"Tutti does not serve this name: set schedulerName: {ours}"
        if wanted:
            both = " ".join(f"{key}={value}" for key, value in wanted.items())
            sentence += f", or label the namespace {both}"
        return ExplainedScheduling(scheduler=name, taken=False, sentence=sentence)


def _sizes(subject: _Object, part: Part) -> Workload | None:
    """The object whose annotations and sizes count for the pods of a part, as the podgroup
    controller reads it; None for a kind that it does not read.
    """
    if subject.kind in REPLICATED or subject.is_of(JOBS_BATCH):
        whole: JsonObject = {"metadata": subject.metadata, "spec": subject.spec}
    elif subject.kind == "JobSet":
        jobs: list[JsonObject] = subject.spec.get("replicatedJobs") or []
        whole = next((_member(job, "template") for job in jobs if job.get("name") == part.role), {})
    else:
        return None
    return msgspec.convert(without_nulls(whole), Workload, strict=False)


def _stated_by(subject: _Object) -> Iterator[Stated]:
    """The run limits of the object itself, not of its pods.

    Raises:
        ValueError: It cannot be read.
    """
    kind = limiting_kind(str(subject.json.get("apiVersion")), subject.kind)
    decoded = kube.KubeObject if kind is None else kind.decoded
    yield from stated_by_owner(msgspec.convert(without_nulls(subject.json), decoded, strict=False))


def _limits_of(pod: kube.Pod) -> tuple[Stated, ...]:
    return tuple(stated(pod.metadata, pod.spec.active_deadline_seconds))


def _fields_of(decoded: type[msgspec.Struct], name: str) -> set[str]:
    """The names in JSON of the fields of a member, which is a struct itself."""
    (member,) = (field for field in msgspec.structs.fields(decoded) if field.encode_name == name)
    return {field.encode_name for field in msgspec.structs.fields(member.type)}


def _member(parent: JsonObject, *keys: str) -> JsonObject:
    """The object at the end of a path of members; {} where there is none."""
    section: object = parent
    for key in keys:
        section = cast("JsonObject", section).get(key) if isinstance(section, dict) else None
    return cast("JsonObject", section) if isinstance(section, dict) else {}
