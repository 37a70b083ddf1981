"""What operators type at a running suite: status, top, timeline, and a bundle that is replayed."""

import asyncio
import signal
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import msgspec
import pytest

from shared.contracts.verdicts import Verdict
from tests.controlplane.client import RawClient
from tests.support.waiting import eventually
from tests.tutti.up.gangs import bound, make_gang
from tests.tutti.up.running import TUTTI, suite, tutti
from tutti.bundle_command import Manifest

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(180)]


async def two_reports(data: Path) -> list[dict[str, Any]]:
    """The first two of `tutti status --watch`, which is then interrupted."""
    process = await asyncio.create_subprocess_exec(
        str(TUTTI),
        "status",
        "--watch",
        "--interval=0.1",
        "-o",
        "json",
        f"--data-dir={data}",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    async with asyncio.timeout(60):
        lines = [await process.stdout.readline() for _ in range(2)]
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 0
    return [msgspec.json.decode(line) for line in lines]


async def test_what_operators_type_shows_a_suite_and_its_bundle_replays(
    client: RawClient, kubeconfig: Path, tmp_path: Path
) -> None:
    data, where = tmp_path / "up" / "data", f"--kubeconfig={kubeconfig}"
    async with suite(kubeconfig, tmp_path / "up", "--no-webhook", "--api") as running:
        await running.wait_ready()
        # The standby's recording begins with a snapshot; the records to be replayed come after it.
        await eventually(lambda: any(data.glob("recordings/*/*.tutti-recording")), timeout_s=40.0)
        await make_gang(client, "default", "train")
        await make_gang(client, "default", "huge", members=2, least=500)
        await bound(client, "default", "train")
        for index in range(3):
            await client.delete(f"/api/v1/namespaces/default/pods/train-{index}")

        async def read_history() -> dict[str, Any]:
            status, out, errors = await tutti("timeline", "-o", "json", where)
            assert status == 0, errors
            found: dict[str, Any] = msgspec.json.decode(out)
            assert {one["gang"]: one["end"] for one in found["stays"]} == {"default/train": "gone"}
            now = {one["gang"] for one in found["waits"] if "ended" not in one}
            assert now == {"default/huge", "default/train"}
            return found

        found = await eventually(read_history, timeout_s=40.0)
        assert sum(one["pods"] for one in found["stays"]) == 3
        assert all(one["began"] <= one["ended"] for one in found["stays"])
        snapshot = tmp_path / "timeline.svg"
        status, _, errors = await tutti("timeline", f"--svg={snapshot}", where)
        assert status == 0, errors
        assert ET.parse(snapshot).getroot().tag.endswith("svg")

        first, second = await two_reports(data)
        assert first["ready"] or second["ready"], "one answer may be late"
        assert second["gangs"]
        assert second["decisionsPerSecond"] >= 0
        status, out, errors = await tutti("top", "queues", where)
        assert status == 0, errors
        assert "default" in out
        status, out, errors = await tutti("top", "nodes", where)
        assert status == 0, errors
        assert "node-1" in out

        await eventually(
            lambda: recorded(data), timeout_s=40.0, because="the recording is on the disk"
        )
        bundle = tmp_path / "report.tar.gz"
        flags = (f"--data-dir={data}", where)
        status, out, errors = await tutti("bundle", str(bundle), *flags)
        assert status == 0, errors
    check_bundle(bundle, tmp_path)


def recorded(data: Path) -> bool:
    """Whether what was decided of the gang can be read in the recording."""
    return any(b"default/train" in path.read_bytes() for path in data.rglob("*.tutti-recording"))


def check_bundle(bundle: Path, folder: Path) -> None:
    """The bundle lists its content, and its recording replays to the same decisions."""
    with tarfile.open(bundle) as tar:
        tar.extractall(folder, filter="data")
    root = folder / "report"
    manifest = msgspec.json.decode((root / "manifest.json").read_bytes(), type=Manifest)
    assert manifest.missing == ()
    assert {one.path for one in manifest.files} == {
        path.relative_to(root).as_posix()
        for path in root.rglob("*")
        if path.is_file() and path.name != "manifest.json"
    }
    settings = msgspec.json.decode((root / "settings.json").read_bytes())
    assert settings["binder-0"]["posts_max"] == "32"
    verdicts = [
        msgspec.json.decode(line, type=Verdict)
        for line in (root / "verdicts.jsonl").read_bytes().splitlines()
    ]
    assert "huge" in {one.name for one in verdicts}
    assert b"cycle_seconds_bucket" in (root / "metrics" / "gang-planner-0.txt").read_bytes()
    assert (root / "logs" / "binder-0.log").read_bytes()
    segments = list(root.glob("recordings/*/*"))
    (last,) = [path for path in segments if b"default/train" in path.read_bytes()]
    done = subprocess.run(
        [sys.executable, "-m", "tutti.cli", "replay", str(last)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    equal = int(done.stdout.split()[0])
    assert equal > 0
    assert "0 differ" in done.stdout
