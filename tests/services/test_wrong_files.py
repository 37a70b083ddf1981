"""A file that a flag names and that cannot be used ends a service with status 2 and plain words."""

import asyncio
import sys
from pathlib import Path

import pytest

from tutti.lifeline import dying_with_parent
from tutti.nats_server import NatsServer

pytestmark = pytest.mark.integration

_PLANNER = "gang_planner", "--scheduler-conf"


@pytest.mark.parametrize(
    ("service", "flag", "content", "words"),
    [
        (*_PLANNER, b"actions: allocate, dance", "actions: unknown action 'dance'"),
        (
            *_PLANNER,
            b"tiers: [{plugins: [{name: gang}, {name: proportoin}]}]",
            "unknown plugin 'proportoin' (did you mean 'proportion'?)",
        ),
        (*_PLANNER, b"actions: [", "file: must be YAML: line 2"),
        (*_PLANNER, b"\xff\xfe", "can't decode"),
        (*_PLANNER, None, "No such file"),
        ("admission_webhook", "--admission-conf", b"resourceGroups: 5", "resourceGroups"),
        ("admission_webhook", "--admission-conf", None, "No such file"),
    ],
    ids=[
        *("action", "plugin", "no YAML", "binary", "no file"),
        *("admission configuration", "no admission configuration"),
    ],
)
@pytest.mark.parametrize("log_format", ["text", "json"])
async def test_a_service_names_the_flag_the_file_and_the_rule_and_ends_with_status_2(
    nats_server: NatsServer,
    tmp_path: Path,
    service: str,
    flag: str,
    content: bytes | None,
    words: str,
    log_format: str,
) -> None:
    path = tmp_path / "file.conf"
    if content is not None:
        path.write_bytes(content)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", f"services.{service}"),
        *(f"--nats-url={nats_server.url}", f"--log-format={log_format}", f"{flag}={path}"),
        *(["--no-register"] if service == "admission_webhook" else []),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        preexec_fn=dying_with_parent(),
    )
    async with asyncio.timeout(30.0):
        _, err = await process.communicate()
    assert process.returncode == 2, err.decode()
    last = err.decode().splitlines()[-1]
    assert last.startswith(f"{service.replace('_', '-')}: {flag}")
    assert str(path) in last
    assert words in last
    assert "Traceback" not in err.decode()
