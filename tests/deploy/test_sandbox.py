"""What a container's process is given: as the kubelet would, or refused as it would be."""

from pathlib import Path
from typing import Any

import pytest

from tests.deploy.sandbox import Mount, expand, identity, script

POD: dict[str, Any] = {
    "metadata": {"name": "tutti-binder-0"},
    "spec": {"securityContext": {"runAsNonRoot": True, "runAsUser": 65532, "fsGroup": 65531}},
}
CONTAINER: dict[str, Any] = {
    "name": "binder",
    "command": ["python", "-m", "services.binder"],
    "args": ["--http-host=$(POD_IP)", "--other=$(UNKNOWN)"],
}


def test_a_container_that_must_not_be_root_and_would_be_is_refused() -> None:
    assert identity(POD, CONTAINER).user == 65532
    with pytest.raises(ValueError, match="binder has runAsNonRoot"):
        identity(POD, {**CONTAINER, "securityContext": {"runAsUser": 0}})


def test_variables_are_put_into_arguments_and_unknown_ones_stay() -> None:
    assert expand("a=$(A) b=$(B)", {"A": "1"}) == "a=1 b=$(B)"


def test_a_container_gets_what_is_rendered_and_no_more(tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir()
    mounts = [Mount(tmp_path / "keys", "/etc/tutti/nats", True)]
    security = {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    hardened = {**CONTAINER, "securityContext": security}
    text = script(POD, hardened, mounts, {"POD_IP": "127.1.0.1"}, tmp_path / "root")
    *_, started = text.splitlines()
    for word in ("--reuid=65532", "--groups=65531", "--bounding-set=-all", "--no-new-privs"):
        assert word in started
    assert "--http-host=127.1.0.1 '--other=$(UNKNOWN)'" in started
    assert f"mount -o remount,ro,bind {tmp_path}/root/etc/tutti/nats" in text
    assert f"mount -o remount,ro,mode=0755 {tmp_path}/root\n" in text

    loose = script(POD, CONTAINER, [], {}, tmp_path / "root")
    for word in ("bounding-set", "no-new-privs", "remount,ro,mode"):
        assert word not in loose
