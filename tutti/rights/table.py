"""The rights of every account: the verbs that its code uses, each with the reason.

Pure data. The kinds of the dialects come from `shared.dialects.rights`; everything else is here.
Nothing is granted by `*`, nor by a verb that escalates (`bind`, `escalate`, `impersonate`), and
only the binder may create `pods/binding`.

An account is one ServiceAccount. The controllers have two: the one that writes statuses need not
create pods, and the second is not installed where Volcano's controllers stay.
"""

from typing import Final

import msgspec

from shared.bus.permissions import users
from shared.contracts.visibility import GROUP
from shared.contracts.visibility_resources import API_SERVICE, RESOURCES
from shared.dialects.owner_kinds import LIMITED_KINDS, OWNER_KINDS
from shared.dialects.rights import rights
from shared.dialects.workload_sizes import WORKLOADS
from shared.kinds.catalogue import CATALOGUE
from shared.kube.leases import PLANNER_LEASE
from shared.kube.resources import (
    ACCESS_REVIEWS,
    ADMISSION_POLICIES,
    ADMISSION_POLICY_BINDINGS,
    API_SERVICES,
    CLUSTER_ROLES,
    COMMANDS,
    CONFIGMAPS,
    CORE_EVENTS,
    CRONJOBS_VOLCANO,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEVICE_CLASSES,
    HYPERNODES,
    JOBFLOWS,
    JOBS_BATCH,
    JOBS_VOLCANO,
    JOBTEMPLATES,
    LEASES,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    NETWORK_POLICIES,
    NODES,
    POD_TEMPLATES,
    PODGROUPS_VOLCANO,
    PODS,
    PRIORITY_CLASSES,
    PROVISIONING_REQUESTS,
    QUEUES_VOLCANO,
    RESOURCE_CLAIMS,
    SECRETS,
    SERVICES,
    TOKEN_REVIEWS,
    VALIDATING_WEBHOOKS,
    VOLUME_CLAIMS,
    VOLUMES,
    Resource,
)
from tutti.provision import names

#: Placeholder for the release's name in names of objects; the installation replaces it.
RELEASE: Final = "RELEASE"
#: The Secrets of each NATS user, the server and the CA: `RELEASE-nats-USER`.
NATS_SECRETS: Final = tuple(f"{RELEASE}-nats-{name}" for name in names(users()))
#: Name of both webhook configurations: `--configuration-name`.
_CONFIGURATION: Final = (f"{RELEASE}-admission",)
#: Name of the policy that reviews Commands on queues: `--queue-command-policy`.
_COMMAND_POLICY: Final = (f"{RELEASE}-queue-commands",)
_VOLCANO_LEASE: Final = ("vc-controller-manager",)
#: Placeholder for the scheduler names of a release; schedulers' Leases are named after them.
SCHEDULER_NAMES: Final = "SCHEDULER_NAMES"


class Right(msgspec.Struct, frozen=True, kw_only=True):
    """Verbs on one resource (as in a rule of RBAC: "pods" or "pods/binding"), with their purpose;
    on all objects, or those with `names`; `namespaced`: only in the release's own namespace.
    """

    group: str
    resource: str
    verbs: tuple[str, ...]
    why: str
    names: tuple[str, ...] = ()
    namespaced: bool = False


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """One ServiceAccount. Without `token` it has no identity at the API server."""

    name: str
    rights: tuple[Right, ...] = ()
    token: bool = True


def _may(
    verbs: str,
    resource: Resource,
    why: str,
    *,
    at: str = "",
    names: tuple[str, ...] = (),
    namespaced: bool = False,
) -> Right:
    """`verbs`, separated by blanks, on the resource or its subresource `at`."""
    return Right(
        group=resource.group,
        resource=f"{resource.plural}/{at}" if at else resource.plural,
        verbs=tuple(verbs.split()),
        why=why,
        names=names,
        namespaced=namespaced,
    )


def _of_dialects(service: str, why: str) -> tuple[Right, ...]:
    return tuple(
        Right(group=need.group, resource=need.resource, verbs=need.verbs, why=why)
        for need in rights()
        if need.service == service
    )


_BINDER: Final = (
    _may("create", PODS, "bind pods to nodes", at="binding"),
    _may("create", PODS, "evict victims of preemption", at="eviction"),
    _may("get delete", PODS, "read back what a lost answer left open; release pods of a gang"),
    _may(
        "patch",
        PODS,
        "set the reason of a release (DisruptionTarget), name the claim of extended resources",
        at="status",
    ),
    _may("get patch", VOLUMES, "claim a chosen volume"),
    _may("get patch", VOLUME_CLAIMS, "name the node that a volume is made for"),
    _may("get patch", RESOURCE_CLAIMS, "the finalizer of an allocation"),
    _may("create", RESOURCE_CLAIMS, "the claim for extended resources of a pod"),
    _may("get", DEVICE_CLASSES, "copy the configuration of a class into an allocation"),
    _may("patch", RESOURCE_CLAIMS, "allocate devices, reserve them for pods", at="status"),
    _may("patch update", RESOURCE_CLAIMS, "the same, from Kubernetes 1.36 on", at="binding"),
)

_WEBHOOK: Final = (
    _may("list watch create", VALIDATING_WEBHOOKS, "register, and see when it is removed"),
    _may("get update delete", VALIDATING_WEBHOOKS, "its own configuration", names=_CONFIGURATION),
    _may(
        "list watch create delete",
        MUTATING_WEBHOOKS,
        "the same; and the probes that prove that reviews arrive, whose names are random",
    ),
    _may("get update", MUTATING_WEBHOOKS, "its own configuration", names=_CONFIGURATION),
    _may("create", CONFIGMAPS, "the probe's object, dry-run only", namespaced=True),
    _may(
        "get",
        CLUSTER_ROLES,
        "the owner of its configurations: they are deleted when it is uninstalled",
        names=(f"{RELEASE}-admission-webhook",),
    ),
    *_of_dialects("admission-webhook", "whether the group exists that a user's pod names"),
)

_API: Final = (
    _may("create", ACCESS_REVIEWS, "what the user of a request may see"),
    _may("create", TOKEN_REVIEWS, "which user sends a direct request"),
    _may(
        "get",
        CONFIGMAPS,
        "the CA of the API server's front proxy",
        names=("extension-apiserver-authentication",),
    ),
    _may("create", API_SERVICES, "register as the server of its API group"),
    _may("get update delete", API_SERVICES, "its own registration", names=(API_SERVICE,)),
    _may(
        "get",
        CLUSTER_ROLES,
        "the owner of its registration: it is deleted when it is uninstalled",
        names=(f"{RELEASE}-api",),
    ),
)

_EVENTS: Final = _may("create get patch", CORE_EVENTS, "create and count Events")

#: Rights of each controller, by its name in `--controllers`.
CONTROLLERS: Final[dict[str, tuple[Right, ...]]] = {
    "status": (
        *_of_dialects("controller", "write phases, conditions and verdicts on groups"),
        _may("patch", PODS, "set the pending reason on waiting pods", at="status"),
        _may("get", PODS, "copy a gang's pods into the templates of its ProvisioningRequest"),
        _may("get create delete", PROVISIONING_REQUESTS, "request capacity for whole gangs"),
        _may("create delete", POD_TEMPLATES, "the pods of such a request"),
        _may(
            "list",
            LEASES,
            "whether another scheduler of these names is active",
            names=(SCHEDULER_NAMES,),
        ),
        _may(
            "get patch",
            LEASES,
            "show users that a planner is active",
            names=(PLANNER_LEASE,),
            namespaced=True,
        ),
        _EVENTS,
    ),
    "podgroup": (
        _may("get patch", PODS, "write its group's name on a bare pod"),
        *(
            _may("get", resource, "find the owner of a bare pod")
            for resource in WORKLOADS.values()
            if resource != JOBS_BATCH
        ),
        *(
            _may("get", kind.resource, "whether an object above a bare pod asks for one gang")
            for kind in OWNER_KINDS
            if kind.resource != PODS
        ),
        _may("get", QUEUES_VOLCANO, "whether a queue asks for gangs of all pods of an object"),
        _may("get", NAMESPACES, "whether a namespace does"),
        _may("create", PODGROUPS_VOLCANO, "make groups for bare pods"),
    ),
    "workload": (
        *(
            _may("list watch", resource, "follow how many pods a workload wants, and which")
            for resource in WORKLOADS.values()
            if resource != JOBS_BATCH
        ),
        *(
            _may("list watch", kind.resource, "follow how many pods a workload wants, and which")
            for kind in OWNER_KINDS
            if kind.parts is not None or kind.resource == JOBS_BATCH
        ),
        *(
            _may("get", kind.resource, "what an object above a workload says of the group")
            for kind in (*OWNER_KINDS, *LIMITED_KINDS)
            if kind.resource != PODS
        ),
        _may("get", NAMESPACES, "its queue, for a group whose pods name none any more"),
        _may("list", PODS, "whether pods name a group that is to go, or another one"),
        _may("list watch create patch delete", PODGROUPS_VOLCANO, "keep groups of workloads"),
    ),
    "queue": (
        _may("list watch create patch", QUEUES_VOLCANO, "open and close queues, make the first"),
        _may("patch", QUEUES_VOLCANO, "state and what is held", at="status"),
        _may("list watch delete", COMMANDS, "carry out orders, once"),
        *(
            right
            for resource in (ADMISSION_POLICIES, ADMISSION_POLICY_BINDINGS)
            for right in (
                _may("create", resource, "have Commands on queues reviewed for their creators"),
                _may("get delete", resource, "the same, its own", names=_COMMAND_POLICY),
            )
        ),
        _may(
            "get",
            CLUSTER_ROLES,
            "the owner of its policy: it is deleted when it is uninstalled",
            names=(f"{RELEASE}-controller-jobs",),
        ),
        _may("list watch", PODGROUPS_VOLCANO, "whether a closing queue is empty"),
        _EVENTS,
    ),
    "job": (
        _may("get list watch patch", JOBS_VOLCANO, "run Jobs; note the names of their claims"),
        _may("update", JOBS_VOLCANO, "phases and counts", at="status"),
        _may("get list watch create patch delete", PODS, "pods of Jobs"),
        _may("list watch create patch delete", PODGROUPS_VOLCANO, "groups of Jobs"),
        _may("list watch delete", COMMANDS, "carry out orders, once"),
        _may("list watch", PRIORITY_CLASSES, "priorities of Jobs"),
        _may("list watch", QUEUES_VOLCANO, "whether a Job's queue is open"),
        _may("get create patch delete", CONFIGMAPS, "host lists (plugin svc)"),
        _may("get create delete", SECRETS, "keys (plugin ssh)"),
        _may("get create delete", SERVICES, "names of pods (plugins svc, ray)"),
        _may("get create delete", NETWORK_POLICIES, "network policies of pods (plugin svc)"),
        _may("get create", VOLUME_CLAIMS, "volumes of Jobs"),
        _EVENTS,
    ),
    "jobflow": (
        _may("list watch", JOBFLOWS, "run JobFlows"),
        _may("update", JOBFLOWS, "how far a flow is", at="status"),
        _may("list watch", JOBTEMPLATES, "what its Jobs are made of"),
        _may("update", JOBTEMPLATES, "which Jobs were made of it", at="status"),
        _may("list watch create delete", JOBS_VOLCANO, "the Jobs of flows"),
        _EVENTS,
    ),
    "cronjob": (
        _may("get list watch", CRONJOBS_VOLCANO, "start Jobs when it is time"),
        _may("update", CRONJOBS_VOLCANO, "what was started", at="status"),
        _may("list watch create delete", JOBS_VOLCANO, "the Jobs of CronJobs"),
        _EVENTS,
    ),
    "gc": (_may("list watch delete", JOBS_VOLCANO, "delete Jobs whose time is over"),),
    "hypernode": (
        _may("list watch create patch delete", HYPERNODES, "HyperNodes of labelled nodes"),
        _may("patch", HYPERNODES, "how many nodes are in each", at="status"),
        _may("list watch", NODES, "labels of nodes"),
        _may(
            "list watch",
            CONFIGMAPS,
            "which labels make HyperNodes",
            names=(f"{RELEASE}-controller",),
            namespaced=True,
        ),
    ),
}

#: Rights of all reconciling controllers: replicas divide keys by Leases.
SHARING: Final = (
    _may("list", LEASES, "whether Volcano's controllers are active", names=_VOLCANO_LEASE),
    _may(
        "list create patch delete",
        LEASES,
        "replicas divide their work, each by a Lease of its own",
        namespaced=True,
    ),
)

_PROVISION: Final = (
    _may("create", SECRETS, "make the Secrets that are missing", namespaced=True),
    _may(
        "get patch",
        SECRETS,
        "read them, and renew certificates before they end",
        names=NATS_SECRETS,
        namespaced=True,
    ),
)

_CRDS: Final = (
    _may("create", CUSTOM_RESOURCE_DEFINITIONS, "create our kinds"),
    _may(
        "get patch",
        CUSTOM_RESOURCE_DEFINITIONS,
        "bring them up to date",
        names=tuple(description.resource.title for description in CATALOGUE),
    ),
)

ACCOUNTS: Final = (
    Account(name="watcher", rights=_of_dialects("watcher", "the state of the cluster")),
    Account(name="gang-planner", token=False),
    Account(name="binder", rights=_BINDER),
    Account(name="admission-webhook", rights=_WEBHOOK),
    Account(name="api", rights=_API),
    Account(name="controller-status", rights=CONTROLLERS["status"]),
    Account(
        name="controller-jobs",
        rights=(
            *(right for name in CONTROLLERS if name != "status" for right in CONTROLLERS[name]),
            *SHARING,
        ),
    ),
    Account(name="provision", rights=_PROVISION),
    Account(name="crds", rights=_CRDS),
)

#: Rights of every user of the cluster (the group system:authenticated).
ALL_USERS: Final = (
    _may(
        "get list", LEASES, "`tutti why` shows whether a planner is active", names=(PLANNER_LEASE,)
    ),
)

#: Further rights of every user where an API service runs.
API_USERS: Final = tuple(
    Right(
        group=GROUP,
        resource=resource.plural,
        verbs=resource.verbs,
        why="ask the API service, which shows what the user may see",
    )
    for resource in RESOURCES
)
