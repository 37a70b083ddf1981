"""`tutti job logs` at an API server that has logs: the embedded one has no kubelets to ask."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from click.testing import CliRunner, Result

from tutti.api.objects import Object
from tutti.cli import main
from tutti.job.logs import lines

pytestmark = pytest.mark.integration

JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"


def pod(name: str, index: int, *containers: str, state: str = "running") -> Object:
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "resourceVersion": "1",
            "labels": {"volcano.sh/task-spec": "w", "volcano.sh/task-index": str(index)},
        },
        "spec": {"containers": [{"name": each} for each in containers]},
        "status": {"containerStatuses": [{"name": c, "state": {state: {}}} for c in containers]},
    }


def job(phase: str) -> Object:
    return {
        "metadata": {"name": "train", "namespace": "default", "uid": "u", "resourceVersion": "1"},
        "status": {"state": {"phase": phase}},
    }


class Server:
    """Serves one Job, its pods and their logs; what it was asked for is remembered."""

    def __init__(self) -> None:
        self.pods: list[Object] = []
        self.logs: dict[tuple[str, str], list[bytes]] = {}
        self.asked: list[dict[str, str]] = []
        self.selectors: set[str] = set()
        #: Changes of the watches, by kind.
        self.changes: dict[str, asyncio.Queue[Object]] = {
            "jobs": asyncio.Queue(),
            "pods": asyncio.Queue(),
        }
        self.read: set[str] = set()
        self.phase = "Running"

    async def get_job(self, _: web.Request) -> web.Response:
        return web.json_response(job(self.phase))

    async def collection(self, request: web.Request) -> web.StreamResponse:
        kind = request.path.rpartition("/")[2]
        if kind == "pods":
            self.selectors.add(request.query["labelSelector"])
        if "watch" not in request.query:
            items = self.pods if kind == "pods" else [job(self.phase)]
            return web.json_response({"metadata": {"resourceVersion": "1"}, "items": items})
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            event = {"type": "MODIFIED", "object": await self.changes[kind].get()}
            await response.write(json.dumps(event).encode() + b"\n")

    async def log(self, request: web.Request) -> web.StreamResponse:
        name, container = request.match_info["name"], request.query["container"]
        self.asked.append(dict(request.query))
        if (name, container) not in self.logs:
            answer = {"kind": "Status", "message": "it is waiting to start", "code": 400}
            return web.json_response(answer, status=400)
        response = web.StreamResponse()
        await response.prepare(request)
        for chunk in self.logs[name, container]:
            await response.write(chunk)
        self.read.add(name)
        if request.query.get("follow") and len(self.read) == len(self.logs):
            self.phase = "Completed"
            self.changes["jobs"].put_nowait(job(self.phase))
        elif request.query.get("follow"):
            self.changes["pods"].put_nowait(pod("w-1", 1, "c"))
        return response


@pytest.fixture
async def server() -> AsyncIterator[tuple[Server, str]]:
    served = Server()
    app = web.Application()
    app.router.add_get(f"{JOBS}/train", served.get_job)
    app.router.add_get(JOBS, served.collection)
    app.router.add_get(PODS, served.collection)
    app.router.add_get(PODS + "/{name}/log", served.log)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield served, site.name.replace("localhost", "127.0.0.1")
    await runner.cleanup()


@pytest.fixture
def kubeconfig_file(server: tuple[Server, str], tmp_path: Path) -> Path:
    path = tmp_path / "kubeconfig"
    given = {
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": server[1]}}],
        "users": [{"name": "c", "user": {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    }
    path.write_text(json.dumps(given))
    return path


async def logs(kubeconfig: Path, *flags: str) -> Result:
    words = ["job", "logs", "train", "-k", str(kubeconfig), *flags]
    return await asyncio.to_thread(CliRunner().invoke, main, words)


async def test_logs_come_pod_after_pod_in_the_order_of_indices_and_say_whose_they_are(
    server: tuple[Server, str], kubeconfig_file: Path
) -> None:
    served, _ = server
    served.pods = [pod("w-10", 10, "c"), pod("w-2", 2, "c", "side")]
    served.logs = {
        ("w-10", "c"): [b"ten\n"],
        ("w-2", "c"): [b"one li", b"ne\n\nlast, unfin\xff"],
        ("w-2", "side"): [],
    }
    done = await logs(kubeconfig_file, "--tail", "5", "--since", "2m")
    assert (done.exit_code, done.output) == (
        0,
        "[w-2/c] one line\n[w-2/c] \n[w-2/c] last, unfin\N{REPLACEMENT CHARACTER}\n[w-10/c] ten\n",
    )
    assert {"container": "side", "tailLines": "5", "sinceSeconds": "120"} in served.asked


async def test_a_single_log_has_no_prefix_and_pods_are_chosen_by_task_and_index(
    server: tuple[Server, str], kubeconfig_file: Path
) -> None:
    served, _ = server
    served.pods = [pod("w-2", 2, "c")]
    served.logs = {("w-2", "c"): [b"hello\n"]}
    done = await logs(kubeconfig_file, "--task", "w", "--index", "2")
    assert (done.exit_code, done.output) == (0, "hello\n")
    expected = "volcano.sh/job-name=train,volcano.sh/task-spec=w,volcano.sh/task-index=2"
    assert served.selectors == {expected}


async def test_following_takes_later_pods_too_and_ends_with_the_job(
    server: tuple[Server, str], kubeconfig_file: Path
) -> None:
    """The second pod appears when the first one's log has been read; then the Job is done."""
    served, _ = server
    served.pods = [pod("w-0", 0, "c"), pod("w-1", 1, "c", state="waiting")]
    served.logs = {("w-0", "c"): [b"zero\n"], ("w-1", "c"): [b"one\n"]}
    done = await logs(kubeconfig_file, "-f")
    assert (done.exit_code, done.output) == (0, "[w-0/c] zero\n[w-1/c] one\n")
    assert all(asked["follow"] == "true" for asked in served.asked)


async def test_a_container_without_log_is_named_and_keeps_no_other_from_being_read(
    server: tuple[Server, str], kubeconfig_file: Path
) -> None:
    served, _ = server
    served.pods = [pod("w-0", 0, "c"), pod("w-1", 1, "c")]
    served.logs = {("w-1", "c"): [b"one\n"]}
    done = await logs(kubeconfig_file)
    assert (done.exit_code, done.stdout) == (2, "[w-1/c] one\n")
    assert "w-0/c: no log: it is waiting to start" in done.stderr
    followed = await logs(kubeconfig_file, "-f")
    assert (followed.exit_code, followed.stdout) == (0, "[w-1/c] one\n")
    assert "[w-0/c] no log: it is waiting to start" in followed.stderr


async def test_a_job_without_pods_says_so(
    server: tuple[Server, str], kubeconfig_file: Path
) -> None:
    done = await logs(kubeconfig_file)
    assert done.exit_code == 2
    assert "no pod of Job train matches" in done.stderr


async def test_chunks_become_lines_wherever_they_are_cut() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for chunk in (b"a", b"b\n\nc\xc3", b"\xa4\n", b"d"):
            yield chunk

    assert [line async for line in lines(chunks())] == ["ab", "", "c\u00e4", "d"]
