"""The seeds' TFJobs as printed, and the experiment's changes to them.

The files have the words of the printed texts with the indentation restored.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from shared.contracts.annotations import GROUP_NAME
from shared.yaml_documents import read_document

Manifest = dict[str, Any]

#: Seed 000: one ps, one worker with a GPU, on nodes with the label gpu=1060g1.
GANG_SCHEDULING: Final = "000-gang-scheduling.yaml"
#: Seed 000: workers alone, with an explicit PodGroup name.
PODGROUP: Final = "000-podgroup.yaml"
#: Seed 002: one ps, one worker; its operator declares the gang by a PodDisruptionBudget.
BUDGET: Final = "002-gang-scheduling.yaml"

_FOLDER: Final = Path(__file__).parent / "manifests"


def printed(file: str) -> Manifest:
    """A manifest as the seed prints it."""
    content: Manifest = read_document((_FOLDER / file).read_text())
    return content


def varied(
    file: str, replicas: Mapping[str, int], *, name: str = "", scheduler_name: str = ""
) -> Manifest:
    """A manifest with the experiment's changes: the number of pods of some replica types, another
    name (the group's name, which must equal it, follows) and another scheduler.
    """
    job = printed(file)
    types = job["spec"]["tfReplicaSpecs"]
    for kind, count in replicas.items():
        types[kind]["replicas"] = count
    if name:
        job["metadata"]["name"] = name
    for replica in types.values():
        annotations = replica["template"].get("metadata", {}).get("annotations", {})
        if name and GROUP_NAME in annotations:
            annotations[GROUP_NAME] = name
        if scheduler_name:
            replica["template"]["spec"]["schedulerName"] = scheduler_name
    return job


def size(job: Manifest) -> int:
    """The number of its pods."""
    return sum(replica["replicas"] for replica in job["spec"]["tfReplicaSpecs"].values())
