"""Custom resource definitions: from the object to a served resource."""

from tutti.cluster.errors import FieldError, required, wrong
from tutti.cluster.objects import Obj, dig, set_condition
from tutti.cluster.resources import Registry, Resource

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"


def prepare(crd: Obj) -> None:
    """The defaults of a definition, and the status that says it is served (at once, unlike the real one), in place."""
    spec: Obj = crd["spec"]
    names: Obj = spec["names"]
    names.setdefault("singular", names["kind"].lower())
    names.setdefault("listKind", names["kind"] + "List")
    spec.setdefault("conversion", {"strategy": "None"})
    finalizers = crd["metadata"].setdefault("finalizers", [])
    if CLEANUP not in finalizers and not crd["metadata"].get("deletionTimestamp"):
        finalizers.append(CLEANUP)
    status: Obj = crd.setdefault("status", {})
    status["acceptedNames"] = names
    status["storedVersions"] = [
        version["name"] for version in spec["versions"] if version["storage"]
    ]
    set_condition(
        status, "NamesAccepted", "True", reason="NoConflicts", message="no conflicts found"
    )
    set_condition(
        status,
        "Established",
        "True",
        reason="InitialNamesAccepted",
        message="the initial names have been accepted",
    )


def check(crd: Obj, registry: Registry) -> list[FieldError]:
    """The rules of a definition that this server depends on."""
    spec: Obj = crd["spec"]
    errors: list[FieldError] = []
    name = f"{spec['names']['plural']}.{spec['group']}"
    if crd["metadata"]["name"] != name:
        text = f'must be spec.names.plural+"."+spec.group, {name}'
        errors.append(wrong("metadata.name", crd["metadata"]["name"], text))
    if registry.is_built_in((spec["group"], spec["names"]["plural"])):
        errors.append(wrong("spec.group", spec["group"], "is the server's own"))
    if spec["scope"] not in ("Namespaced", "Cluster"):
        text = f'Unsupported value: "{spec["scope"]}": supported values: "Cluster", "Namespaced"'
        errors.append(FieldError("spec.scope", "FieldValueNotSupported", text))
    if sum(version["storage"] for version in spec["versions"]) != 1:
        errors.append(
            wrong("spec.versions", "", "must have exactly one version marked as storage version")
        )
    if dig(spec, "conversion.strategy") != "None":
        errors.append(
            wrong(
                "spec.conversion.strategy",
                dig(spec, "conversion.strategy"),
                "not served by the embedded cluster",
            )
        )
    for index, version in enumerate(spec["versions"]):
        if not dig(version, "schema.openAPIV3Schema"):
            errors.append(
                required(f"spec.versions[{index}].schema.openAPIV3Schema", "schemas are required")
            )
    return errors


def resource_of(crd: Obj) -> Resource:
    """What a checked definition serves. The storage version is the preferred one, then the others as written."""
    spec: Obj = crd["spec"]
    served = sorted((v for v in spec["versions"] if v["served"]), key=lambda v: not v["storage"])
    names: Obj = spec["names"]
    return Resource(
        group=spec["group"],
        versions=tuple(v["name"] for v in served),
        kind=names["kind"],
        plural=names["plural"],
        singular=names["singular"],
        namespaced=spec["scope"] == "Namespaced",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        has_status=any(dig(v, "subresources.status") is not None for v in served),
        has_generation=True,
        needs_version=True,
        custom=True,
        schemas={v["name"]: v["schema"]["openAPIV3Schema"] for v in served},
        columns={v["name"]: v.get("additionalPrinterColumns") or [] for v in served},
    )
