"""What docs/client.md shows, on a real API server with a whole `tutti up` and fake kubelets."""

import asyncio
import doctest
import io
import re
from pathlib import Path

import pytest
import yaml

from tests.controlplane.client import RawClient
from tests.controlplane.cluster import ControlPlane
from tests.controlplane.kubelet import FakeKubelet
from tests.controlplane.nodes import NodeShape, create_nodes
from tests.support.background import in_background
from tests.tutti.up import running as up

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(400)]

PAGE = Path(__file__).parents[3] / "docs" / "client.md"
QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"
_BLOCK = re.compile(r"^```pycon\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def of_namespace(kubeconfig: Path, namespace: str, path: Path) -> Path:
    """The same kubeconfig, with another namespace in its context."""
    config = yaml.safe_load(kubeconfig.read_text())
    config["contexts"][0]["context"]["namespace"] = namespace
    path.write_text(yaml.safe_dump(config))
    return path


def played(page: str) -> str:
    """Failures of the page's examples, in one session; "" without any."""
    blocks = _BLOCK.findall(page)
    assert len(blocks) >= 4
    examples = "\n".join(blocks)
    test = doctest.DocTestParser().get_doctest(examples, {}, "client.md", str(PAGE), 0)
    out = io.StringIO()
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False).run(test, out=out.write)
    return out.getvalue()


async def test_the_page_shows_what_happens(
    control_plane: ControlPlane,
    api: RawClient,
    namespace: str,
    empty_cluster: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(up, "READY_S", 150.0)
    admin = control_plane.admin_kubeconfig
    kubeconfig = of_namespace(admin, namespace, tmp_path / "kubeconfig")
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    await create_nodes(api, 2, NodeShape())
    # Pods of other tests may be left in the queue `default`.
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"}
    await api.create(QUEUES, queue | {"metadata": {"name": "research"}})
    flags = ("--no-webhook", "--api")
    async with (
        up.suite(admin, tmp_path, *flags) as running,
        in_background(FakeKubelet(api).run(), name="kubelet"),
    ):
        await running.wait_ready()
        failures = await asyncio.to_thread(played, PAGE.read_text())
    await api.delete(f"{QUEUES}/research")
    assert not failures, failures
