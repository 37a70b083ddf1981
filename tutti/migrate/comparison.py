"""Compares a cluster with what Tutti supports: its pods and gangs, the installation of another
scheduler, and the stored objects. Pure: from the facts to findings, one sentence each, and the
report about them, blocking ones first.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from shared.contracts.annotations import GROUP_NAME
from shared.contracts.codec import decode_shape
from shared.dialects.discovery import dialects
from shared.dialects.pod_vocabulary import pod_vocabulary
from shared.kube.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    JOBS_VOLCANO,
    MUTATING_WEBHOOKS,
    PODS,
    VALIDATING_WEBHOOKS,
)
from shared.model.gang_keys import GangKey, key_of, key_of_group
from shared.model.objects import DEVICE_PREFIX, GANG_PREFIX, Pod, PodGroup
from tutti.api.objects import Object, text
from tutti.manifests.crds import default_names, manifests
from tutti.migrate.cluster_facts import GROUPS, OTHER_GROUPS, QUEUES, ClusterFacts

Level = Literal["blocks", "step", "changes", "tells"]
"""blocks: does not work with Tutti. step: to be done when switching. changes: works differently.
`tells`: for information.
"""

#: The heads of the report and their styles, worst first.
_HEADS: Final[dict[Level, tuple[str, str]]] = {
    "blocks": ("does not work with Tutti as it is", "red"),
    "step": ("to be done when switching", "yellow"),
    "changes": ("works differently than now", "bold"),
    "tells": ("for information", "dim"),
}
_LEVELS: Final = tuple(_HEADS)
#: The order of the report within one level.
_TOPICS: Final = (
    "devices",
    "dialect",
    "configuration",
    "crd",
    "rival",
    "webhook",
    "scheduler name",
    "gang",
    "queue",
    "stored object",
    "annotation",
    "rights",
)


class Finding(msgspec.Struct, frozen=True):
    """One finding; `what` is its subject, "KIND NAMESPACE/NAME" or a word."""

    level: Level
    topic: str
    what: str
    message: str


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """All findings, in the order of the report."""

    server: str
    scheduler_names: tuple[str, ...]
    #: The number of objects that were checked.
    pods: int
    gangs: int
    jobs: int
    queues: int
    findings: tuple[Finding, ...]

    @property
    def blocked(self) -> bool:
        return any(finding.level == "blocks" for finding in self.findings)


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Worst first."""

    def place(finding: Finding) -> tuple[int, int, str, str]:
        level, topic = _LEVELS.index(finding.level), _TOPICS.index(finding.topic)
        return level, topic, finding.what, finding.message

    return tuple(sorted(findings, key=place))


def show(check: Check, console: Console) -> None:
    for level, (head, style) in _HEADS.items():
        findings = [finding for finding in check.findings if finding.level == level]
        if not findings:
            continue
        console.print(Text(f"{head} ({len(findings)})", style=style))
        table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
        table.add_column("TOPIC", no_wrap=True)
        table.add_column("WHAT", overflow="fold")
        table.add_column("MESSAGE", overflow="fold", ratio=1)
        for finding in findings:
            table.add_row(f"  {finding.topic}", finding.what, Text(finding.message))
        console.print(table)
    console.print(Text(closing(check)))


def closing(check: Check) -> str:
    """The last line: the checked objects, and whether a switch is possible."""
    blocking = sum(1 for finding in check.findings if finding.level == "blocks")
    checked = (
        f"checked {check.pods} pods, {check.gangs} groups, {check.jobs} Jobs and "
        f"{check.queues} queues on {check.server}"
    )
    if blocking:
        what = "finding blocks" if blocking == 1 else "findings block"
        return f"{checked}: {blocking} {what} a switch"
    return f"{checked}: nothing blocks a switch"


#: Kinds for Volcano's agents, which Tutti does not read.
_NOT_READ: Final = (
    "numatopologies.nodeinfo.volcano.sh",
    "nodeshards.shard.volcano.sh",
    "colocationconfigurations.config.volcano.sh",
)
_VOLCANO_WEBHOOK: Final = "volcano"
#: Served by kube-scheduler in every cluster.
_DEFAULT: Final = "default-scheduler"
_HOLDS: Final = {"name": "scheduler", "suite": "tutti up", "podgroups": "controllers"}
#: Prefixes of annotation keys of gang schedulers.
_PREFIXES: Final = (
    "volcano.sh/",
    "scheduling.volcano.sh/",
    "scheduling.k8s.io/",
)
#: Gang declarations that keep pods of Tutti from being bound, by key.
_UNREAD_REFERENCES: Final = {
    reference.key: reference
    for reference in pod_vocabulary().references.unread
    if reference.place != "field"
}
#: Keys of pods that Tutti ignores, and why.
_WITHOUT_EFFECT: Final = {
    field.steps[-1]: field.because
    for dialect in dialects()
    for field in dialect.ignored
    if field.kind == PODS.kind
}
#: Dialects whose groups the webhook's rules do not check.
_OTHER_DIALECTS: Final = frozenset(
    dialect.name
    for dialect in dialects()
    if any(kind.resource in OTHER_GROUPS for kind in dialect.kinds)
)
#: Kinds whose annotations and labels users set.
_ANNOTATED: Final = (PODS, *GROUPS, JOBS_VOLCANO)
_ERRORS_MAX: Final = 3


def gang_findings(facts: ClusterFacts) -> Iterator[Finding]:
    """Findings about devices, then about gangs, then about queues that groups name."""
    yield from _unsupported(facts)
    yield from _claims(facts)
    yield from _invalid(facts)
    yield from _partial(facts)
    yield from _missing_queues(facts)


def _unsupported(facts: ClusterFacts) -> Iterator[Finding]:
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for what, pod in _all_pods(facts):
        for field in decode_shape(pod.shape).unsupported:
            counts[what, field] += 1
    for (what, field), count in counts.items():
        asks = "a pod asks" if count == 1 else f"{count} pods ask"
        if field.startswith(GANG_PREFIX):
            message = (
                f"{'a pod is' if count == 1 else f'{count} pods are'} not bound: "
                f"{field.removeprefix(GANG_PREFIX)}"
            )
            yield Finding("blocks", "gang", what, message)
        elif field.startswith(DEVICE_PREFIX):
            name = field.removeprefix(DEVICE_PREFIX)
            message = (
                f"{asks} for {name}, a part of a device, which Tutti does not place "
                "by count: the gang would wait with UnsupportedDevice; request whole devices, or "
                "leave the gang with its scheduler"
            )
            yield Finding("blocks", "devices", what, message)
        else:
            message = (
                f"{asks} for an unsupported feature: {field}; the gang would wait with Unsupported"
            )
            yield Finding("blocks", "devices", what, message)


def _all_pods(facts: ClusterFacts) -> Iterator[tuple[str, Pod]]:
    for pod in facts.pods:
        if pod.ours and not pod.node:
            yield f"gang {_gang_of(pod)}", pod
    for name, pod in facts.templates:
        yield f"Job {name}", pod


def _claims(facts: ClusterFacts) -> Iterator[Finding]:
    by_name = {(claim.namespace, claim.name): claim for claim in facts.claims}
    for pod in facts.pods:
        if not pod.ours or pod.node:
            continue
        for name in decode_shape(pod.shape).device_claims:
            claim = by_name.get((pod.namespace, name)) if isinstance(name, str) else None
            if claim is not None and claim.unsupported and not claim.is_allocated:
                message = (
                    f"pod {pod.name} needs it, and Tutti does not allocate what it requests: "
                    f"{', '.join(claim.unsupported)}"
                )
                yield Finding(
                    "blocks", "devices", f"ResourceClaim {claim.namespace}/{claim.name}", message
                )


def _invalid(facts: ClusterFacts) -> Iterator[Finding]:
    """Groups that are never planned. Those of the webhook's kinds are stored objects below."""
    for group in facts.groups:
        if group.errors and group.dialect in _OTHER_DIALECTS:
            errors = "; ".join(group.errors[:_ERRORS_MAX])
            message = f"Tutti does not place the gang: {errors}"
            yield Finding("blocks", "gang", f"gang {group.namespace}/{group.name}", message)


def _missing_queues(facts: ClusterFacts) -> Iterator[Finding]:
    """Queues of other schedulers that groups name."""
    there = {text(queue, "metadata.name") for resource in QUEUES for queue in facts.of(resource)}
    named = Counter(
        group.queue for group in facts.groups if group.dialect in _OTHER_DIALECTS and group.queue
    )
    for name, count in sorted(named.items()):
        if name not in there:
            groups = "1 group names" if count == 1 else f"{count} groups name"
            message = (
                f"{groups} it, and Tutti has no queue of this name: their gangs would "
                "wait; `tutti migrate queues` makes Tutti's queues of KAI's"
            )
            yield Finding("step", "queue", f"queue {name}", message)


def _partial(facts: ClusterFacts) -> Iterator[Finding]:
    members: dict[GangKey | None, list[Pod]] = defaultdict(list)
    for pod in facts.pods:
        if pod.ours and pod.group_name and not pod.deleting:
            members[key_of(pod)].append(pod)
    for group in facts.groups:
        pods = members.get(key_of_group(group), [])
        bound = [pod for pod in pods if pod.node]
        needs = max(group.min_member, 1)
        if not bound or len(bound) >= needs:
            continue
        what = f"gang {group.namespace}/{group.name}"
        if any(pod.phase == "Running" for pod in bound):
            rest = (
                "some of its pods run, so Tutti treats it as started and below its quorum: the "
                "missing members are placed before other gangs, and nothing is released unless its "
                "group or its queue has the annotation tutti.dev/degraded-grace-seconds"
            )
        else:
            rest = _completion(group, pods, bound)
        message = f"bound in part, {len(bound)} of the {needs} members that it needs: {rest}"
        yield Finding("changes", "gang", what, message)


def _completion(group: PodGroup, pods: list[Pod], bound: list[Pod]) -> str:
    needs = max(group.min_member, 1)
    if len(pods) < needs:
        return f"only {len(pods)} of its pods exist; Tutti waits for the rest"
    alone = sum(1 for pod in bound if pod.owner is None)
    if alone:
        return (
            f"Tutti places the missing members; {alone} bound pods have no controller, so they "
            "stay bound if capacity is short (condition PartlyBound)"
        )
    return (
        "Tutti places the missing members when capacity is free, and releases no pod of the gang "
        "before it has decided about it"
    )


def _gang_of(pod: Pod) -> str:
    owner = pod.owner.name if pod.owner is not None else pod.name
    return f"{pod.namespace}/{pod.group_name or owner}"


def installation_findings(facts: ClusterFacts) -> Iterator[Finding]:
    yield from _policies(facts)
    yield from _crds(facts)
    yield from _webhooks(facts)
    yield from _schedulers(facts)
    for what in facts.unreadable:
        yield Finding("tells", "rights", "not checked", f"{what}: unknown")


def _policies(facts: ClusterFacts) -> Iterator[Finding]:
    for policy in facts.policies:
        if policy.error:
            yield Finding(
                "blocks", "configuration", policy.where, f"Tutti refuses it: {policy.error}"
            )
            continue
        yield Finding(
            "step", "configuration", policy.where, "pass its text to Tutti with --scheduler-conf"
        )
        for warning in policy.warnings:
            yield Finding("changes", "configuration", policy.where, f"without effect: {warning}")
    for where in facts.admission_files:
        message = "pass its resource groups to Tutti's webhook with --admission-conf"
        yield Finding("step", "configuration", where, message)


def _crds(facts: ClusterFacts) -> Iterator[Finding]:
    there = {text(crd, "metadata.name"): crd for crd in facts.of(CUSTOM_RESOURCE_DEFINITIONS)}
    missing = fine = 0
    default = default_names()
    for manifest in manifests():
        name = manifest["metadata"]["name"]
        crd = there.get(name)
        if crd is None:
            missing += name in default
            continue
        problems = list(_crd(name, manifest, crd))
        yield from problems
        fine += not problems
    if fine:
        message = "serve the version that Tutti reads; it does not change CRDs of other products"
        yield Finding("tells", "crd", f"{fine} CRDs", message)
    if missing:
        yield Finding(
            "step", "crd", f"{missing} CRDs", "are missing: `tutti up --install-crds` creates them"
        )
    for name in _NOT_READ:
        if name in there:
            yield Finding("tells", "crd", name, "is not changed, and not used")


def _crd(name: str, manifest: dict[str, Any], crd: Object) -> Iterator[Finding]:
    wanted = manifest["spec"]["versions"][0]["name"]
    versions = {version.get("name"): version for version in crd.get("spec", {}).get("versions", [])}
    stored = crd.get("status", {}).get("storedVersions", [])
    served = versions.get(wanted, {}).get("served", False)
    scope = crd.get("spec", {}).get("scope", "")
    if not served or scope != manifest["spec"]["scope"]:
        message = (
            f"serves {', '.join(sorted(map(str, versions)))} ({scope}); Tutti needs "
            f"{wanted} ({manifest['spec']['scope']})"
        )
        yield Finding("blocks", "crd", name, message)
        return
    others = sorted(set(map(str, stored)) - {wanted})
    if others:
        message = f"serves {wanted}; some objects may still be stored as {', '.join(others)}"
        yield Finding("tells", "crd", name, message)


def _webhooks(facts: ClusterFacts) -> Iterator[Finding]:
    for resource in (VALIDATING_WEBHOOKS, MUTATING_WEBHOOKS):
        for configuration in facts.of(resource):
            name = text(configuration, "metadata.name")
            hooks = configuration.get("webhooks") or []
            theirs = [hook for hook in hooks if _VOLCANO_WEBHOOK in str(hook.get("name", ""))]
            if not theirs:
                continue
            closed = any(hook.get("failurePolicy", "Fail") == "Fail" for hook in theirs)
            effect = (
                "refuses its requests once its process has stopped"
                if closed
                else "continues to default and refuse objects beside Tutti's"
            )
            message = f"delete it when the other scheduler stops: it {effect}"
            yield Finding("step", "webhook", f"{resource.kind} {name}", message)


def _schedulers(facts: ClusterFacts) -> Iterator[Finding]:
    """Findings about names that pods use or other schedulers serve, and about other schedulers."""
    named = [pod for pod in facts.pods if pod.scheduler_name not in {"", _DEFAULT}]
    pods = Counter(pod.scheduler_name for pod in named)
    waiting = Counter(pod.scheduler_name for pod in named if not pod.node)
    served: dict[str, list[str]] = defaultdict(list)
    for other in facts.others:
        if other.holding == "name":
            served[other.name].append(other.description)
    # Another `tutti up` serves names that are not published: those of this check, as a rule.
    suites = [other.description for other in facts.others if other.holding == "suite"]
    for name in sorted({*pods, *served}):
        likely = suites if name in facts.scheduler_names else []
        owners = "; ".join(served[name] or likely) or "no known scheduler"
        effect = (
            "Tutti would serve it"
            if name in facts.scheduler_names
            else "Tutti would not serve it (--scheduler-name adds it)"
        )
        message = f"{pods[name]} pods, {waiting[name]} of them wait; served by {owners}; {effect}"
        yield Finding("tells", "scheduler name", name, message)
    for other in facts.others:
        message = (
            f"{other.description} is active: stop it first; Tutti refuses to start beside it "
            "without --take-over"
        )
        yield Finding("step", "rival", _HOLDS[other.holding], message)


def object_findings(facts: ClusterFacts) -> Iterator[Finding]:
    for refused in facts.refused:
        errors = "; ".join(refused.errors[:_ERRORS_MAX])
        more = len(refused.errors) - _ERRORS_MAX
        message = (
            "continues unchanged, and would be refused if it were created again: "
            f"{errors}{f' (and {more} more)' if more > 0 else ''}"
        )
        yield Finding("changes", "stored object", f"{refused.kind} {refused.name}", message)
    yield from _keys(facts)


def _keys(facts: ClusterFacts) -> Iterator[Finding]:
    counts: Counter[str] = Counter()
    for resource in _ANNOTATED:
        for obj in facts.of(resource):
            metadata = obj.get("metadata") or {}
            keys = {*(metadata.get("annotations") or {}), *(metadata.get("labels") or {})}
            counts.update(
                key for key in keys if key.startswith(_PREFIXES) or key in _UNREAD_REFERENCES
            )
    for key, count in sorted(counts.items()):
        objects = "1 object" if count == 1 else f"{count} objects"
        why = _WITHOUT_EFFECT.get(key)
        reference = _UNREAD_REFERENCES.get(key)
        if reference is not None:
            message = (
                f"on {objects}; Tutti does not bind a pod that carries it, unless its "
                f"annotation {GROUP_NAME} gives the same name: it declares a gang of "
                f"{reference.declared_by}, which is not read"
            )
            yield Finding("changes", "annotation", key, message)
        elif why is None:
            yield Finding("tells", "annotation", key, f"on {objects}; Tutti reads it")
        else:
            yield Finding("changes", "annotation", key, f"on {objects}; without effect: {why}")
    for resource in GROUPS:
        if facts.of(resource):
            phases = Counter(text(obj, "status.phase") for obj in facts.of(resource))
            counted = ", ".join(
                f"{phase or 'without a phase'}: {count}" for phase, count in sorted(phases.items())
            )
            message = (
                f"groups: {len(facts.of(resource))} ({counted}); Tutti reads them and writes their "
                "status"
            )
            yield Finding("tells", "dialect", resource.title, message)
