"""Custom resource definitions: from the object to a served resource."""

from tutti.cluster.errors import FieldError, not_supported, required, wrong
from tutti.cluster.objects import Obj, dig, set_condition
from tutti.cluster.resources import Key, Resource


def defined_by(crd: Obj) -> Key:
    return crd["spec"]["group"], crd["spec"]["names"]["plural"]


def prepare(crd: Obj) -> None:
    """Set a definition's defaults and the status of an established one, in place.

    It is served at once; the real server takes two seconds.
    """
    spec: Obj = crd["spec"]
    names: Obj = spec["names"]
    names.setdefault("singular", names["kind"].lower())
    names.setdefault("listKind", names["kind"] + "List")
    spec.setdefault("conversion", {"strategy": "None"})
    status: Obj = crd.setdefault("status", {})
    status["acceptedNames"] = names
    status["storedVersions"] = [each["name"] for each in spec["versions"] if each["storage"]]
    set_condition(status, "NamesAccepted", "True", reason="NoConflicts")
    set_condition(status, "Established", "True", reason="InitialNamesAccepted")


def check(crd: Obj) -> list[FieldError]:
    """The rules of a definition that this server depends on."""
    spec, own_name, wanted = (
        crd["spec"],
        crd["metadata"].get("name"),
        ".".join(defined_by(crd)[::-1]),
    )
    errors: list[FieldError] = []
    if own_name != wanted:
        text = f'must be spec.names.plural+"."+spec.group, {wanted}'
        errors.append(wrong("metadata.name", own_name, text))
    if spec["scope"] not in ("Namespaced", "Cluster"):
        errors.append(not_supported("spec.scope", spec["scope"], ["Cluster", "Namespaced"]))
    if sum(version["storage"] for version in spec["versions"]) != 1:
        text = "must have exactly one version marked as storage version"
        errors.append(wrong("spec.versions", "", text))
    if dig(spec, "conversion.strategy") != "None":
        errors.append(wrong("spec.conversion.strategy", "", "only None is supported here"))
    for index, version in enumerate(spec["versions"]):
        if not dig(version, "schema.openAPIV3Schema"):
            errors.append(required(f"spec.versions[{index}].schema.openAPIV3Schema"))
    return errors


def resource_of(crd: Obj) -> Resource:
    """The resource of a checked definition; its storage version is the preferred one."""
    spec, names = crd["spec"], crd["spec"]["names"]
    served = sorted((v for v in spec["versions"] if v["served"]), key=lambda v: not v["storage"])
    return Resource(
        group=spec["group"],
        versions=tuple(v["name"] for v in served),
        kind=names["kind"],
        plural=names["plural"],
        singular=names["singular"],
        namespaced=spec["scope"] == "Namespaced",
        short_names=tuple(names.get("shortNames") or ()),
        has_status=any(dig(v, "subresources.status") is not None for v in served),
        has_generation=True,
        custom=True,
        schemas={v["name"]: v["schema"]["openAPIV3Schema"] for v in served},
        columns={v["name"]: v.get("additionalPrinterColumns") or [] for v in served},
    )
