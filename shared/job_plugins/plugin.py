"""What a job plugin is, and what they all need: flags as Go reads them, and parts of a pod."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol

import msgspec

from shared.kinds.job import Job, TaskSpec
from shared.kinds.metadata import controlled_by
from shared.kube.resources import Resource

Manifest = dict[str, Any]

_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})

#: Those of Go's int, about: more of them are no number that any plugin could use.
_DIGITS_MAX: Final = 18


class PluginError(Exception):
    """A plugin cannot do its part for a job as it is; the message says why."""


class Owned(msgspec.Struct, frozen=True, kw_only=True):
    """An object that a plugin has for its job as long as the job's pods may live."""

    resource: Resource
    manifest: Manifest
    #: Its data follows the job; otherwise it is made once.
    follows: bool = False
    #: It wants a key pair of its own, which no pure function can make: `ssh.with_keys`.
    keys: bool = False

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.manifest["metadata"]["name"])


class JobPlugin(Protocol):
    """One plugin, built for one job by `build(arguments, job)`."""

    def change_pod(self, pod: Manifest, task: TaskSpec, index: int, /) -> None:
        """Add to a pod that is about to be made. Raises PluginError."""
        ...

    def objects(self) -> Sequence[Owned]:
        """The objects that the job is to have."""
        ...


class Changeless:
    """A plugin without objects of its own."""

    def objects(self) -> Sequence[Owned]:
        """None."""
        return ()


class Flags:
    """Arguments of a plugin, as Go's flag package reads them.

    `--name=value`, `-name value`, `--switch`. When anything is wrong, what was read before it
    stands and the rest keeps its default: Volcano logs that and continues.
    """

    def __init__(self, arguments: Sequence[str], **defaults: str | int | bool) -> None:
        """Read the arguments; the defaults' types say what each flag takes, `_` stands for `-`."""
        self._values = {name.replace("_", "-"): value for name, value in defaults.items()}
        self.complaint = ""
        self._read(list(arguments))

    def text(self, name: str) -> str:
        """A flag's text."""
        return str(self._values[name])

    def number(self, name: str) -> int:
        """A flag's number."""
        return int(self._values[name])

    def switch(self, name: str) -> bool:
        """Whether a flag is on."""
        return bool(self._values[name])

    def _read(self, arguments: list[str]) -> None:
        while arguments:
            word = arguments.pop(0)
            name, given, text = word.lstrip("-").partition("=")
            default = self._values.get(name)
            if default is None or not word.startswith("-"):
                self.complaint = f"{word}: no such flag"
                return
            if not given and not isinstance(default, bool):
                if not arguments:
                    self.complaint = f"{word}: needs a value"
                    return
                text = arguments.pop(0)
            value = _value(default, text if given or not isinstance(default, bool) else "true")
            if value is None:
                self.complaint = f"{word}: {text!r} is no value for it"
                return
            self._values[name] = value


def _value(default: str | float | bool, text: str) -> str | int | bool | None:
    if isinstance(default, bool):
        return True if text in _TRUE else False if text in _FALSE else None
    if isinstance(default, int):
        return _integer(text)
    return text


def _integer(text: str) -> int | None:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS_MAX):
        return None
    return int(text)


def containers(pod: Manifest, *, init: bool) -> Iterator[Manifest]:
    """The containers of a pod, with the init containers if wanted."""
    spec = pod["spec"]
    yield from spec.get("containers") or ()
    if init:
        yield from spec.get("initContainers") or ()


def add_env(container: Manifest, *entries: Manifest) -> None:
    """Add environment variables after those that are there."""
    container["env"] = [*(container.get("env") or ()), *entries]


def add_port(container: Manifest, name: str, number: int) -> None:
    """Declare a port, unless the container declares that number already."""
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


def owned_metadata(job: Job, name: str) -> Manifest:
    """Metadata of an object that goes with the job."""
    return {
        "name": name,
        "namespace": job.metadata.namespace,
        "ownerReferences": [controlled_by(job).manifest],
    }
