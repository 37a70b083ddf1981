"""From a sent object to a stored one: system fields, defaults, spec and status, rules.

And the effect of a DELETE: the object is gone, or marked and waits for a kubelet or finalizers.
"""

import re
import secrets
import uuid

import msgspec

from shared.kube.objects import DisruptionBudget, KubeObject, KubeStruct, Node, Pod
from shared.kube.quantities import QuantityError
from tutti.api.objects import field
from tutti.cluster import crds, pods
from tutti.cluster.errors import (
    FieldError,
    cannot_be_handled,
    conflict,
    invalid,
    not_permitted,
    not_supported,
    required,
    wrong,
)
from tutti.cluster.objects import Obj, Value, clone, now_text, only, without
from tutti.cluster.resources import (
    API_SERVICES,
    BUDGETS,
    CRDS,
    MUTATING,
    NAMESPACES,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    VALIDATING,
    Key,
    Resource,
)
from tutti.cluster.store import Store

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # Kubernetes' own: no vowels, no look-alikes
_MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)
_SYSTEM = (
    *("uid", "creationTimestamp", "resourceVersion", "generation", "managedFields"),
    *("deletionTimestamp", "deletionGracePeriodSeconds"),
)
_SUBDOMAIN = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
_LABEL_VALUE = re.compile(r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$")
_NAME_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character"
)
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character"
)
_ANNOTATIONS_BYTES_MAX = 256 * 1024
_PRECONDITIONS = (
    ("uid", "UID", "deleted and then recreated"),
    ("resourceVersion", "ResourceVersion", "modified"),
)
# The garbage collector removes these once they are empty.
_EMPTIED_FIRST = (NAMESPACES, CRDS)


class _ServiceReference(KubeStruct, frozen=True, kw_only=True):
    namespace: str = ""
    name: str = ""
    port: int = 443


class _ApiServiceSpec(KubeStruct, frozen=True, kw_only=True):
    group: str = ""
    version: str = ""
    service: _ServiceReference | None = None
    ca_bundle: str = ""


class _ApiService(KubeObject, frozen=True, kw_only=True):
    spec: _ApiServiceSpec = _ApiServiceSpec()


_SHAPES: dict[Key, type[KubeStruct]] = {
    API_SERVICES: _ApiService,
    BUDGETS: DisruptionBudget,
    NODES: Node,
    PODS: Pod,
}


def decoded(resource: Resource, version: str, obj: Obj) -> tuple[Obj, list[str]]:
    """A sent or mutated object in stored form with its defaults, and its dropped unknown fields.

    Raises:
        ApiError: 400 if it is not an object of this kind.
    """
    obj = resource.stored_form(obj if resource.custom else _stripped(obj))
    _check_shape(resource, obj)
    obj["metadata"] = {k: v for k, v in (obj.get("metadata") or {}).items() if v is not None}
    try:
        if resource.custom:
            return obj, crds.fit(resource.schemas[version], obj)[0]
        if resource.key == PODS:
            pods.default(obj)
        elif resource.key == CRDS:
            crds.prepare(obj)
        elif resource.key in (MUTATING, VALIDATING):
            _default_webhooks(obj)
    except (QuantityError, KeyError, TypeError, AttributeError) as error:
        raise cannot_be_handled(resource, error) from error
    return obj, []


def new(resource: Resource, obj: Obj, namespace: str, store: Store) -> None:
    """Set the system fields of a new object, in place."""
    metadata: Obj = without(obj["metadata"], *_SYSTEM, "namespace")
    metadata |= {"uid": str(uuid.uuid4()), "creationTimestamp": now_text()}
    metadata |= {"namespace": namespace} if namespace else {}
    metadata |= {"generation": 1} if resource.has_generation else {}
    obj["metadata"] = metadata
    if resource.has_status and not resource.keeps_status and resource.key != CRDS:
        obj.pop("status", None)
    if resource.key == PODS:
        pods.admit(obj, resource, store)
        obj["status"] = pods.first_status(obj)
    elif resource.key == NAMESPACES:
        labels = metadata.setdefault("labels", {})
        labels["kubernetes.io/metadata.name"] = metadata.get("name", "")
        obj |= {"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}


def named(obj: Obj) -> bool:
    """Generate the name of an object with `generateName`; whether it did."""
    metadata: Obj = obj["metadata"]
    if metadata.get("name") or not metadata.get("generateName"):
        return False
    ending = "".join(secrets.choice(_ALPHABET) for _ in range(5))
    metadata["name"] = metadata["generateName"][:58] + ending
    return True


def changed(resource: Resource, obj: Obj, old: Obj, subresource: str) -> Obj:
    """The stored object with the changes that this resource or subresource permits.

    Raises:
        ApiError: 409 for another UID or an older resourceVersion.
    """
    metadata, before = obj["metadata"], old["metadata"]
    if metadata.get("uid", before["uid"]) != before["uid"]:
        uids = f"UID in precondition: {metadata['uid']}, UID in object meta: {before['uid']}"
        raise conflict(resource, before["name"], f"Precondition failed: {uids}")
    if metadata.get("resourceVersion", before["resourceVersion"]) != before["resourceVersion"]:
        raise conflict(resource, before["name"], _MODIFIED)
    fresh = dict(obj)
    if subresource and resource.custom:
        fresh = without(old, "status") | only(obj, "status")
    elif subresource:  # also changes labels and annotations
        fresh |= only(old, "spec")
    elif resource.has_status:
        fresh = without(obj, "status") | only(old, "status")
    kept = only(before, *_SYSTEM, "namespace", "name")
    fresh["metadata"] = without(fresh["metadata"], *_SYSTEM) | kept
    if resource.key == NAMESPACES:
        fresh["spec"] = old["spec"]
    if resource.key == PODS:  # a manifest without them keeps the values of admission
        fresh["spec"] = only(old["spec"], "priority", "preemptionPolicy") | fresh["spec"]
    ignored = ("metadata", "status") if resource.has_status else ("metadata",)
    if resource.has_generation and without(fresh, *ignored) != without(old, *ignored):
        fresh["metadata"]["generation"] = before.get("generation", 0) + 1
    return fresh


def errors(resource: Resource, version: str, obj: Obj, old: Obj | None) -> list[FieldError]:
    """Every broken rule of an object before it is stored."""
    broken = _check_metadata(obj["metadata"], (old or obj)["metadata"])
    if resource.custom:
        broken += crds.fit(resource.schemas[version], clone(obj))[1]
    elif resource.key == PODS:
        broken += pods.check(obj) if old is None else pods.check_update(obj, old)
    elif resource.key == CRDS:
        broken += crds.check(obj)
    elif resource.key == PRIORITY_CLASSES and not isinstance(obj.get("value"), int):
        broken.append(required("value"))
    elif resource.key == API_SERVICES:
        name = obj["metadata"].get("name", "")
        wanted = f"{field(obj, 'spec.version')}.{field(obj, 'spec.group')}"
        if name != wanted:
            text = f'must be `spec.version+"."+spec.group`: "{wanted}"'
            broken.append(wrong("metadata.name", name, text))
    elif resource.key in (MUTATING, VALIDATING):
        for index, webhook in enumerate(obj.get("webhooks") or ()):
            broken += _check_webhook(webhook, f"webhooks[{index}]")
    return broken


def _stripped(value: Value) -> Value:
    """The value without nulls, which mean absent in typed kinds."""
    if isinstance(value, dict):
        return {key: _stripped(inner) for key, inner in value.items() if inner is not None}
    return [_stripped(item) for item in value] if isinstance(value, list) else value


def _default_webhooks(config: Obj) -> None:
    for webhook in config.get("webhooks") or ():
        webhook.setdefault("failurePolicy", "Fail")
        webhook.setdefault("timeoutSeconds", 10)
        webhook.setdefault("namespaceSelector", {})
        webhook.setdefault("objectSelector", {})
        for rule in webhook.get("rules") or ():
            rule.setdefault("scope", "*")
            for key in ("operations", "apiGroups", "apiVersions", "resources"):
                set(rule[key])  # refuses a missing key and a value that is not a list


def _check_webhook(webhook: Obj, path: str) -> list[FieldError]:
    broken: list[FieldError] = []
    if webhook.get("matchConditions"):
        broken.append(wrong(f"{path}.matchConditions", "", "CEL is not supported here"))
    if webhook.get("sideEffects") not in ("None", "NoneOnDryRun"):
        broken.append(required(f"{path}.sideEffects", "must specify one of None, NoneOnDryRun"))
    if "v1" not in (webhook.get("admissionReviewVersions") or ()):
        broken.append(required(f"{path}.admissionReviewVersions", "must specify one of v1"))
    url = (webhook.get("clientConfig") or {}).get("url", "https:")
    if not str(url).startswith("https:"):
        text = "'https' is the only allowed URL scheme"
        broken.append(wrong(f"{path}.clientConfig.url", url, text))
    return broken


def _check_shape(resource: Resource, obj: Obj) -> None:
    """Check the JSON types of values. Raises ApiError 400 with the field's path."""
    try:
        msgspec.convert(
            obj, KubeObject if resource.custom else _SHAPES.get(resource.key, KubeObject)
        )
    except msgspec.ValidationError as error:
        raise cannot_be_handled(resource, error) from error


def _check_metadata(metadata: Obj, before: Obj) -> list[FieldError]:
    """Every broken rule; `before` is the stored metadata, or the same for a new object."""
    errors: list[FieldError] = []
    name = metadata.get("name", "")
    if not name:
        errors.append(required("metadata.name", "name or generateName is required"))
    elif len(name) > 253 or not _SUBDOMAIN.match(name):
        errors.append(wrong("metadata.name", name, _NAME_RULE))
    odd = [v for v in (metadata.get("labels") or {}).values() if not _LABEL_VALUE.match(v)]
    errors += [wrong("metadata.labels", value, _VALUE_RULE) for value in odd]
    texts = (metadata.get("annotations") or {}).items()
    if sum(len(key.encode()) + len(text.encode()) for key, text in texts) > _ANNOTATIONS_BYTES_MAX:
        text = f"Too long: may not be more than {_ANNOTATIONS_BYTES_MAX} bytes"
        errors.append(FieldError("metadata.annotations", "TooLong", text))
    known = set(before.get("finalizers") or ())
    if before.get("deletionTimestamp") and set(metadata.get("finalizers") or ()) - known:
        text = "no new finalizers can be added if the object is being deleted"
        errors.append(not_permitted("metadata.finalizers", text))
    return errors


def must_go(resource: Resource, obj: Obj) -> bool:
    """Whether a deleted object can be removed: it waits for no finalizer and no kubelet."""
    metadata = obj["metadata"]
    waits = metadata.get("deletionGracePeriodSeconds") or metadata.get("finalizers")
    going = bool(metadata.get("deletionTimestamp")) and not waits
    return going and resource.key not in _EMPTIED_FIRST


def deleted(resource: Resource, obj: Obj, options: Obj) -> tuple[Obj, bool]:
    """The object after a DELETE with these options, and whether it is gone; `obj` is not modified.

    Raises:
        ApiError: 409 for a precondition, 422 for a propagation policy other than Background.
    """
    for key, label, end in _PRECONDITIONS:
        wanted = (options.get("preconditions") or {}).get(key)
        present = obj["metadata"][key]
        if wanted and wanted != present:
            other = f"the {label} in record ({present}). The object might have been {end}"
            text = f"the {label} in the precondition ({wanted}) does not match {other}"
            raise conflict(resource, obj["metadata"]["name"], text, kind=resource.kind)
    policy = options.get("propagationPolicy")
    if policy not in (None, "Background"):
        error = not_supported("propagationPolicy", policy, ["Background"])
        raise invalid("DeleteOptions", "meta.k8s.io", "", [error])
    new = clone(obj)
    metadata: Obj = new["metadata"]
    grace_s = _grace_s(obj, options) if resource.key == PODS else 0
    if metadata.get("deletionTimestamp"):
        # A deletion can only become shorter.
        if grace_s >= metadata["deletionGracePeriodSeconds"]:
            return obj, False
    elif metadata.get("generation"):
        metadata["generation"] += 1
    if resource.key == NAMESPACES:
        new["status"] = {"phase": "Terminating"}
    metadata |= {"deletionTimestamp": now_text(grace_s), "deletionGracePeriodSeconds": grace_s}
    return new, must_go(resource, new)


def _grace_s(pod: Obj, options: Obj) -> int:
    """The grace period of a pod; 0 if no kubelet has it, or its containers have ended."""
    if not field(pod, "spec.nodeName") or field(pod, "status.phase") in ("Failed", "Succeeded"):
        return 0
    given = options.get("gracePeriodSeconds")
    return int(field(pod, "spec.terminationGracePeriodSeconds") if given is None else given)
