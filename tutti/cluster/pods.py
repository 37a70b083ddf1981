"""What the API server does to pods: defaults, rules, binding and the question whether a budget allows an eviction.

Binding asks neither whether the node exists nor whether there is room; that is the kubelet's word (see `kubelet`).
"""

import msgspec

from shared.kube.objects import Pod
from shared.kube.quantities import QuantityError, amount
from shared.kube.requests import effective_requests
from tutti.cluster.errors import ApiError, FieldError, conflict, forbidden, required, wrong
from tutti.cluster.objects import Obj, Value, clone, dig, set_condition
from tutti.cluster.resources import BUDGETS, PODS, PRIORITY_CLASSES, Resource
from tutti.cluster.selectors import labels_of_object
from tutti.cluster.store import Store

GRACE_S = 30
_SPEC_DEFAULTS: Obj = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": GRACE_S,
    "dnsPolicy": "ClusterFirst",
    "securityContext": {},
    "schedulerName": "default-scheduler",
    "enableServiceLinks": True,
}
_CONTAINER_DEFAULTS: Obj = {
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
# What the plugin DefaultTolerationSeconds adds, in its order.
_TOLERATED_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_TOLERATION_S = 300


def default(pod: Obj) -> None:
    """Fills in the defaults of the Pod type, in place."""
    spec: Obj = pod.setdefault("spec", {})
    for key, value in _SPEC_DEFAULTS.items():
        if spec.get(key) is None:
            spec[key] = value
    for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
        for key, value in _CONTAINER_DEFAULTS.items():
            if container.get(key) is None:
                container[key] = value
        latest = ":" not in container.get("image", "").rpartition("/")[2] or container[
            "image"
        ].endswith(":latest")
        container.setdefault("imagePullPolicy", "Always" if latest else "IfNotPresent")
        resources = container["resources"]
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
    classes = [row.obj for row in store.rows(PRIORITY_CLASSES)]
    chosen = next(
        (
            c
            for c in classes
            if (c["metadata"]["name"] == wanted if wanted else c.get("globalDefault"))
        ),
        None,
    )
    name = pod["metadata"].get("name", "")
    if wanted and chosen is None:
        raise forbidden(resource, name, f"no PriorityClass with name {wanted} was found")
    priority = chosen["value"] if chosen else 0
    if spec.get("priority") not in (None, priority):
        why = (
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; "
            f"priority admission controller computed {priority} from the given PriorityClass name"
        )
        raise forbidden(resource, name, why)
    spec["priority"] = priority
    spec["preemptionPolicy"] = (chosen or {}).get("preemptionPolicy", "PreemptLowerPriority")
    if chosen:
        spec["priorityClassName"] = chosen["metadata"]["name"]
    tolerations: list[Obj] = list(spec.get("tolerations") or ())
    for taint in _TOLERATED_TAINTS:
        if not any(_tolerates(item, taint) for item in tolerations):
            tolerations.append(
                {
                    "key": taint,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": _TOLERATION_S,
                }
            )
    spec["tolerations"] = tolerations


def _tolerates(toleration: Obj, taint: str) -> bool:
    return toleration.get("key", taint) in (taint, "") and toleration.get("effect", "") in (
        "NoExecute",
        "",
    )


def first_status(pod: Obj) -> Obj:
    """The status of a new pod, whatever its creator wrote."""
    status: Obj = {"phase": "Pending"}
    if pod["spec"].get("schedulingGates"):
        message = "Scheduling is blocked due to non-empty scheduling gates"
        set_condition(status, "PodScheduled", "False", reason="SchedulingGated", message=message)
    return status


def check(pod: Obj) -> list[FieldError]:
    """The rules of a pod's spec that schedulers and kubelets rely on."""
    spec: Obj = pod["spec"]
    errors: list[FieldError] = [] if spec.get("containers") else [required("spec.containers")]
    seen: set[str] = set()
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            path = f"spec.{field}[{index}]"
            name = container.get("name")
            errors += [] if name else [required(f"{path}.name")]
            errors += [] if container.get("image") else [required(f"{path}.image")]
            if name in seen:
                text = f'Duplicate value: "{name}"'
                errors.append(FieldError(f"{path}.name", "FieldValueDuplicate", text))
            seen.add(name or "")
            errors += _check_resources(container["resources"], f"{path}.resources")
    if spec["restartPolicy"] not in ("Always", "OnFailure", "Never"):
        text = f'Unsupported value: "{spec["restartPolicy"]}": supported values: "Always", "Never", "OnFailure"'
        errors.append(FieldError("spec.restartPolicy", "FieldValueNotSupported", text))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        text = "Forbidden: nodeName cannot be set until all schedulingGates have been cleared"
        errors.append(FieldError("spec.nodeName", "FieldValueForbidden", text))
    return errors


def _check_resources(resources: Obj, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    limits = resources.get("limits") or {}
    for side in ("limits", "requests"):
        for name, text in (resources.get(side) or {}).items():
            try:
                value, limit = amount(name, text), amount(name, limits.get(name, text))
            except QuantityError:  # `check_quantities` has refused what is no quantity at all
                rule = "must be greater than or equal to 0"
                errors.append(wrong(f"{path}.{side}[{name}]", str(text), rule))
                continue
            extended = "/" in name
            if extended and amount("cpu", text) % 1000:
                errors.append(wrong(f"{path}.{side}[{name}]", str(text), "must be an integer"))
            if side == "requests" and (value > limit or (extended and value != limit)):
                relation = "equal to" if extended else "less than or equal to"
                rule = f"must be {relation} {name} limit of {limits[name]}"
                errors.append(wrong(f"{path}.requests", str(text), rule))
    return errors


def check_quantities(pod: Obj) -> None:
    """Refuses what is no quantity, before anything calculates with it (a negative one is refused later, with its path).

    Raises:
        QuantityError: The text, its field and the rule.
    """
    try:
        effective_requests(msgspec.convert(pod, Pod).spec)
    except QuantityError as error:
        if "is negative" not in str(error):
            raise


def check_update(new: Obj, old: Obj) -> list[FieldError]:
    """What must not change in an existing pod."""

    def fixed(pod: Obj, other: Obj) -> Value:
        spec = clone(pod["spec"])
        for free in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
            spec.pop(free, None)
        if other["spec"].get("schedulingGates"):
            spec.pop("nodeSelector", None)
            (spec.get("affinity") or {}).pop("nodeAffinity", None)
        for container in [*spec["containers"], *(spec.get("initContainers") or ())]:
            container.pop("image", None)
        return spec

    errors: list[FieldError] = []
    if fixed(new, old) != fixed(old, old):
        text = (
            "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
            "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing "
            "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
        )
        errors.append(FieldError("spec", "FieldValueForbidden", text))
    kept = new["spec"].get("tolerations") or []
    if any(item not in kept for item in old["spec"].get("tolerations") or ()):
        text = "Forbidden: existing toleration can not be modified except its tolerationSeconds"
        errors.append(FieldError("spec.tolerations", "FieldValueForbidden", text))
    before = old["spec"].get("schedulingGates") or []
    if any(gate not in before for gate in new["spec"].get("schedulingGates") or ()):
        text = "Forbidden: only deletion is allowed, but found new scheduling gate"
        errors.append(FieldError("spec.schedulingGates", "FieldValueForbidden", text))
    return errors


def bound(pod: Obj, binding: Obj, resource: Resource) -> Obj:
    """The pod after a Binding; `pod` is left as it was.

    Raises:
        ApiError: 409 when the Binding's UID or resourceVersion is another pod's, or the pod is bound, gated or going.
    """
    metadata, wanted = pod["metadata"], binding.get("metadata") or {}
    name = metadata["name"]
    for key, label, owner in (
        ("uid", "UID", "UID"),
        ("resourceVersion", "ResourceVersion", "ResourceVersion"),
    ):
        if wanted.get(key) and wanted[key] != metadata[key]:
            text = f"Precondition failed: {label} in precondition: {wanted[key]}, {owner} in object meta: {metadata[key]}"
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
    return any(
        item.get("type") == "Ready" and item.get("status") == "True"
        for item in dig(pod, "status.conditions") or ()
    )


def budget_refusal(pod: Obj, store: Store) -> ApiError | None:
    """Why the pod's disruption budget forbids to evict it now, or None.

    The real server reads the budget's status; here, without a disruption controller, the counts are taken at once.
    """
    if dig(pod, "status.phase") in ("Succeeded", "Failed", "Pending") or pod["metadata"].get(
        "deletionTimestamp"
    ):
        return None
    namespace = pod["metadata"]["namespace"]
    labels = pod["metadata"].get("labels") or {}
    budgets = [
        row.obj
        for row in store.rows(BUDGETS, namespace)
        if labels_of_object(dig(row.obj, "spec.selector"))(labels)
    ]
    if len(budgets) > 1:
        text = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        return ApiError(500, "", text)
    if not budgets:
        return None
    matches = labels_of_object(budgets[0]["spec"].get("selector"))
    covered = [
        row.obj
        for row in store.rows(PODS, namespace)
        if matches(row.obj["metadata"].get("labels") or {})
    ]
    expected = [p for p in covered if dig(p, "status.phase") not in ("Succeeded", "Failed")]
    healthy = sum(is_ready(p) and not p["metadata"].get("deletionTimestamp") for p in expected)
    desired = _desired_healthy(budgets[0]["spec"], len(expected))
    if healthy > desired or (not is_ready(pod) and healthy >= desired > 0):
        return None
    cause = {
        "reason": "DisruptionBudget",
        "message": f"The disruption budget {budgets[0]['metadata']['name']} needs {desired} healthy pods and has {healthy} currently",
    }
    text = "Cannot evict pod as it would violate the pod's disruption budget."
    return ApiError(429, "TooManyRequests", text, details={"causes": [cause]})


def _desired_healthy(spec: Obj, expected: int) -> int:
    def count(value: int | str) -> int:
        return value if isinstance(value, int) else -(-expected * int(value.rstrip("%")) // 100)

    if spec.get("minAvailable") is not None:
        return count(spec["minAvailable"])
    return max(
        0, expected - count(spec["maxUnavailable"] if spec.get("maxUnavailable") is not None else 0)
    )
