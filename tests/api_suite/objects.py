"""Objects that the suite creates."""

from tests.api_suite.client import Client, Obj
from tests.support.waiting import eventually

GROUP = "suite.tutti.dev"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def namespace(name: str, **labels: str) -> Obj:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def config_map(name: str = "", **metadata: object) -> Obj:
    own = {"name": name} if name else {}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**own, **metadata}}


def pod(name: str = "one", *, spec: Obj | None = None, **metadata: object) -> Obj:
    containers = {"containers": [{"name": "main", "image": "example/image:1"}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "spec": {**containers, **(spec or {})},
    }


def binding(name: str = "one", node: str = "node-a", **metadata: object) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, **metadata},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }


def owner(obj: Obj, **flags: bool) -> Obj:
    metadata = obj["metadata"]
    named = {"apiVersion": obj["apiVersion"], "kind": obj["kind"]}
    return {**named, "name": metadata["name"], "uid": metadata["uid"], **flags}


def crd(plural: str, *, status: bool = True, schema: Obj | None = None) -> Obj:
    """A definition under a plural of the test's own, with that as its kind, capitalised."""
    everything: Obj = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version: Obj = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema or everything},
        "subresources": {"status": {}} if status else {},
    }
    kind = plural.capitalize()
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": plural, "kind": kind},
            "versions": [version],
        },
    }


async def define(api: Client, definition: Obj, ns: str) -> str:
    """Creates a definition unless it is there, waits until it is served, returns its address."""
    made = await api.call("POST", DEFINITIONS, definition)
    assert made.status in (201, 409), made
    path = f"/apis/{GROUP}/v1/namespaces/{ns}/{definition['spec']['names']['plural']}"

    async def served() -> bool:
        return (await api.get(path)).status == 200

    await eventually(served)
    return path


async def undefine(api: Client, plural: str) -> None:
    await api.call("DELETE", f"{DEFINITIONS}/{plural}.{GROUP}")

    async def gone() -> bool:
        return (await api.get(f"{DEFINITIONS}/{plural}.{GROUP}")).status == 404

    await eventually(gone)
