"""What the API server does to pods: defaults, rules, bindings, and what budgets say to evictions.

Binding asks neither whether the node exists nor whether there is room; that is the kubelet's word.
"""

import msgspec

from shared.kube.objects import Pod
from shared.kube.quantities import QuantityError, amount
from shared.kube.requests import effective_requests
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
from tutti.cluster.objects import Obj, clone, dig, set_condition
from tutti.cluster.resources import BUDGETS, PODS, PRIORITY_CLASSES, Resource
from tutti.cluster.selectors import labels_of_object
from tutti.cluster.store import Store

_RESTART_POLICIES = ["Always", "Never", "OnFailure"]
# What the plugin DefaultTolerationSeconds adds, in its order.
_TOLERATED_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_TOLERATION_S = 300
_ENDED = ("Succeeded", "Failed")


def _containers(pod: Obj) -> list[tuple[str, Obj]]:
    """Containers and init containers, each with its path."""
    return [
        (f"spec.{field}[{index}]", container)
        for field in ("containers", "initContainers")
        for index, container in enumerate(pod["spec"].get(field) or ())
    ]


def default(pod: Obj) -> None:
    """Fills in the defaults of the Pod type, in place.

    Raises:
        QuantityError: Before anything calculates with what is no quantity at all. (A negative one
            is refused later, with its path.)
    """
    try:
        effective_requests(msgspec.convert(pod, Pod).spec)
    except QuantityError as error:
        if "is negative" not in str(error):
            raise
    spec: Obj = pod.setdefault("spec", {})
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    spec.setdefault("enableServiceLinks", True)
    for _, container in _containers(pod):
        container.setdefault("terminationMessagePath", "/dev/termination-log")
        container.setdefault("terminationMessagePolicy", "File")
        _, _, tag = container.get("image", "").rpartition("/")[2].partition(":")
        policy = "Always" if tag in ("", "latest") else "IfNotPresent"
        container.setdefault("imagePullPolicy", policy)
        resources = container.setdefault("resources", {})
        if resources.get("limits"):
            resources["requests"] = resources["limits"] | (resources.get("requests") or {})
        for port in container.get("ports") or ():
            port.setdefault("protocol", "TCP")


def admit(pod: Obj, resource: Resource, store: Store) -> None:
    """The admission plugins Priority and DefaultTolerationSeconds, for a new pod, in place.

    Raises:
        ApiError: 403 for an unknown priority class or a priority that is not its class's.
    """
    spec: Obj = pod["spec"]
    wanted = spec.get("priorityClassName")
    classes = {row.obj["metadata"]["name"]: row.obj for row in store.rows(PRIORITY_CLASSES)}
    by_default = (each for each in classes.values() if each.get("globalDefault"))
    chosen: Obj | None = classes.get(wanted) if wanted else next(by_default, None)
    why = ""
    if wanted and chosen is None:
        why = f"no PriorityClass with name {wanted} was found"
    priority = chosen["value"] if chosen else 0
    if not why and spec.get("priority", priority) != priority:
        why = (
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; "
            f"priority admission controller computed {priority} from the given PriorityClass name"
        )
    if why:
        raise forbidden(resource, pod["metadata"].get("name", ""), why)
    spec["priority"] = priority
    spec["preemptionPolicy"] = (chosen or {}).get("preemptionPolicy", "PreemptLowerPriority")
    if chosen:
        spec["priorityClassName"] = chosen["metadata"]["name"]
    tolerations: list[Obj] = spec.setdefault("tolerations", [])
    for taint in _TOLERATED_TAINTS:
        if not any(_tolerates(item, taint) for item in tolerations):
            added = {"key": taint, "operator": "Exists", "effect": "NoExecute"}
            tolerations.append(added | {"tolerationSeconds": _TOLERATION_S})


def _tolerates(toleration: Obj, taint: str) -> bool:
    keys, effects = ("", taint), ("", "NoExecute")
    return toleration.get("key", "") in keys and toleration.get("effect", "") in effects


def first_status(pod: Obj) -> Obj:
    """The status of a new pod, whatever its creator wrote."""
    status: Obj = {"phase": "Pending"}
    if pod["spec"].get("schedulingGates"):
        message = "Scheduling is blocked due to non-empty scheduling gates"
        why = {"reason": "SchedulingGated", "message": message}
        set_condition(status, "PodScheduled", "False", **why)
    return status


def check(pod: Obj) -> list[FieldError]:
    """The rules of a new pod's spec that schedulers and kubelets rely on."""
    spec: Obj = pod["spec"]
    errors = [] if spec.get("containers") else [required("spec.containers")]
    seen: set[str] = set()
    for path, container in _containers(pod):
        errors += [required(f"{path}.{key}") for key in ("name", "image") if not container.get(key)]
        name = container.get("name", "")
        if name in seen:
            errors.append(FieldError(f"{path}.name", "Duplicate", f'Duplicate value: "{name}"'))
        seen.add(name)
        errors += _check_resources(container["resources"], f"{path}.resources")
    if spec["restartPolicy"] not in _RESTART_POLICIES:
        error = not_supported("spec.restartPolicy", spec["restartPolicy"], _RESTART_POLICIES)
        errors.append(error)
    if spec.get("nodeName") and spec.get("schedulingGates"):
        text = "nodeName cannot be set until all schedulingGates have been cleared"
        errors.append(not_permitted("spec.nodeName", text))
    return errors


def _check_resources(resources: Obj, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    limits = resources.get("limits") or {}
    for side in ("limits", "requests"):
        for name, text in (resources.get(side) or {}).items():
            where = f"{path}.{side}[{name}]"
            try:
                value, limit = amount(name, text), amount(name, limits.get(name, text))
            except QuantityError:  # `default` has refused what is no quantity at all
                errors.append(wrong(where, str(text), "must be greater than or equal to 0"))
                continue
            extended = "/" in name
            if extended and amount("cpu", text) % 1000:
                errors.append(wrong(where, str(text), "must be an integer"))
            if value > limit or (extended and value != limit):
                relation = "equal to" if extended else "less than or equal to"
                rule = f"must be {relation} {name} limit of {limits[name]}"
                errors.append(wrong(f"{path}.requests", str(text), rule))
    return errors


def _fixed(pod: Obj, *, gated: bool) -> Obj:
    """The part of a pod's spec that must stay as it is."""
    copy = clone(pod)
    spec: Obj = copy["spec"]
    free = ("activeDeadlineSeconds", "schedulingGates", "tolerations")
    for key in (*free, *(("nodeSelector",) if gated else ())):
        spec.pop(key, None)
    if gated:
        (spec.get("affinity") or {}).pop("nodeAffinity", None)
    for _, container in _containers(copy):
        container.pop("image", None)
    return spec


def check_update(new: Obj, old: Obj) -> list[FieldError]:
    """What must not change in an existing pod."""
    errors: list[FieldError] = []
    gates = old["spec"].get("schedulingGates") or []
    if _fixed(new, gated=bool(gates)) != _fixed(old, gated=bool(gates)):
        text = (
            "pod updates may not change fields other than `spec.containers[*].image`,"
            "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` "
            "(only additions to existing tolerations)"
        )
        errors.append(not_permitted("spec", text))
    kept = new["spec"].get("tolerations") or []
    if any(item not in kept for item in old["spec"].get("tolerations") or ()):
        text = "existing toleration can not be modified except its tolerationSeconds"
        errors.append(not_permitted("spec.tolerations", text))
    if any(gate not in gates for gate in new["spec"].get("schedulingGates") or ()):
        text = "only deletion is allowed, but found new scheduling gate"
        errors.append(not_permitted("spec.schedulingGates", text))
    return errors


def bound(pod: Obj, binding: Obj, resource: Resource) -> Obj:
    """The pod after a Binding; `pod` is left as it was.

    Raises:
        ApiError: 409 when the Binding's UID or resourceVersion is another pod's, or the pod is
            bound, gated or going.
    """
    metadata, wanted = pod["metadata"], binding.get("metadata") or {}
    name = metadata["name"]
    for key, label in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        if wanted.get(key) and wanted[key] != metadata[key]:
            asked = f"{label} in precondition: {wanted[key]}"
            text = f"Precondition failed: {asked}, {label} in object meta: {metadata[key]}"
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
    new["status"].pop("nominatedNodeName", None)
    set_condition(new["status"], "PodScheduled", "True")
    return new


def is_ready(pod: Obj) -> bool:
    """Whether the pod's Ready condition holds."""
    conditions: list[Obj] = dig(pod, "status.conditions") or []
    return any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)


def budget_refusal(pod: Obj, store: Store) -> ApiError | None:
    """Why the pod's disruption budget forbids to evict it now, or None.

    The real server reads the budget's status; here, without a controller, pods are counted at once.
    """
    phase, metadata = dig(pod, "status.phase"), pod["metadata"]
    if phase in (*_ENDED, "Pending") or metadata.get("deletionTimestamp"):
        return None
    labels, namespace = metadata.get("labels") or {}, metadata["namespace"]
    found = [
        (row.obj, matches)
        for row in store.rows(BUDGETS, namespace)
        if (matches := labels_of_object(dig(row.obj, "spec.selector")))(labels)
    ]
    if len(found) > 1:
        text = "This pod has more than one PodDisruptionBudget, which the eviction subresource "
        return ApiError(500, "", text + "does not support.")
    if not found:
        return None
    budget, matches = found[0]
    covered = [row.obj for row in store.rows(PODS, namespace)]
    covered = [each for each in covered if matches(each["metadata"].get("labels") or {})]
    expected = [each for each in covered if dig(each, "status.phase") not in _ENDED]
    going = [each for each in expected if each["metadata"].get("deletionTimestamp")]
    healthy = sum(is_ready(each) and each not in going for each in expected)
    desired = _desired_healthy(budget["spec"], len(expected))
    if healthy > desired or (not is_ready(pod) and healthy >= desired > 0):
        return None
    name = budget["metadata"]["name"]
    text = f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
    causes = {"causes": [{"reason": "DisruptionBudget", "message": text}]}
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    return ApiError(429, "TooManyRequests", message, details=causes)


def _desired_healthy(spec: Obj, expected: int) -> int:
    def count(value: int | str) -> int:
        return value if isinstance(value, int) else -(-expected * int(value.rstrip("%")) // 100)

    if spec.get("minAvailable") is not None:
        return count(spec["minAvailable"])
    return max(0, expected - count(spec.get("maxUnavailable", 0)))
