"""Reads the cases of a folder.

A file is a mapping: `cases`, and `anchors` for the YAML anchors that its cases share. A case:

    title: a gang waits whole and is then bound whole
    feature: whole                # a row of features.yaml
    not_on: {embedded: why}       # clusters that cannot play it
    nodes: 1                      # so many nodes with one GPU; or [{name: a, count: 2, gpus: 4,
                                  # labels: {rack: a}}]
    objects:                      # manifests; `numbers: [0, 1]` makes one of each number for `$n`
    - {apiVersion: v1, kind: Pod, numbers: [0, 1], metadata: {name: train-$n}, spec: ...}
    expect:
      bound: []                   # exactly these pods are on nodes; or their number
      on: {train-0: a-0}          # pod -> node
      silent: [other-0]           # unbound pods that need not say why
      pods: {train-*: words}      # pattern -> part of the message of PodScheduled=False
      status:                     # object -> field -> value; messages in part; conditions (of each
                                  # list whose name ends so) by type
        podgroup/train: {phase: Pending, conditions.Unschedulable.reason: NotEnoughPods}
      events:                     # message in part
      - {of: podgroup/train, reason: Unschedulable, message: 1 of 2}
    then:                         # what happens next, in this order, each with its own `expect`
    - {delete: [pod/train-0], patch: {podgroup/train: {}}, status: {podgroup/train: {}},
       finish: {train-0: 0}, nodes: 1, create: [], refused: [{object: {}, message: words}],
       expect: {bound: 2}}

`$case` stands for the case's id: names of objects without a namespace contain it. `nvidia.com/gpu`
is a resource of the case's own, so that cases which are played at the same time do not see
each other's nodes. An object is named by its kind, or by kind and API group where a case has the
kind of two groups: `podgroup.scheduling.volcano.sh/train`.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

FOLDER: Final = Path(__file__).parent
CLUSTERS: Final = ("real", "embedded")


class CaseError(ValueError):
    """A file of cases breaks a rule; the message names the file, the case and the field."""


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class Manifest(_Strict, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """An object to create, or several that differ in a number."""

    api_version: str
    kind: str
    metadata: dict[str, Any]
    spec: dict[str, Any] = {}
    numbers: tuple[int, ...] = ()


class NodesGiven(_Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Equal nodes: name-0, name-1 and so on."""

    name: str
    count: int = 1
    gpus: int = 1
    labels: dict[str, str] = {}


class EventExpected(_Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An Event of an object."""

    of: str
    reason: str
    message: str = ""


class Expected(_Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What must be true after a step."""

    bound: tuple[str, ...] | int
    on: dict[str, str] = {}
    silent: tuple[str, ...] = ()
    pods: dict[str, str] = {}
    status: dict[str, dict[str, str | int | None]] = {}
    events: tuple[EventExpected, ...] = ()


class Refused(_Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An object that the API server must not take."""

    object: Manifest
    message: str


class Step(_Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What happens, and what must be true then."""

    delete: tuple[str, ...] = ()
    patch: dict[str, dict[str, Any]] = {}
    status: dict[str, dict[str, Any]] = {}
    finish: dict[str, int] = {}
    nodes: int | tuple[NodesGiven, ...] = 0
    create: tuple[Manifest, ...] = ()
    refused: tuple[Refused, ...] = ()
    expect: Expected


class _CaseGiven(_Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    title: str
    feature: str
    not_on: dict[str, str] = {}
    nodes: int | tuple[NodesGiven, ...] = 0
    objects: tuple[Manifest, ...] = ()
    refused: tuple[Refused, ...] = ()
    expect: Expected
    then: tuple[Step, ...] = ()


class _File(_Strict, frozen=True, kw_only=True, forbid_unknown_fields=True):
    anchors: Any = None
    cases: tuple[dict[str, Any], ...]


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One case of an API.

    Attributes:
        dialect: Name of its folder.
        api: The API version that it is played in, if the folder is played in several; or "".
        title: What it shows.
        feature: The row of the table.
        not_on: Cluster -> why it cannot play the case.
        steps: The first one creates its objects.
    """

    dialect: str
    api: str = ""
    title: str
    feature: str
    not_on: dict[str, str]
    steps: tuple[Step, ...]

    @property
    def name(self) -> str:
        """Name of its test."""
        folder = f"{self.dialect} {self.api.partition('/')[0]}".rstrip()
        return f"{folder}: {self.title}"


def read_folder(folder: Path, apis: tuple[str, ...] = ()) -> Iterator[Case]:
    """The cases of an API.

    Args:
        folder: Its folder.
        apis: API versions with the same fields: files are written in the first one, and their
            cases are played in each.

    Raises:
        CaseError: A file is not as described above.
    """
    for path in sorted(folder.glob("*.yaml")):
        text = path.read_text()
        for api in apis or ("",):
            given = text.replace(apis[0], api) if api else text
            yield from read_file(f"{folder.name}/{path.name}", given, folder.name, api)


def read_file(path: str, text: str, dialect: str, api: str = "") -> Iterator[Case]:
    """The cases of a file's text; arguments and errors as for `read_folder` and `Case`."""
    try:
        found = msgspec.convert(yaml.safe_load(text), _File)
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        raise CaseError(f"{path}: {error}") from None
    for number, given in enumerate(found.cases, 1):
        where = f"{path}: case {number} ({given.get('title', 'no title')})"
        try:
            case = msgspec.convert(given, _CaseGiven)
        except msgspec.ValidationError as error:
            raise CaseError(f"{where}: {error}") from None
        unknown = case.not_on.keys() - set(CLUSTERS)
        if unknown:
            raise CaseError(f"{where}: not_on: no cluster {min(unknown)!r}")
        first = Step(
            nodes=case.nodes, create=case.objects, refused=case.refused, expect=case.expect
        )
        yield Case(
            dialect=dialect,
            api=api,
            title=case.title,
            feature=case.feature,
            not_on=case.not_on,
            steps=(first, *case.then),
        )


def own(case: Case, case_id: str) -> Case:
    """The case with its id, and with a resource of its own in place of the GPU."""
    text = msgspec.json.encode(case).decode()
    text = text.replace("$case", case_id).replace("nvidia.com/gpu", f"{case_id}.nvidia.com/gpu")
    return msgspec.json.decode(text, type=Case)


def manifests(given: tuple[Manifest, ...]) -> Iterator[dict[str, Any]]:
    """The objects as they are sent."""
    for one in given:
        whole = msgspec.to_builtins(msgspec.structs.replace(one, numbers=()))
        del whole["numbers"]
        if not one.numbers:
            yield whole
        for number in one.numbers:
            yield _numbered(whole, number)


def _numbered(manifest: Mapping[str, Any], number: int) -> dict[str, Any]:
    text = msgspec.json.encode(manifest).decode().replace("$n", str(number))
    found: dict[str, Any] = msgspec.json.decode(text)
    return found
