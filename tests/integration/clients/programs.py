"""Runs clients that are installed beside .venv, as the user of a stage's namespace."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.documents.blocks import blocks
from tests.documents.links import ROOT
from tests.integration.stage import Stage
from tests.support.packages import pinned

_PROGRAM_S: Final = 60.0


class Programs:
    """Python programs that may import the clients of `requirements/clients.in`."""

    def __init__(self, stage: Stage, home: Path) -> None:
        """Install the clients, if they are not in the cache yet; programs run in `home`."""
        self._home = home
        self._environ = {
            "HOME": str(home),
            "KUBECONFIG": str(_in_namespace(stage, home)),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(pinned("clients", ROOT / "requirements" / "clients.lock")),
        }

    async def said(self, *arguments: str) -> str:
        """What `python ARGUMENTS` prints on both outputs. Raises AssertionError if it fails."""
        done = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, *arguments],
            cwd=self._home,
            env=self._environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_PROGRAM_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout


def shown(page: str, typed: str) -> str:
    """The output on a page of docs/operators of the command that begins so."""
    path = ROOT / "docs" / "operators" / f"{page}.md"
    (found,) = [
        command
        for block in blocks(path.name, path.read_text())
        if block.typed
        for command in block.commands()
        if command.typed.startswith(typed)
    ]
    return found.output


def _in_namespace(stage: Stage, home: Path) -> Path:
    """A kubeconfig whose context has the stage's namespace."""
    kubectl = str(stage.control_plane.binaries.kubectl)
    path = home / "kubeconfig"
    path.write_bytes(stage.control_plane.admin_kubeconfig.read_bytes())
    command = [kubectl, f"--kubeconfig={path}", "config", "set-context", "--current"]
    subprocess.run(
        [*command, f"--namespace={stage.namespace}"], check=True, capture_output=True, timeout=60
    )
    return path
