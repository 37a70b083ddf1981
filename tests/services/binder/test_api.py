"""The binder reports the API server unreachable and reachable again without a decision."""

import asyncio
from pathlib import Path
from typing import cast

from services.binder.api import KubePods
from shared.kube.client import KubeClient
from shared.kube.credentials import load
from shared.kube.errors import RequestTimeout
from shared.kube.transport import Reply
from shared.pacing import Backoff
from tests.services.binder.core.samples import make_decision
from tests.support.scripted_apiserver import ScriptedApiServer, answer, scripted_apiserver

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: a
contexts: [{{name: a, context: {{cluster: a, user: a}}}}]
clusters: [{{name: a, cluster: {{server: "{url}"}}}}]
users: [{{name: a, user: {{}}}}]
"""


async def client_of(server: ScriptedApiServer, folder: Path) -> KubeClient:
    path = folder / "kubeconfig"
    path.write_text(KUBECONFIG.format(url=server.url))
    return KubeClient(await load(str(path)))


async def test_an_outage_ends_when_the_api_server_answers_and_not_with_the_next_decision(
    tmp_path: Path,
) -> None:
    """An upgrade of a quiet cluster waited for a binder that stayed unready after an outage."""
    health: asyncio.Queue[str] = asyncio.Queue()
    async with scripted_apiserver() as server, await client_of(server, tmp_path) as client:
        pods = KubePods(
            client,
            timeout_s=0.05,
            on_health=health.put_nowait,
            backoff=Backoff(base_s=0.0, max_s=0.0),
        )
        asking = asyncio.create_task(pods.watch_reachable())
        binding = make_decision(1).bindings[0]
        for _ in range(3):
            assert (await pods.bind(binding, {}, dry_run=False)).status == 0
        async with asyncio.timeout(30):
            assert "no answer" in await health.get()
            # More than one: on a busy machine an answer may come too late.
            server.then(*[answer(200, {"gitVersion": "v1.36.0"})] * 1000)
            while await health.get():
                pass  # "" is health
        asking.cancel()


class Silent:
    """In place of a client: answers some requests, and not the rest."""

    def __init__(self, *answered: bool) -> None:
        self._answered = list(answered)

    async def bind(self, *_: object, **_options: object) -> Reply:
        if not self._answered.pop(0):
            raise RequestTimeout("no answer")
        return Reply(201, b"", {})


async def test_an_answer_ends_a_series_of_requests_without_one() -> None:
    health: list[str] = []
    client = cast("KubeClient", Silent(False, False, True, False, False))
    pods = KubePods(client, timeout_s=1.0, on_health=health.append)
    for _ in range(5):
        await pods.bind(make_decision(1).bindings[0], {}, dry_run=False)
    assert not health
