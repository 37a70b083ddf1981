"""Commands of bus.volcano.sh: requests to the controllers about a Job or a Queue.

A Command is owned by its target, so that it is deleted with it if no controller handles it.
"""

from typing import Literal, TypeAlias

from shared.kube.client import KubeClient
from shared.kube.resources import COMMANDS, Resource
from tutti.api.fetches import get
from tutti.api.objects import Object, text

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
    return {
        "apiVersion": COMMANDS.api_version,
        "kind": COMMANDS.kind,
        "metadata": {
            "generateName": f"{owner['name']}-{action.lower()}-",
            "ownerReferences": [owner],
        },
        "action": action,
        "target": owner,
    }


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
