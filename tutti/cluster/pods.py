"""The API server's rules of pods: defaults, validation, bindings, and budgets for evictions.

A Binding checks neither the existence nor the capacity of the node; the kubelet does.
"""

from typing import Final

import msgspec

from shared.kube.objects import Pod
from shared.kube.requests import effective_requests
from tutti.api.objects import field
from tutti.cluster.errors import (
    ApiError,
    FieldError,
    conflict,
    forbidden,
    not_permitted,
    not_supported,
    required,
    wrong,
)
from tutti.cluster.objects import Obj, clone, set_condition, without
from tutti.cluster.resources import BUDGETS, PODS, PRIORITY_CLASSES, Resource
from tutti.cluster.selectors import labels_of_object
from tutti.cluster.store import Store

ENDED = ("Succeeded", "Failed")
_RESTART_POLICIES = ["Always", "Never", "OnFailure"]
_REQUIRED_TERMS: Final = (
    "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
)


def _containers(pod: Obj) -> list[tuple[str, Obj]]:
    """Containers and init containers, each with its path."""
    return [
        (f"spec.{field}[{index}]", container)
        for field in ("containers", "initContainers")
        for index, container in enumerate(pod["spec"].get(field) or ())
    ]


def default(pod: Obj) -> None:
    """Set the defaults of the Pod type that Tutti or the kubelets read, in place.

    Raises:
        QuantityError: A value is not a quantity, or is negative.
    """
    spec: Obj = pod.setdefault("spec", {})
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("schedulerName", "default-scheduler")
    for _, container in _containers(pod):
        resources = container.setdefault("resources", {})
        if resources.get("limits"):
            resources["requests"] = resources["limits"] | (resources.get("requests") or {})
    effective_requests(msgspec.convert(pod, Pod).spec)


def admit(pod: Obj, resource: Resource, store: Store) -> None:
    """The admission plugin Priority, for a new pod, in place.

    Raises:
        ApiError: 403 for an unknown priority class or a priority that is not its class's.
    """
    spec: Obj = pod["spec"]
    wanted = spec.get("priorityClassName")
    classes = {row.obj["metadata"]["name"]: row.obj for row in store.rows(PRIORITY_CLASSES)}
    by_default = (each for each in classes.values() if each.get("globalDefault"))
    chosen: Obj = classes.get(wanted, {}) if wanted else next(by_default, {})
    why, priority = "", chosen.get("value", 0)
    if wanted and not chosen:
        why = f"no PriorityClass with name {wanted} was found"
    elif spec.get("priority", priority) != priority:
        why = (
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; "
            f"priority admission controller computed {priority} from the given PriorityClass name"
        )
    if why:
        raise forbidden(resource, pod["metadata"].get("name", ""), why)
    spec["priority"] = priority
    spec["preemptionPolicy"] = chosen.get("preemptionPolicy", "PreemptLowerPriority")
    if chosen:
        spec["priorityClassName"] = chosen["metadata"]["name"]


def first_status(pod: Obj) -> Obj:
    """The status of a new pod; a status by its creator is ignored."""
    status: Obj = {"phase": "Pending"}
    if pod["spec"].get("schedulingGates"):
        message = "Scheduling is blocked due to non-empty scheduling gates"
        why = {"reason": "SchedulingGated", "message": message}
        set_condition(status, "PodScheduled", "False", **why)
    return status


def check(pod: Obj) -> list[FieldError]:
    """Check the rules of a new pod's spec that schedulers and kubelets depend on."""
    spec: Obj = pod["spec"]
    errors = [] if spec.get("containers") else [required("spec.containers")]
    for path, container in _containers(pod):
        errors += [required(f"{path}.{key}") for key in ("name", "image") if not container.get(key)]
    if spec["restartPolicy"] not in _RESTART_POLICIES:
        error = not_supported("spec.restartPolicy", spec["restartPolicy"], _RESTART_POLICIES)
        errors.append(error)
    return errors


def check_update(new: Obj, old: Obj) -> list[FieldError]:
    """Check that immutable fields of a pod are unchanged. A pod with scheduling gates may get
    further node selectors and node affinities, which leave it fewer nodes.
    """

    def fixed(pod: Obj) -> Obj:
        spec = without(pod["spec"], "activeDeadlineSeconds", "schedulingGates", "tolerations")
        lists = {key: spec.get(key) or [] for key in ("containers", "initContainers")}
        return spec | {key: [without(each, "image") for each in lists[key]] for key in lists}

    errors: list[FieldError] = []
    gates = old["spec"].get("schedulingGates") or []
    if gates:
        errors += _check_node_constraints(new, old)
        new, old = _without_node_constraints(new), _without_node_constraints(old)
    if fixed(new) != fixed(old):
        text = (
            "pod updates may not change fields other than `spec.containers[*].image`,"
            "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations`"
        )
        errors.append(not_permitted("spec", text))
    if any(gate not in gates for gate in new["spec"].get("schedulingGates") or ()):
        text = "only deletion is allowed, but found new scheduling gate"
        errors.append(not_permitted("spec.schedulingGates", text))
    return errors


def _check_node_constraints(new: Obj, old: Obj) -> list[FieldError]:
    """What is changed or missing of the node selector, and of the terms of the required node
    affinity: each of these may get further requirements, and a pod without terms any terms.
    """
    errors: list[FieldError] = []
    before, after = (pod["spec"].get("nodeSelector") or {} for pod in (old, new))
    if any(after.get(key) != value for key, value in before.items()):
        text = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        errors.append(wrong("spec.nodeSelector", after, text))
    terms_before, terms_after = _required_terms(old), _required_terms(new)
    if terms_before and len(terms_before) != len(terms_after):
        text = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return [*errors, wrong(_REQUIRED_TERMS, terms_after, text)]
    for index, term in enumerate(terms_before):
        if not _has_only_additions(terms_after[index], term):
            text = "only additions are allowed (no mutations or deletions)"
            errors.append(wrong(f"{_REQUIRED_TERMS}[{index}]", terms_after[index], text))
    return errors


def _required_terms(pod: Obj) -> list[Obj]:
    terms: list[Obj] = field(pod, _REQUIRED_TERMS) or []
    return terms


def _has_only_additions(new: Obj, old: Obj) -> bool:
    """Whether a term has all its old requirements, in their places. A term without requirements
    selects no node, and stays as it is.
    """
    lists = ("matchExpressions", "matchFields")
    before = {key: old.get(key) or [] for key in lists}
    after = {key: new.get(key) or [] for key in lists}
    if not any(before.values()):
        return not any(after.values())
    return all(after[key][: len(before[key])] == before[key] for key in lists)


def _without_node_constraints(pod: Obj) -> Obj:
    """The pod without node selector and node affinity."""
    affinity = without(pod["spec"].get("affinity") or {}, "nodeAffinity")
    spec = without(pod["spec"], "nodeSelector", "affinity")
    return pod | {"spec": spec | ({"affinity": affinity} if affinity else {})}


def bound(pod: Obj, binding: Obj, resource: Resource) -> Obj:
    """The pod after a Binding; `pod` is not modified.

    Raises:
        ApiError: 409 if the Binding has another UID or resourceVersion, or the pod is bound, gated
            or being deleted.
    """
    metadata, wanted = pod["metadata"], binding.get("metadata") or {}
    name = metadata["name"]
    for key, label in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        if wanted.get(key) and wanted[key] != metadata[key]:
            wanted_text = f"{label} in precondition: {wanted[key]}"
            text = f"Precondition failed: {wanted_text}, {label} in object meta: {metadata[key]}"
            raise conflict(resource, name, text)
    why = ""
    if metadata.get("deletionTimestamp"):
        why = f"pod {name} is being deleted, cannot be assigned to a host"
    elif pod["spec"].get("nodeName"):
        why = f'pod {name} is already assigned to node "{pod["spec"]["nodeName"]}"'
    elif pod["spec"].get("schedulingGates"):
        why = f"pod {name} has non-empty .spec.schedulingGates"
    if why:
        raise conflict(resource, name, why, kind="pods/binding")
    new = clone(pod)
    new["spec"]["nodeName"] = binding["target"]["name"]
    for key in ("annotations", "labels"):
        if wanted.get(key):
            new["metadata"][key] = (metadata.get(key) or {}) | wanted[key]
    set_condition(new["status"], "PodScheduled", "True")
    return new


def _is_healthy(pod: Obj) -> bool:
    conditions: list[Obj] = field(pod, "status.conditions") or []
    ready = any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)
    return ready and not pod["metadata"].get("deletionTimestamp")


def budget_refusal(pod: Obj, store: Store) -> ApiError | None:
    """The error of a disruption budget that forbids the eviction of the pod now, or None.

    The real server reads the budget's status; here there is no controller, so pods are counted.
    """
    phase, metadata = field(pod, "status.phase"), pod["metadata"]
    if phase in (*ENDED, "Pending") or metadata.get("deletionTimestamp"):
        return None
    for row in store.rows(BUDGETS, metadata["namespace"]):
        matches = labels_of_object(field(row.obj, "spec.selector"))
        if not matches(metadata.get("labels") or {}):
            continue
        others = [each.obj for each in store.rows(PODS, metadata["namespace"])]
        covered = [each for each in others if matches(each["metadata"].get("labels") or {})]
        expected = [each for each in covered if field(each, "status.phase") not in ENDED]
        healthy = sum(_is_healthy(each) for each in expected)
        desired = _desired_healthy(row.obj["spec"], len(expected))
        if healthy <= desired:
            name = row.obj["metadata"]["name"]
            text = f"The disruption budget {name} needs {desired} healthy pods and has {healthy}"
            causes = {"causes": [{"reason": "DisruptionBudget", "message": f"{text} currently"}]}
            message = "Cannot evict pod as it would violate the pod's disruption budget."
            return ApiError(429, "TooManyRequests", message, details=causes)
    return None


def _desired_healthy(spec: Obj, expected: int) -> int:
    def count(value: int | str) -> int:
        return value if isinstance(value, int) else -(-expected * int(value.rstrip("%")) // 100)

    if spec.get("minAvailable") is not None:
        return count(spec["minAvailable"])
    return max(0, expected - count(spec.get("maxUnavailable", 0)))
