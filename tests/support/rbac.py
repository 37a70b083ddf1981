"""Rights for one user of a real kube-apiserver: what a service says it needs, and nothing else."""

from collections.abc import Sequence

from tests.controlplane.client import ApiError, Object, RawClient

RBAC = "rbac.authorization.k8s.io"


async def grant(api: RawClient, user: str, rights: Sequence[tuple[str, str, list[str]]]) -> None:
    """Give `user` the rights (API group, resource or subresource, verbs) in all namespaces."""
    rules = [
        {"apiGroups": [group], "resources": [resource], "verbs": verbs}
        for group, resource, verbs in rights
    ]
    role: Object = {"metadata": {"name": user}, "rules": rules}
    binding: Object = {
        "metadata": {"name": user},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": user},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": user}],
    }
    for plural, manifest in (("clusterroles", role), ("clusterrolebindings", binding)):
        path = f"/apis/{RBAC}/v1/{plural}"
        try:
            await api.create(path, manifest)
        except ApiError as error:
            if error.status != 409:
                raise
            await api.request("PUT", f"{path}/{user}", manifest)
