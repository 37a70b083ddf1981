"""Rights on a real kube-apiserver: what the table says of an account, and nothing else."""

from collections.abc import Iterable
from pathlib import Path

from tests.controlplane.client import ApiError, Object, RawClient, connection_of
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.kubeconfig import write_kubeconfig
from tutti.rights.rules import rules
from tutti.rights.table import ACCOUNTS, RELEASE, Account, Right

RBAC = "rbac.authorization.k8s.io"


async def grant(
    api: RawClient,
    user: str,
    rights: Iterable[Right],
    *,
    namespace: str = "default",
    release: str = "tutti",
    subject: Object | None = None,
) -> None:
    """Give `user` the rights: a ClusterRole, and a Role in the namespace.

    Args:
        api: A client that may do so.
        user: Name of the roles, and of the user unless there is a `subject`.
        rights: From the table.
        namespace: Where those rights hold that are namespaced.
        release: Stands for RELEASE in names.
        subject: The account that gets them, if not the user of that name.
    """
    rights = tuple(rights)
    subject_name = subject or {"apiGroup": RBAC, "kind": "User", "name": user}
    root = f"/apis/{RBAC}/v1"
    for kind, folder, granted in (
        ("ClusterRole", root, [one for one in rights if not one.namespaced]),
        ("Role", f"{root}/namespaces/{namespace}", [one for one in rights if one.namespaced]),
    ):
        role: Object = {"metadata": {"name": user}, "rules": _named(rules(granted), release)}
        binding: Object = {
            "metadata": {"name": user},
            "roleRef": {"apiGroup": RBAC, "kind": kind, "name": user},
            "subjects": [subject_name],
        }
        plural = f"{kind.lower()}s"
        await _put(api, f"{folder}/{plural}", user, role)
        await _put(api, f"{folder}/{plural.removesuffix('s')}bindings", user, binding)


def account(name: str) -> Account:
    """The account of that name."""
    return next(one for one in ACCOUNTS if one.name == name)


async def as_account(admin: Path, name: str) -> Path:
    """A kubeconfig with a token of one of the chart's accounts, on the same real API server.

    Made once for each control plane. `admin` is the administrator's, of `ControlPlane`.
    """
    made = admin.with_name(f"{name}.token.kubeconfig")
    if not made.is_file():
        server, ca_pem = connection_of(admin)
        async with RawClient(admin) as api:
            token = await account_token(
                api, name, account(name).rights, namespace="kube-system", release="tutti"
            )
        part = admin.with_name(f".{name}.token.kubeconfig")
        write_kubeconfig(part, server=server, ca_pem=ca_pem, credentials=token)
        part.replace(made)
    return made


async def service_account(
    control_plane: ControlPlane,
    api: RawClient,
    name: str,
    rights: Iterable[Right],
    *,
    namespace: str,
    release: str = "tutti",
) -> Path:
    """A kubeconfig with a token of a ServiceAccount in the namespace that has the rights."""
    token = await account_token(api, name, rights, namespace=namespace, release=release)
    return write_kubeconfig(
        control_plane.dir / f"{namespace}-{release}-{name}.kubeconfig",
        server=control_plane.server,
        ca_pem=control_plane.authority.certificate_pem,
        credentials=token,
        namespace=namespace,
    )


async def account_token(
    api: RawClient, name: str, rights: Iterable[Right], *, namespace: str, release: str
) -> str:
    """An hour's token of a ServiceAccount with the rights; roles are called as the chart's."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    await _put(api, path, name, {"metadata": {"name": name}})
    subject_name = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    await grant(
        api, f"{release}-{name}", rights, namespace=namespace, release=release, subject=subject_name
    )
    request: Object = {"spec": {"expirationSeconds": 3600}}
    return str((await api.create(f"{path}/{name}/token", request))["status"]["token"])


def _named(made: list[Object], release: str) -> list[Object]:
    return [
        rule | {"resourceNames": [name.replace(RELEASE, release) for name in names]}
        if (names := rule.get("resourceNames"))
        else rule
        for rule in made
    ]


async def _put(api: RawClient, path: str, name: str, manifest: Object) -> None:
    try:
        await api.create(path, manifest)
    except ApiError as error:
        if error.status != 409:
            raise
        await api.request("PUT", f"{path}/{name}", manifest)
