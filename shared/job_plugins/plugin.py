"""The protocol of job plugins, a parser for their Go-style flags, and changes to a pod."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol

import msgspec

from shared.kinds.job import Job, TaskSpec
from shared.kinds.metadata import controlled_by
from shared.kube.resources import Resource

Manifest = dict[str, Any]

_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})

#: Go's int has at most 19 digits; no flag needs a number of that length.
_DIGITS_MAX: Final = 18


class PluginError(Exception):
    """A plugin cannot be applied to this job; the message has the reason."""


class Owned(msgspec.Struct, frozen=True, kw_only=True):
    """An object that a plugin creates for its job; it exists as long as the job may have pods."""

    resource: Resource
    manifest: Manifest
    #: Whether its data is updated when the job changes; otherwise it is created once.
    follows: bool = False
    #: Whether the controller generates a key pair for it, which is not pure: `ssh.with_keys`.
    keys: bool = False

    @property
    def name(self) -> str:
        """`metadata.name` of the object."""
        return str(self.manifest["metadata"]["name"])


class JobPlugin(Protocol):
    """One plugin, built for one job by `build(arguments, job)`."""

    def change_pod(self, pod: Manifest, task: TaskSpec, index: int, /) -> None:
        """Change the manifest of a pod before it is created. Raises PluginError."""
        ...

    def objects(self) -> Sequence[Owned]:
        """The objects that the plugin creates for the job."""
        ...


class Changeless:
    """Base of a plugin that only changes pods."""

    def objects(self) -> Sequence[Owned]:
        """No objects."""
        return ()


class Flags:
    """Arguments of a plugin, as Go's flag package reads them.

    `--name=value`, `-name value`, `--switch`. As in Volcano, parsing stops at the first invalid
    argument: flags before it have their values, all others their defaults.
    """

    def __init__(self, arguments: Sequence[str], **defaults: str | int | bool) -> None:
        """Parse the arguments. A default's type is the flag's type; `_` in its name becomes `-`."""
        self._values = {name.replace("_", "-"): value for name, value in defaults.items()}
        words = iter(arguments)
        for word in words:
            name, given, text = word.lstrip("-").partition("=")
            default = self._values.get(name)
            if default is None or not word.startswith("-"):
                return
            argument = text if given else "true" if isinstance(default, bool) else next(words, None)
            value = None if argument is None else _value(default, argument)
            if value is None:
                return
            self._values[name] = value

    def text(self, name: str) -> str:
        """A flag's text."""
        return str(self._values[name])

    def number(self, name: str) -> int:
        """A flag's number."""
        return int(self._values[name])

    def switch(self, name: str) -> bool:
        """Whether a flag is on."""
        return bool(self._values[name])


def _value(default: str | float | bool, text: str) -> str | int | bool | None:
    if isinstance(default, bool):
        return True if text in _TRUE else False if text in _FALSE else None
    if isinstance(default, int):
        digits = text.removeprefix("-")
        valid = digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS_MAX
        return int(text) if valid else None
    return text


def containers(pod: Manifest, *, init: bool) -> Iterator[Manifest]:
    """The containers of a pod, with the init containers if wanted."""
    spec = pod["spec"]
    yield from spec.get("containers") or ()
    if init:
        yield from spec.get("initContainers") or ()


def add_env(container: Manifest, *entries: Manifest) -> None:
    """Append environment variables."""
    container["env"] = [*(container.get("env") or ()), *entries]


def add_port(container: Manifest, name: str, number: int) -> None:
    """Declare a port, unless the container already declares one with this number."""
    ports: list[Manifest] = container.get("ports") or []
    if all(port.get("containerPort") != number for port in ports):
        container["ports"] = [*ports, {"name": name, "containerPort": number}]


def add_volume(pod: Manifest, volume: Manifest, mount: Manifest) -> None:
    """Give the pod a volume and all of its containers the mount."""
    spec = pod["spec"]
    spec["volumes"] = [*(spec.get("volumes") or ()), volume]
    for container in containers(pod, init=True):
        container["volumeMounts"] = [*(container.get("volumeMounts") or ()), mount]


def selector(job: Job) -> dict[str, str]:
    """Labels that all pods of the job have, and no other pod."""
    return {
        "volcano.sh/job-name": job.metadata.name,
        "volcano.sh/job-namespace": job.metadata.namespace,
    }


def owned_by(job: Job, resource: Resource, name: str, content: Manifest) -> Manifest:
    """The manifest of an object that the job owns, so that it is deleted with the job."""
    metadata = {
        "name": name,
        "namespace": job.metadata.namespace,
        "ownerReferences": [controlled_by(job).manifest],
    }
    head = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
    return head | content
