"""A user with as many questions as the API service takes, beside a user with few, on a real API
server.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import pytest

from tests.controlplane.client import ApiError, RawClient
from tests.controlplane.cluster import ControlPlane
from tests.services.api.manifests import a_job, a_question, the_longest
from tests.services.api.scene import GROUP_PATH
from tests.support.waiting import eventually
from tests.tutti.up import running as up
from tests.tutti.up.gangs import make_nodes

pytestmark = [
    pytest.mark.integration,
    pytest.mark.certify,
    pytest.mark.slow,
    pytest.mark.timeout(300),
]

#: How long the greedy user asks.
_BESIDE_S: Final = 12.0
_RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"


class AsUser(RawClient):
    """A client of a user without groups."""

    def __init__(self, kubeconfig: Path, name: str) -> None:
        super().__init__(kubeconfig)
        # The API server authenticates the administrator, and passes this user on.
        self._headers = {**self._headers, "Impersonate-User": name}

    async def ask(self, path: str, body: bytes) -> int:
        """The status of a question's answer. Its JSON is neither made nor read here, which would
        take this process's time from the other user.
        """
        headers = {"Content-Type": "application/json"}
        async with self._open.post(path, data=body, headers=headers) as answer:
            await answer.read()
            return answer.status


async def _let_create_pods(api: RawClient, namespace: str, *users: str) -> None:
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["create", "list"]}
    role = {"metadata": {"name": "pods"}, "rules": [rule]}
    await api.create(f"{_RBAC}/namespaces/{namespace}/roles", role)
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "pods"}
    subjects = [
        {"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"} for user in users
    ]
    binding = {"metadata": {"name": "pods"}, "roleRef": reference, "subjects": subjects}
    await api.create(f"{_RBAC}/namespaces/{namespace}/rolebindings", binding)


async def _ask_again_and_again(
    work: Callable[[], Awaitable[int]], statuses: dict[int, int]
) -> None:
    while True:
        status = await work()
        statuses[status] = statuses.get(status, 0) + 1
        if status != 201:
            await asyncio.sleep(0.2)


async def _modest(client: RawClient, folder: str, for_s: float) -> dict[str, list[float]]:
    """How long each kind of answer took."""
    small = {
        "fits": json.loads(a_question("Fit", a_job("modest"))),
        "explanations": json.loads(a_question("Explanation", a_job("modest"))),
    }
    took: dict[str, list[float]] = {"gangs": [], "fits": [], "explanations": []}
    until_s = time.monotonic() + for_s
    while time.monotonic() < until_s:
        for kind, took_s in took.items():
            began_s = time.monotonic()
            if kind == "gangs":
                await client.get(f"{folder}/gangs")
            else:
                await client.create(f"{folder}/{kind}", small[kind])
            took_s.append(time.monotonic() - began_s)
    return took


def _p99(took_s: list[float]) -> float:
    return sorted(took_s)[int(len(took_s) * 0.99)]


async def test_a_greedy_user_of_the_api_delays_no_other_user_beyond_one_question(
    control_plane: ControlPlane,
    api: RawClient,
    namespace: str,
    empty_cluster: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(up, "READY_S", 150.0)
    await make_nodes(api)
    await _let_create_pods(api, namespace, "greedy", "modest")
    folder = f"{GROUP_PATH}/namespaces/{namespace}"
    kubeconfig = control_plane.admin_kubeconfig
    async with (
        up.suite(kubeconfig, tmp_path, "--no-webhook", "--api") as running,
        AsUser(kubeconfig, "greedy") as greedy,
        AsUser(kubeconfig, "modest") as modest,
    ):
        await running.wait_ready()

        async def answered() -> bool:
            await _modest(modest, folder, 0.1)
            return True

        async def served() -> bool:
            try:
                return await answered()
            except ApiError as error:
                raise AssertionError(str(error)) from error

        await eventually(served, timeout_s=90, because="questions are answered")
        alone = await _modest(modest, folder, 3.0)
        longest = the_longest("Explanation")
        gangs = a_question(
            "Fit", *(a_job(f"g{number}", tasks=40, replicas=10) for number in range(50))
        )
        statuses: dict[int, int] = {}
        works = [
            lambda: greedy.ask(f"{folder}/explanations", longest),
            lambda: greedy.ask(f"{folder}/fits", gangs),
        ] * 12
        tasks = [asyncio.create_task(_ask_again_and_again(work, statuses)) for work in works]
        try:
            await asyncio.sleep(1)
            beside = await _modest(modest, folder, _BESIDE_S)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    #: Of the modest user, by kind: answers, and their p99 alone and beside the greedy user.
    found = {kind: (len(took), _p99(alone[kind]), _p99(took)) for kind, took in beside.items()}
    sys.stderr.write(f"{found} {statuses}\n")
    assert statuses.get(429, 0) > 0, "more than eight questions of one user are refused"
    assert set(statuses) <= {201, 422, 429, 504}
    assert _p99(beside["gangs"]) < 2.0, found
    assert _p99(beside["explanations"]) < 5.0, found
    assert _p99(beside["fits"]) < 10.0, found
