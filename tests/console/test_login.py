"""Users log in to the console with OIDC through an ingress: a real provider, API server, proxy and
browser. Two users see different gangs, and each way in which a login ends is a clear page.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest

from tests.console.browser import Tab, a_browser, a_tab
from tests.console.login import (
    CLIENT,
    NGINX,
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
from tests.services.api.scene import GROUP_PATH, Scene, a_scene, verdict
from tests.support.debian import lacking
from tests.support.free_ports import free_port
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
#: Ends the session with its token.
ENDING: Final = f"--cookie-expire={TOKEN_S}s"


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
async def scene(cluster: Cluster, nats_server: NatsServer, tmp_path: Path) -> AsyncIterator[Scene]:
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


@asynccontextmanager
async def at_timeline(browser: Any, cluster: Cluster) -> AsyncIterator[Tab]:
    """A tab of a user who has logged in, with a page that asks for lists only."""
    async with visit(browser, cluster) as tab:
        await log_in(tab.page, ADA)
        await tab.page.click("nav >> text=Timeline")
        await tab.page.wait_for_selector("h1 .badge.good")
        yield tab


def proxied(program: Path, cluster: Cluster, scene: Scene, *more: str, **options: Any) -> Any:
    """oauth2-proxy in front of the scene's API service."""
    return oauth2_proxy(program, cluster.provider, scene.port, cluster.ca, *more, **options)


async def test_two_users_log_in_and_each_sees_the_gangs_of_his_namespaces(
    browser: Any, cluster: Cluster, scene: Scene, oauth2_proxy_program: Path
) -> None:
    async with (
        proxied(oauth2_proxy_program, cluster, scene, RENEWING),
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
            # The console has no token to forget.
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


async def test_a_session_is_renewed_while_the_page_is_open(
    browser: Any, cluster: Cluster, scene: Scene, oauth2_proxy_program: Path
) -> None:
    async with (
        proxied(oauth2_proxy_program, cluster, scene, RENEWING),
        at_timeline(browser, cluster) as tab,
    ):
        for _ in range(5):
            await tab.page.wait_for_timeout(TOKEN_S * 500)
            assert await tab.page.locator("h1 .badge.good").count() == 1, await tab.text()
            assert await tab.page.locator(".ended").count() == 0
        assert not tab.complaints


async def test_a_login_that_ends_is_said_and_another_leads_back_to_the_page(
    browser: Any, cluster: Cluster, scene: Scene, oauth2_proxy_program: Path
) -> None:
    async with (
        proxied(oauth2_proxy_program, cluster, scene, ENDING),
        visit(browser, cluster) as tab,
    ):
        await log_in(tab.page, ADA)
        await ended_and_begun_again(tab)


async def test_a_proxy_that_passes_an_old_token_on_is_named(
    browser: Any, cluster: Cluster, scene: Scene, oauth2_proxy_program: Path
) -> None:
    """oauth2-proxy itself keeps a session for a week, and does not look at its token."""
    async with (
        proxied(oauth2_proxy_program, cluster, scene),
        at_timeline(browser, cluster) as tab,
    ):
        # The API service keeps what it has learned about a token for a minute.
        await tab.page.wait_for_selector(".ended", timeout=(TOKEN_S + 90) * 1000)
        assert "The cluster does not accept the token of your login." in await tab.text()
        await tab.page.click("text=Log in again")
        await tab.page.wait_for_selector("code")
        assert "/oauth2/sign_out" in await tab.text()
        assert await tab.page.locator("input[type=password]").count() == 0
        await tab.page.goto(f"{tab.origin}/oauth2/sign_out?rd=%2Fconsole%2F")
        await log_in(tab.page, ADA)
        await tab.page.wait_for_selector("nav")
        assert not tab.complaints


async def ended_and_begun_again(tab: Tab) -> None:
    """The login ends while a page is open, and the user logs in again."""
    await tab.page.click("nav >> text=Gangs")
    await tab.page.click("tbody >> text=train")
    await tab.instant_of("Inqueue")
    # The token ends, and the API service is asked for decisions every two seconds.
    await tab.page.wait_for_selector(".ended", timeout=(TOKEN_S + 30) * 1000)
    text = await tab.text()
    assert "Your login has ended." in text
    assert "not current" in text
    # The last known state stays.
    assert "Inqueue" in text
    assert await tab.page.locator("input[type=password]").count() == 0
    await tab.page.screenshot(path=PICTURES / "login-ended.png")
    await tab.page.click("text=Log in again")
    await log_in(tab.page, ADA)
    await tab.page.wait_for_selector("h1 .badge.good")
    assert await tab.page.locator("h1").inner_text() == "vision/train live"
    assert tab.page.url.endswith("/console/#/gangs/vision/train")


async def test_a_login_in_another_tab_is_one_in_this_tab(
    browser: Any, cluster: Cluster, scene: Scene, oauth2_proxy_program: Path
) -> None:
    async with (
        proxied(oauth2_proxy_program, cluster, scene, RENEWING),
        at_timeline(browser, cluster) as tab,
    ):
        other = await tab.page.context.new_page()
        # As the page of oauth2-proxy for signing out: it forgets the session of the browser.
        await other.goto(f"{tab.origin}/oauth2/sign_out")
        await tab.page.wait_for_selector(".ended")
        await other.goto(f"{tab.origin}/console/")
        await log_in(other, ADA)
        await tab.page.wait_for_selector("h1 .badge.good")
        assert await tab.page.locator(".ended").count() == 0


async def test_behind_nginx_a_login_works_and_its_end_is_said(
    browser: Any, cluster: Cluster, scene: Scene, oauth2_proxy_program: Path, tmp_path: Path
) -> None:
    if why := lacking({NGINX: "nginx-light"}):
        pytest.skip(why)
    provider, port = cluster.provider, free_port()
    async with (
        proxied(
            oauth2_proxy_program,
            cluster,
            scene,
            ENDING,
            "--set-authorization-header=true",
            "--reverse-proxy=true",
            port=port,
        ),
        nginx(provider, port, scene.port, cluster.ca, tmp_path),
        visit(browser, cluster) as tab,
    ):
        await log_in(tab.page, ADA)
        # nginx redirects requests for data, too, to the provider's form.
        await ended_and_begun_again(tab)
        # Its answers are not kept back.
        await scene.publish(verdict("vision", "train", epoch=3, phase="Running", running=3))
        await tab.instant_of("Running")


async def test_a_user_without_rights_reads_which_are_missing(
    browser: Any, cluster: Cluster, scene: Scene, oauth2_proxy_program: Path
) -> None:
    async with (
        proxied(oauth2_proxy_program, cluster, scene, RENEWING),
        visit(browser, cluster, "#/gangs") as tab,
    ):
        await log_in(tab.page, EVE)
        none = f"user {PREFIX}{EVE.email} may list pods in no namespace that has gangs"
        await tab.page.wait_for_selector("nav")
        await tab.instant_of(none)
        await tab.page.click("nav >> text=Gangs")
        await tab.instant_of(none)
        assert "live" in await tab.text()
        assert "No gang that you may see is like this." in await tab.text()
        await tab.page.screenshot(path=PICTURES / "login-without-rights.png")
        # A right that is missing does not make a page old.
        await tab.page.click("nav >> text=Map")
        await tab.instant_of(f"user {PREFIX}{EVE.email} cannot list nodes")
        assert "not current" not in await tab.text()
        assert not tab.complaints


async def test_a_token_for_another_audience_is_refused(
    browser: Any, cluster: Cluster, scene: Scene, oauth2_proxy_program: Path, tmp_path: Path
) -> None:
    provider = cluster.provider
    url = f"https://127.0.0.1:{scene.port}{GROUP_PATH}/gangs"
    statuses = {
        client: await status_of(
            cluster.ca, url, {"Authorization": f"Bearer {await provider.token(ADA, client)}"}
        )
        for client in (CLIENT, OTHER_CLIENT)
    }
    assert statuses == {CLIENT: 200, OTHER_CLIENT: 401}
    async with (
        proxied(oauth2_proxy_program, cluster, scene, client=OTHER_CLIENT),
        visit(browser, cluster) as tab,
    ):
        await log_in(tab.page, ADA)
        await tab.page.wait_for_selector("text=Log in again")
        text = await tab.text()
        assert "The cluster does not accept the token of your login." in text
        assert "audience" in text
        assert await tab.page.locator("input[type=password]").count() == 0
        await tab.page.screenshot(path=PICTURES / "login-refused.png")
    # For administrators.
    log = (tmp_path / "api.log").read_text()
    assert "the API server does not accept a bearer token" in log
    assert OTHER_CLIENT in log


async def test_a_token_of_the_cluster_logs_in_at_the_port_of_the_api_service(
    browser: Any, cluster: Cluster, scene: Scene
) -> None:
    account = f"viewer-{free_port()}"
    await scene.kubectl("create", "serviceaccount", account, "-n", "robotics")
    await scene.kubectl(
        "create",
        "rolebinding",
        account,
        "--role=viewers",
        f"--serviceaccount=robotics:{account}",
        "-n",
        "robotics",
    )
    token = (await scene.kubectl("create", "token", account, "-n", "robotics")).strip()
    async with a_tab(browser, f"https://127.0.0.1:{scene.port}") as tab:
        await tab.page.goto(f"{tab.origin}/console/#/gangs")
        await tab.page.fill("#token", "not a token of this cluster".replace(" ", "-"))
        await tab.page.click("button[type=submit]")
        await tab.page.wait_for_selector("text=The token was refused.")
        await tab.page.fill("#token", f"Bearer {token}")
        await tab.page.click("button[type=submit]")
        await tab.page.wait_for_selector("nav")
        await tab.instant_of("robotics/walk")
        assert "vision/train" not in await tab.text()
        await tab.page.click("text=Log out")
        await tab.page.wait_for_selector("#token")
        assert not tab.complaints
        assert not tab.foreign
