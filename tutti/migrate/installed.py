"""Findings about the installation of another scheduler: CRDs, webhook configurations, its
configuration.
"""

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


def findings(facts: ClusterFacts) -> Iterator[Finding]:
    """Findings about the installation."""
    yield from _policies(facts)
    yield from _crds(facts)
    yield from _webhooks(facts)
    for what in facts.unreadable:
        yield Finding(level="tells", topic="rights", what="not checked", message=f"{what}: unknown")


def _policies(facts: ClusterFacts) -> Iterator[Finding]:
    for policy in facts.policies:
        if policy.error:
            yield Finding(
                level="blocks",
                topic="configuration",
                what=policy.where,
                message=f"Tutti refuses it: {policy.error}",
            )
            continue
        yield Finding(
            level="step",
            topic="configuration",
            what=policy.where,
            message="pass its text to Tutti with --scheduler-conf",
        )
        for warning in policy.warnings:
            yield Finding(
                level="changes",
                topic="configuration",
                what=policy.where,
                message=f"without effect: {warning}",
            )
    for where in facts.admission_files:
        yield Finding(
            level="step",
            topic="configuration",
            what=where,
            message="pass its resource groups to Tutti's webhook with --admission-conf",
        )


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
        yield Finding(
            level="tells",
            topic="crd",
            what=f"{fine} CRDs",
            message="serve the version that Tutti reads; it does not change CRDs of other products",
        )
    if missing:
        yield Finding(
            level="step",
            topic="crd",
            what=f"{missing} CRDs",
            message="are missing: `tutti up --install-crds` creates them",
        )
    for name in _NOT_READ:
        if name in there:
            yield Finding(
                level="tells",
                topic="crd",
                what=name,
                message="is not changed, and not used",
            )


def _crd(name: str, manifest: dict[str, Any], found: Object) -> Iterator[Finding]:
    wanted = manifest["spec"]["versions"][0]["name"]
    versions = {one.get("name"): one for one in found.get("spec", {}).get("versions", [])}
    stored = found.get("status", {}).get("storedVersions", [])
    served = versions.get(wanted, {}).get("served", False)
    scope = found.get("spec", {}).get("scope", "")
    if not served or scope != manifest["spec"]["scope"]:
        yield Finding(
            level="blocks",
            topic="crd",
            what=name,
            message=f"serves {', '.join(sorted(map(str, versions)))} ({scope}); Tutti needs "
            f"{wanted} ({manifest['spec']['scope']})",
        )
        return
    others = sorted(set(map(str, stored)) - {wanted})
    if others:
        yield Finding(
            level="tells",
            topic="crd",
            what=name,
            message=f"serves {wanted}; some objects may still be stored as {', '.join(others)}",
        )


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
            yield Finding(
                level="step",
                topic="webhook",
                what=f"{resource.kind} {name}",
                message=f"delete it when the other scheduler stops: it {effect}",
            )
