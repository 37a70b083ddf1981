"""Reads manifests of one kind from files; creates and deletes their objects; and sends Commands of
bus.volcano.sh, requests to the controllers about a Job or a Queue.

A Command is owned by its target, so that it is deleted with it if no controller handles it.
"""

import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import click
import msgspec
from multidict import MultiMapping

from shared.kube.client import KubeClient
from shared.kube.errors import KubeError
from shared.kube.resources import COMMANDS, Resource
from tutti.api.conventions import conventions
from tutti.api.failures import Refusal, explained
from tutti.api.fetches import get
from tutti.api.objects import Object, name_of, namespace_of, new_object, text
from tutti.api.output import echo

#: The files of a folder that kubectl reads.
_SUFFIXES: Final = frozenset({".json", ".yaml", ".yml"})
_WARNING: Final = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"(?: ".*")?')
_ESCAPED: Final = re.compile(r"\\(.)")


class Content(NamedTuple):
    """What is in a file, and its name in messages. In bytes: YAML says itself in which encoding of
    Unicode it is.
    """

    title: str
    text: bytes

    def documents(self) -> list[Any]:
        """All documents; an empty one is None. Raises Refusal, which has the title."""
        return parse(self.text, self.title)


def contents(path: str) -> list[Content]:
    """The content of a file, of standard input (`-`), or of each manifest in a folder, by name.
    Raises Refusal when one cannot be read, or the folder has none.
    """
    if path == "-" or not Path(path).is_dir():
        return [_content(path)]
    paths = sorted(str(each) for each in Path(path).iterdir() if each.suffix in _SUFFIXES)
    if not paths:
        raise Refusal(f"{path}: there is no .yaml, .yml or .json file in this folder")
    return [_content(each) for each in paths]


def _content(path: str) -> Content:
    from shared.yaml_documents import TEXT_CHARACTERS_MAX

    standard = path == "-"
    try:
        with nullcontext(sys.stdin.buffer) if standard else Path(path).open("rb") as opened:
            # One more than it may have, of a file that may not end.
            text = opened.read(TEXT_CHARACTERS_MAX + 1)
    except OSError as error:
        raise Refusal(f"{path}: cannot be read: {error.strerror or error}") from None
    return Content("<stdin>" if standard else path, text)


def read(files: Sequence[Content], resource: Resource) -> list[Object]:
    """All documents of the files in order, without empty ones. Raises Refusal when a file is not
    YAML, or contains another kind.
    """
    titles = ", ".join(file.title for file in files)
    documents = [each for file in files for each in file.documents() if each is not None]
    if not documents:
        raise Refusal(f"{titles}: there is no {resource.kind} in it")
    for document in documents:
        kind = document.get("kind") if isinstance(document, dict) else None
        version = document.get("apiVersion") if isinstance(document, dict) else None
        if (version, kind) != (resource.api_version, resource.kind):
            found_kind = f"{kind or 'no kind'} of {version or 'no apiVersion'}"
            raise Refusal(
                f"{titles}: {found_kind}; expected {resource.kind} of "
                f"{resource.api_version} (kubectl creates any kind)"
            )
    return documents


def parse(text: str | bytes, title: str) -> list[Any]:
    """All documents of a text; an empty one is None. Raises Refusal, which has the title."""
    from shared.yaml_documents import InvalidYaml, read_documents

    try:
        return read_documents(text)
    except InvalidYaml as error:
        raise Refusal(f"{title}: not YAML: {error}") from None


async def create(
    client: KubeClient,
    resource: Resource,
    manifest: Object,
    namespace: str = "",
    *,
    dry_run: bool = False,
) -> Object:
    """Create one object, in its own namespace or else the one given; return it as stored.

    The API server's warnings are printed on standard error, as kubectl prints them; the webhook
    warns there of a gang that would not fit now. In a dry run nothing is stored. A field that the
    kind does not have is refused; Volcano's programs drop it, and so do ours of their names, with a
    warning. Raises KubeError.
    """
    place = namespace_of(manifest) or namespace if resource.namespaced else ""
    reply = await client.create(
        resource,
        manifest,
        namespace=place,
        dry_run=dry_run,
        unknown_fields="Warn" if conventions().volcano_failures else "Strict",
    )
    for warning in warnings_of(reply.headers):
        click.echo(f"Warning: {warning}", err=True)
    stored: Object = msgspec.json.decode(reply.body)
    return stored


def warnings_of(headers: Mapping[str, str]) -> list[str]:
    """The texts of `Warning: 299 - "text"` headers; other headers are left out."""
    given = headers.getall("Warning", []) if isinstance(headers, MultiMapping) else []
    matched = (_WARNING.fullmatch(each) for each in given)
    return [_ESCAPED.sub(r"\1", each[1]) for each in matched if each is not None]


async def create_all(
    client: KubeClient, resource: Resource, manifests: Sequence[Object], namespace: str
) -> None:
    """Create each object and print its name; continue after a failure. Raises Refusal at the end,
    which names those that were not created, and the reasons.
    """
    failed: list[str] = []
    for manifest in manifests:
        try:
            made = await create(client, resource, manifest, namespace)
        except KubeError as error:
            place = namespace_of(manifest) or namespace
            failed.append(_failure("create", resource, place, name_of(manifest), error))
        else:
            echo(f"Created {resource.kind}: {_key(resource, namespace_of(made), name_of(made))}")
    if failed:
        raise Refusal("\n".join(failed))


async def delete_all(
    client: KubeClient, resource: Resource, keys: Sequence[tuple[str, str]]
) -> None:
    """Delete each (namespace, name) and print it, as `create_all` does."""
    failed: list[str] = []
    for namespace, name in keys:
        place = namespace if resource.namespaced else ""
        try:
            await client.delete(resource, name, namespace=place, propagation="Background")
        except KubeError as error:
            failed.append(_failure("delete", resource, place, name, error))
        else:
            echo(f"Deleted {resource.kind}: {_key(resource, place, name)}")
    if failed:
        raise Refusal("\n".join(failed))


def _failure(verb: str, resource: Resource, namespace: str, name: str, error: Exception) -> str:
    return f"{verb} {resource.kind} {_key(resource, namespace, name)}: {explained(error)}"


def _key(resource: Resource, namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if resource.namespaced else name


Action: TypeAlias = Literal["AbortJob", "ResumeJob", "OpenQueue", "CloseQueue"]

#: Commands are namespaced and queues are not: Commands about queues are here, as Volcano's are.
QUEUE_COMMANDS_NAMESPACE = "default"


def build_command(resource: Resource, target: Object, action: Action) -> Object:
    owner = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": text(target, "metadata.name"),
        "uid": text(target, "metadata.uid"),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    metadata = {
        "generateName": f"{owner['name']}-{action.lower()}-",
        "ownerReferences": [owner],
    }
    return new_object(COMMANDS, metadata, action=action, target=owner)


async def send_command(
    client: KubeClient, resource: Resource, name: str, action: Action, namespace: str = ""
) -> None:
    """Create a Command for the controller of an object. Raises KubeError: NotFound also when the
    API server does not serve Commands.
    """
    target = await get(client, resource, name, namespace)
    await client.create(
        COMMANDS,
        build_command(resource, target, action),
        namespace=namespace or QUEUE_COMMANDS_NAMESPACE,
    )
