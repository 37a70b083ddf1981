"""Users log in to the console with OIDC through an ingress: a real provider, API server, proxy and
browser. Two users see different gangs, and each way in which a login ends is a clear page.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest

from tests.console.browser import Tab, a_browser, a_tab
from tests.console.login import (
    CLIENT,
    OTHER_CLIENT,
    PREFIX,
    TOKEN_S,
    Account,
    Provider,
    log_in,
    nginx,
    oauth2_proxy,
    status_of,
)
from tests.console.toolchain import require_browser
from tests.controlplane.certificates import Authority
from tests.controlplane.client import RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.components import ControlPlaneOptions
from tests.controlplane.fixtures import CRDS_DIR
from tests.controlplane.nodes import create_namespace, create_nodes
from tests.services.api.scene import GROUP_PATH, Scene, a_scene, free_port, verdict
from tests.support.debian import lacking
from tests.support.packages import ROOT
from tests.support.rbac import RBAC
from tests.support.waiting import eventually
from tutti.nats_server import NatsServer

pytestmark = [pytest.mark.certify, pytest.mark.slow, pytest.mark.timeout(600)]

PICTURES: Final = ROOT / "build" / "console"
#: In a group that may list the pods of `vision`.
ADA: Final = Account("ada@example.org", ("vision-team", "everybody"))
#: May list the pods of `robotics` by name.
BOB: Final = Account("bob@example.org", ("everybody",))
#: Has no rights but those of every user.
EVE: Final = Account("eve@example.org")
#: Renews the session before the token ends.
RENEWING: Final = f"--cookie-refresh={TOKEN_S // 2}s"


class Cluster:
    """The API server that trusts the provider, and files of the module."""

    def __init__(self, control_plane: ControlPlane, provider: Provider, folder: Path) -> None:
        self.control_plane = control_plane
        self.provider = provider
        authority = Authority("service-ca")
        pair = authority.server(["127.0.0.1", "tutti-api.kube-system.svc"])
        #: The API service's certificate.
        self.ca, self.certificate, self.key = (
            folder / name for name in ("service-ca.crt", "service.crt", "service.key")
        )
        self.ca.write_bytes(authority.certificate_pem)
        self.certificate.write_bytes(pair.certificate_pem)
        self.key.write_bytes(pair.key_pem)


@pytest.fixture(scope="module")
def cluster(dex_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    require_browser()
    PICTURES.mkdir(parents=True, exist_ok=True)
    folder = tmp_path_factory.mktemp("login")
    provider = Provider(folder)
    options = ControlPlaneOptions(
        apiserver_args=(f"--authentication-config={provider.authentication()}",)
    )
    with (
        ControlPlane(options) as running,
        provider.running(dex_program, (ADA, BOB, EVE), running.etcd_server),
    ):
        running.install_crds(CRDS_DIR)
        asyncio.run(_prepare(running, provider))
        yield Cluster(running, provider, folder)


async def _prepare(control_plane: ControlPlane, provider: Provider) -> None:
    """Nodes, namespaces, and the users' rights. Returns when the API server knows the provider."""
    async with RawClient(control_plane.admin_kubeconfig) as api:
        await create_nodes(api, 2)
        for namespace, kind, name in (
            ("vision", "Group", f"{PREFIX}vision-team"),
            ("robotics", "User", f"{PREFIX}{BOB.email}"),
        ):
            await create_namespace(api, namespace)
            await allow_pods(api, namespace, kind, name)
        # It asks a provider that did not answer again after 10 s.
        await eventually(
            lambda: _is_known(api, provider), timeout_s=60, because="the API server knows users"
        )


async def _is_known(api: RawClient, provider: Provider) -> bool:
    try:
        token = await provider.token(ADA, CLIENT)
    except aiohttp.ClientConnectionError:
        return False
    review = await api.create(
        "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": token}}
    )
    return bool(review["status"].get("authenticated"))


async def allow_pods(api: RawClient, namespace: str, kind: str, name: str) -> None:
    """Allow a user or a group to list the pods of a namespace."""
    root = f"/apis/{RBAC}/v1/namespaces/{namespace}"
    role = {"metadata": {"name": "viewers"}}
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]
    await api.create(f"{root}/roles", {**role, "rules": rules})
    await api.create(
        f"{root}/rolebindings",
        {
            **role,
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "viewers"},
            "subjects": [{"apiGroup": RBAC, "kind": kind, "name": name}],
        },
    )


@pytest.fixture
async def scene(
    cluster: Cluster, nats_server: NatsServer, tmp_path: Path
) -> AsyncIterator[Scene]:
    """The API service with a gang of each team."""
    flags = (
        f"--tls-cert-file={cluster.certificate}",
        f"--tls-key-file={cluster.key}",
        f"--ca-file={cluster.ca}",
    )
    control_plane = cluster.control_plane
    async with (
        RawClient(control_plane.admin_kubeconfig) as api,
        a_scene(control_plane, api, nats_server, tmp_path, flags) as scene,
    ):
        await scene.publish(verdict("vision", "train"), verdict("robotics", "walk"))
        await scene.sees("robotics/walk", "vision/train")
        yield scene


@pytest.fixture
async def browser() -> AsyncIterator[Any]:
    async with a_browser() as found:
        yield found


@asynccontextmanager
async def visit(browser: Any, cluster: Cluster, route: str = "") -> AsyncIterator[Tab]:
    """A tab that opens the address for users, without a session."""
    origin = cluster.provider.console_origin
    async with a_tab(browser, origin) as tab:
        tab.page.set_default_timeout(20_000)
        await tab.page.goto(f"{origin}/console/{route}")
        yield tab


async def test_two_users_log_in_and_each_sees_the_gangs_of_his_namespaces(
    browser: Any, cluster: Cluster, scene: Scene, oauth2_proxy_program: Path
) -> None:
    proxy = oauth2_proxy(
        oauth2_proxy_program, cluster.provider, scene.port, cluster.ca, RENEWING
    )
    async with (
        proxy,
        visit(browser, cluster) as ada,
        visit(browser, cluster) as bob,
    ):
        for tab, account, own, foreign in (
            (ada, ADA, "vision/train", "robotics/walk"),
            (bob, BOB, "robotics/walk", "vision/train"),
        ):
            await log_in(tab.page, account)
            await tab.page.click("nav >> text=Gangs")
            await tab.instant_of(own)
            assert foreign not in await tab.text()
            # As behind any ingress that authenticates: the console has no token to forget.
            assert await tab.page.locator("text=Log out").count() == 0
            assert not tab.complaints
        await ada.page.screenshot(path=PICTURES / "login-gangs.png")
        # The watch is passed on as it is written.
        await scene.publish(
            verdict("vision", "train", epoch=3, phase="Running", running=3, pending=0),
            verdict("vision", "later", epoch=3),
        )
        await asyncio.gather(ada.instant_of("3/3"), ada.instant_of("vision/later"))
        assert "vision" not in await bob.text()


async def test_who_may_not_list_nodes_reads_so_and_the_page_is_current(
    browser: Any, cluster: Cluster, scene: Scene, oauth2_proxy_program: Path
) -> None:
    proxy = oauth2_proxy(
        oauth2_proxy_program, cluster.provider, scene.port, cluster.ca, RENEWING
    )
    async with proxy, visit(browser, cluster) as tab:
        await log_in(tab.page, BOB)
        await tab.page.wait_for_selector("nav")
        await tab.instant_of("cannot list nodes")
        await tab.page.screenshot(path=PICTURES / "login-overview.png")
        print(await tab.text())
        await tab.page.click("nav >> text=Map")
        await tab.instant_of("cannot list nodes")
        print(await tab.text())


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
