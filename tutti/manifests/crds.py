"""Generates the text of each kind's CRD from its description."""

from collections.abc import Mapping
from typing import Any, Final

import yaml
from typing_extensions import override

from shared.kinds.catalogue import CATALOGUE, SCHEMA_REVISION
from shared.kinds.fields import Description
from shared.schemas.structural import BuiltInSchema, root_schema

#: On every CRD of Tutti. It grows with each change of a schema, so that an older Tutti does not
#: overwrite the CRDs of a newer one.
REVISION_ANNOTATION: Final = "tutti.dev/schema-revision"
#: Wide enough that no text is folded, and each of Kubernetes' own schemas is one line.
_WIDTH: Final = 10**6
_HEAD: Final = "# Made by `make manifests` from shared/kinds: change it there.\n"


#: Folder of the CRDs that are installed on request only, below that of the other CRDs.
OPT_IN_FOLDER: Final = "kube-batch"


def manifests() -> list[dict[str, Any]]:
    """New copies of every CRD; the caller may change them."""
    return [manifest(description) for description in CATALOGUE]


def default_names() -> frozenset[str]:
    """Names of the CRDs that are installed by default."""
    return frozenset(each.resource.title for each in CATALOGUE if not each.opt_in)


def files() -> dict[str, str]:
    """The text of every CRD's file, by its path in the folder of CRDs."""
    return {_path(each): _HEAD + _yaml(manifest(each)) for each in CATALOGUE}


def _path(description: Description) -> str:
    name = f"{description.resource.group}_{description.resource.plural}.yaml"
    return f"{OPT_IN_FOLDER}/{name}" if description.opt_in else name


def manifest(description: Description) -> dict[str, Any]:
    """One kind's CRD."""
    resource = description.resource
    version: dict[str, Any] = {"name": resource.version, "served": True, "storage": True}
    if description.status_subresource:
        version["subresources"] = {"status": {}}
    if description.columns:
        version["additionalPrinterColumns"] = [
            {
                "name": column.name,
                "type": column.type,
                "jsonPath": column.json_path,
                **({"priority": column.priority} if column.priority else {}),
            }
            for column in description.columns
        ]
    version["schema"] = {"openAPIV3Schema": root_schema(description.struct)}
    names: dict[str, Any] = {
        "kind": resource.kind,
        "listKind": f"{resource.kind}List",
        "plural": resource.plural,
        "singular": resource.kind.lower(),
    }
    if description.short_names:
        names["shortNames"] = list(description.short_names)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": resource.title,
            "annotations": {
                # Uninstalling the chart must not delete its users' objects.
                "helm.sh/resource-policy": "keep",
                REVISION_ANNOTATION: str(SCHEMA_REVISION),
                **description.annotations,
            },
        },
        "spec": {
            "group": resource.group,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "names": names,
            "versions": [version],
        },
    }


class _Dumper(yaml.SafeDumper):
    """Block style, but Kubernetes' own schemas in flow style, which keeps them short."""

    @override
    def ignore_aliases(self, data: object) -> bool:
        del data
        return True


def _flow(dumper: yaml.SafeDumper, data: Mapping[str, Any]) -> yaml.Node:
    return dumper.represent_mapping("tag:yaml.org,2002:map", dict(data), flow_style=True)


_Dumper.add_representer(BuiltInSchema, _flow)


def _yaml(document: dict[str, Any]) -> str:
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=_WIDTH)
