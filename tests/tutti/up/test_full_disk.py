"""`tutti up` on a real API server, whose data folder is full, removed or replaced for a while.

All but one need root, to mount a small tmpfs.
"""

import asyncio
import shutil
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from tests.controlplane.client import RawClient
from tests.controlplane.cluster import ControlPlane
from tests.support.small_disk import fill, mount_disk, small_disk
from tests.support.waiting import eventually
from tests.tutti.up.gangs import bound, make_gang, make_nodes, placed
from tests.tutti.up.running import suite, tutti

__all__ = ["small_disk"]

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.fixture
async def nodes(api: RawClient, empty_cluster: None) -> None:
    await make_nodes(api, 4)


async def test_gangs_are_bound_again_once_a_full_disk_has_space(
    api: RawClient,
    namespace: str,
    nodes: None,
    control_plane: ControlPlane,
    small_disk: Path,
    tmp_path: Path,
) -> None:
    data = small_disk / "data"
    flags = ("--no-webhook", f"--data-dir={data}")
    async with suite(control_plane.admin_kubeconfig, tmp_path / "up", *flags) as running:
        ready = await running.wait_ready()
        await make_gang(api, namespace, "before")
        await bound(api, namespace, "before")
        fill(small_disk / "filler")
        await eventually(
            lambda: "nats stores nothing: JetStream stream" in running.errors, timeout_s=30
        )

        async def reported() -> bool:
            status, text, _ = await tutti("status", f"--data-dir={data}", "--interval=0.1")
            sentence = " ".join(text.split())
            return (
                status == 1 and "no space left on device" in sentence and "nats storage" in sentence
            )

        await eventually(reported, timeout_s=60)
        assert psutil.pid_exists(ready.nats_pid), "a restart would not help yet"
        await make_gang(api, namespace, "during")
        assert await placed(api, namespace, "during") == []
        (small_disk / "filler").unlink()
        freed_s = time.monotonic()
        await bound(api, namespace, "during", timeout_s=60)
        print(f"bound {time.monotonic() - freed_s:.1f} s after it was freed")  # noqa: T201

        async def well() -> bool:
            status, _, _ = await tutti("status", f"--data-dir={data}", "--interval=0.1")
            return status == 0

        await eventually(well, timeout_s=60)
        said = ("stores nothing (JetStream stream", "can be written, starts again")
        await eventually(lambda: all(words in running.errors for words in said))


async def test_a_data_folder_that_is_removed_is_made_again_with_its_keys(
    api: RawClient,
    namespace: str,
    nodes: None,
    control_plane: ControlPlane,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TUTTI_COLD_START_WAIT_S", "3")
    async with suite(control_plane.admin_kubeconfig, tmp_path, "--no-webhook") as running:
        await running.wait_ready()
        await make_gang(api, namespace, "before")
        await bound(api, namespace, "before")
        # At once: NATS goes on to write into a folder that is emptied file by file.
        (tmp_path / "data").rename(tmp_path / "removed")
        shutil.rmtree(tmp_path / "removed", ignore_errors=True)
        await make_gang(api, namespace, "after")
        await eventually(lambda: "was removed or replaced" in running.errors, timeout_s=20)
        await bound(api, namespace, "after", timeout_s=60)

        async def well() -> bool:
            flags = (f"--data-dir={tmp_path / 'data'}", "--interval=0.1")
            status, said, errors = await tutti("status", *flags)
            assert status == 0, said + errors
            return True

        await eventually(well, timeout_s=60)


async def test_a_volume_that_cannot_be_written_is_replaced_under_a_running_tutti_up(
    api: RawClient,
    namespace: str,
    nodes: None,
    control_plane: ControlPlane,
    small_disk: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Read-only from below: no file can be made, and then another volume is there."""
    monkeypatch.setenv("TUTTI_COLD_START_WAIT_S", "3")
    flags = ("--no-webhook", f"--data-dir={small_disk / 'data'}")
    async with suite(control_plane.admin_kubeconfig, tmp_path / "up", *flags) as running:
        await running.wait_ready()
        await make_gang(api, namespace, "before")
        await bound(api, namespace, "before")
        over = ["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", str(small_disk)]
        await asyncio.to_thread(subprocess.run, over, check=True)
        await eventually(lambda: "Read-only file system" in running.errors, timeout_s=30)
        await eventually(lambda: "nats stores nothing" in running.errors, timeout_s=30)
        under = ["umount", "-l", str(small_disk)]
        await asyncio.to_thread(subprocess.run, under, check=True)
        mount_disk(small_disk)
        await make_gang(api, namespace, "after")
        await bound(api, namespace, "after", timeout_s=90)
