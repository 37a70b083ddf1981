"""Findings about the installation of another scheduler: CRDs, webhook configurations, its
configuration, and the scheduler names that it serves.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, Final

from shared.kube.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    MUTATING_WEBHOOKS,
    VALIDATING_WEBHOOKS,
)
from tutti.api.objects import Object, text
from tutti.manifests.crds import default_names, manifests
from tutti.migrate.cluster_facts import ClusterFacts
from tutti.migrate.findings import Finding

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


def findings(facts: ClusterFacts) -> Iterator[Finding]:
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
    there = {text(one, "metadata.name"): one for one in facts.of(CUSTOM_RESOURCE_DEFINITIONS)}
    missing = fine = 0
    default = default_names()
    for manifest in manifests():
        name = manifest["metadata"]["name"]
        found = there.get(name)
        if found is None:
            missing += name in default
            continue
        problems = list(_crd(name, manifest, found))
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


def _crd(name: str, manifest: dict[str, Any], found: Object) -> Iterator[Finding]:
    wanted = manifest["spec"]["versions"][0]["name"]
    versions = {one.get("name"): one for one in found.get("spec", {}).get("versions", [])}
    stored = found.get("status", {}).get("storedVersions", [])
    served = versions.get(wanted, {}).get("served", False)
    scope = found.get("spec", {}).get("scope", "")
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
        for one in facts.of(resource):
            name = text(one, "metadata.name")
            hooks = one.get("webhooks") or []
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
    for name in sorted({*pods, *served}):
        owners = "; ".join(served[name]) or "no known scheduler"
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
