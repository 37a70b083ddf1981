"""`tutti console` as a user starts it, in front of a scripted API server."""

import asyncio
import os
import signal
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import msgspec
import pytest

from tests.support.scripted_apiserver import Answer, answer, failure, scripted_apiserver
from tests.support.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

#: A machine that runs other tests starts Python slowly.
_START_S = 60.0

JSON = {"Content-Type": "application/json"}
#: In place of a browser: it keeps what it was given, and copies the file that this names.
BROWSER = """#!/bin/sh
path=${1#file://}
ls -l "$path" | cut -c1-10 > "$RECORD.mode"
cp "$path" "$RECORD.page"
echo "$1" > "$RECORD.address"
mv "$RECORD.address" "$RECORD"
"""


@asynccontextmanager
async def the_command(
    folder: Path, *script: Answer, flags: tuple[str, ...] = ()
) -> AsyncIterator[asyncio.subprocess.Process]:
    async with scripted_apiserver(*script) as api:
        config = {
            "clusters": [{"name": "x", "cluster": {"server": api.url}}],
            "users": [{"name": "x", "user": {"token": "t"}}],
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
            "current-context": "x",
        }
        (folder / "kubeconfig").write_bytes(msgspec.json.encode(config))
        browser = folder / "browser"
        browser.write_text(BROWSER)
        browser.chmod(0o755)
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "tutti.cli", "console", f"--kubeconfig={folder / 'kubeconfig'}", *flags),
            env={**os.environ, "BROWSER": f"{browser} %s", "RECORD": str(folder / "record")},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()


async def first_line(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    return (await asyncio.wait_for(process.stdout.readline(), _START_S)).decode().strip()


async def test_it_serves_the_console_until_ctrl_c(tmp_path: Path) -> None:
    gangs = answer(200, {"items": []}, JSON)
    async with the_command(tmp_path, answer(200, {}, JSON), gangs, flags=("--no-browser",)) as it:
        url = await first_line(it)
        address, _, token = url.partition("/console/#token=")
        assert address.startswith("http://127.0.0.1:")
        async with aiohttp.ClientSession() as session:
            async with session.get(f"{address}/console/") as response:
                assert response.status == 200
            headers = {"Authorization": f"Bearer {token}"}
            path = f"{address}/apis/visibility.tutti.dev/v1alpha1/gangs"
            async with session.get(path, headers=headers) as response:
                assert await response.json() == {"items": []}
        it.send_signal(signal.SIGINT)
        out, err = await asyncio.wait_for(it.communicate(), _START_S)
        assert (it.returncode, out, err) == (0, b"", b"")
        assert not (tmp_path / "record").exists()


async def test_the_browser_is_given_the_token_in_a_file_of_the_user_and_not_as_an_argument(
    tmp_path: Path,
) -> None:
    record = tmp_path / "record"
    async with the_command(tmp_path, answer(200, {}, JSON)) as it:
        url = await first_line(it)
        await eventually(record.exists, timeout_s=_START_S, because="the browser was started")
        page = Path(record.read_text().strip().removeprefix("file://"))
        assert await asyncio.to_thread(page.exists)
        it.send_signal(signal.SIGINT)
        await asyncio.wait_for(it.wait(), _START_S)
    token = url.partition("#token=")[2]
    assert token not in record.read_text()
    assert url in (tmp_path / "record.page").read_text()
    assert (tmp_path / "record.mode").read_text().strip() == stat.filemode(0o100600)
    assert not await asyncio.to_thread(page.parent.exists)


async def test_a_cluster_without_the_api_and_a_port_in_use_end_it_with_the_remedy(
    tmp_path: Path,
) -> None:
    async with the_command(tmp_path, failure(404, "NotFound")) as it:
        _, err = await asyncio.wait_for(it.communicate(), _START_S)
        assert it.returncode == 2
        assert b"set api.enabled in the chart" in err
    server = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        async with the_command(tmp_path, answer(200, {}, JSON), flags=(f"--port={port}",)) as it:
            _, err = await asyncio.wait_for(it.communicate(), _START_S)
            assert it.returncode == 2
            assert f"--port {port}: cannot listen on 127.0.0.1".encode() in err
