"""kube-scheduler's own framework with its default filters, as a process that answers questions."""

import json
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

Cluster = dict[str, list[dict[str, Any]]]
"""Kubernetes objects by plural: nodes, pods, namespaces, persistentVolumes, …"""


class Refusal(NamedTuple):
    """The first plugin that refuses a node, and its words."""

    plugin: str
    reasons: tuple[str, ...]


class OracleError(RuntimeError):
    """kube-scheduler itself could not judge the pod; the message carries its words."""


class SchedulerOracle:
    """The running program; close it when done."""

    def __init__(self, executable: Path) -> None:
        self._process = subprocess.Popen(
            [str(executable)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def refused(self, cluster: Cluster, pod: dict[str, Any]) -> dict[str, Refusal]:
        """Nodes that the pod may not use now, by name; all others it may.

        Raises:
            OracleError: A plugin failed, or the program ended.
        """
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps({**cluster, "pod": pod}).encode() + b"\n")
        stdin.flush()
        line = stdout.readline()
        if not line:
            raise OracleError(f"the oracle ended with {self._process.wait()}")
        answer = msgspec.json.decode(line)
        if answer.get("error"):
            raise OracleError(answer["error"])
        return {
            name: Refusal(one["plugin"], tuple(one["reasons"]))
            for name, one in answer["refused"].items()
        }

    def close(self) -> None:
        """End the program and wait for its end."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(timeout=10)
        if self._process.stdout is not None:
            self._process.stdout.close()
