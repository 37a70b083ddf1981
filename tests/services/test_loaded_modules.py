"""Libraries that a process does not use are not in its memory, and do not delay its start."""

import json
import subprocess
import sys

import pytest

_CRYPTOGRAPHY = "cryptography"

#: What a process imports -> libraries and packages that it must not load at its start.
UNUSED = {
    "services.watcher.service": ("click", _CRYPTOGRAPHY, "jsonpatch", "numpy", "re2"),
    "services.gang_planner.service": ("click", _CRYPTOGRAPHY, "jsonpatch", "re2", "shared.cel"),
    "services.binder.service": (
        *("click", _CRYPTOGRAPHY, "numpy", "re2", "shared.kinds"),
        *("shared.admission", "shared.dialects", "shared.explanation"),
    ),
    "services.controller.service": ("click", _CRYPTOGRAPHY, "jsonpatch", "numpy", "re2"),
    "services.admission_webhook.service": ("click", "numpy", "re2", "shared.cel"),
    "services.api.service": ("click", "numpy", "re2", "shared.cel"),
    "services.observer.service": ("click", _CRYPTOGRAPHY, "numpy", "re2", "shared.dialects"),
    "tutti.up.all_services": (_CRYPTOGRAPHY, "numpy", "re2"),
    # The fork server starts when the launcher has been imported.
    "tutti.up.fork_server_launcher": ("aiohttp", "click", "nats", "shared.bus"),
}


def loaded(module: str) -> set[str]:
    """Every module in memory after this one was imported."""
    program = (
        "import importlib, json, sys\n"
        "importlib.import_module(sys.argv[1])\n"
        "print(json.dumps(sorted(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, module], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout))


@pytest.mark.parametrize("module", UNUSED)
def test_a_process_loads_no_library_that_it_does_not_use(module: str) -> None:
    unused = {*UNUSED[module], "opentelemetry", "rich"}
    assert not loaded(module) & unused
