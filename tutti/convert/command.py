"""`tutti migrate queues`: queues of other projects as Volcano Queues."""

from collections.abc import Sequence

import click

from shared.dialects.manifests import flattened
from shared.kube.decoding import without_nulls
from shared.yaml_documents import read_document
from tutti.api.failures import Refusal, fail
from tutti.api.flags import files_flag
from tutti.api.manifests import Content
from tutti.api.output import as_yaml
from tutti.convert import kai, kueue, yunikorn
from tutti.convert.queue_tree import Conversion, Json, settle


@click.command()
@files_flag()
@click.option(
    "--gpu-resource",
    default="nvidia.com/gpu",
    show_default=True,
    metavar="NAME",
    help="Resource that KAI's gpu amounts are of.",
)
def queues(files: Sequence[Content], gpu_resource: str) -> None:
    """Convert queues or quotas to a tree of Volcano Queues: Kueue's ClusterQueues, LocalQueues and
    Cohorts, KAI's Queues (scheduling.run.ai), YuniKorn's queues.yaml or its ConfigMap.

    The Queues are printed as YAML, parents first, for `kubectl apply -f -`. What has no equivalent
    is listed in comments, and on standard error. Deserved amounts count with the plugin `capacity`
    in the scheduler configuration, weights with `proportion`.

    Exits with status 0, or 2 when a file cannot be read or has no queues.
    """
    try:
        documents = [document for file in files for document in _documents(file)]
        conversion = converted(documents, gpu_resource)
    except (ValueError, Refusal) as error:
        fail(f"cannot convert this: {error}")
    if not conversion.queues:
        fail("there are no queues in these files")
    click.echo(as_text(conversion))
    for line in _losses(conversion):
        click.echo(line, err=True)


def converted(documents: Sequence[Json], gpu_resource: str) -> Conversion:
    """The queues of these documents, in an order in which they can be created.

    Raises:
        ValueError: A name is missing, or a value cannot be read; with the object and the field.
    """
    conversion = Conversion()
    of_kueue = [document for document in documents if _is_of(document, kueue.GROUP, kueue.KINDS)]
    kueue.convert(of_kueue, conversion)
    of_kai = [document for document in documents if _is_of(document, kai.GROUP, kai.KINDS)]
    kai.convert(of_kai, conversion, gpu_resource=gpu_resource)
    for document in documents:
        config = _yunikorn(document)
        if config is not None:
            yunikorn.convert(config, conversion)
        elif document not in of_kueue and document not in of_kai:
            title = f"{document.get('kind', 'a document')} {_named(document)}".rstrip()
            conversion.losses.append(f"{title} has no queues that are read: it is left out")
    settle(conversion)
    return conversion


def as_text(conversion: Conversion) -> str:
    """The manifests, with what is lost as comments."""
    head = "".join(f"# {line}\n" for line in conversion.losses)
    bodies = [
        "".join(f"# {queue.source}: {line}\n" for line in queue.losses) + as_yaml(queue.manifest())
        for queue in conversion.queues
    ]
    return head + "\n---\n".join(bodies)


def _losses(conversion: Conversion) -> list[str]:
    of_queues = [f"{queue.source}: {line}" for queue in conversion.queues for line in queue.losses]
    return [*conversion.losses, *of_queues]


def _documents(file: Content) -> list[Json]:
    """The objects of a file, lists expanded, and configurations of YuniKorn, which have no kind."""
    documents: list[Json] = []
    for document in file.documents():
        if isinstance(document, dict) and "partitions" in document:
            documents.append(without_nulls(document))
        else:
            documents += [each for _, each in flattened([document])]
    return documents


def _is_of(document: Json, group: str, kinds: frozenset[str]) -> bool:
    return document.get("kind") in kinds and str(document.get("apiVersion", "")).startswith(
        f"{group}/"
    )


def _yunikorn(document: Json) -> Json | None:
    """The configuration, if the document is one or contains one."""
    if "partitions" in document:
        return document
    data = document.get("data")
    text = data.get(yunikorn.CONFIG_KEY) if isinstance(data, dict) else None
    config = read_document(text) if isinstance(text, str) else None
    return config if isinstance(config, dict) else None


def _named(document: Json) -> str:
    metadata = document.get("metadata")
    return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""
