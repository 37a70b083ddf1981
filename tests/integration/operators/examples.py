"""The example on an operator's page: its manifest is played, and its answers are the real ones."""

import re
from pathlib import Path
from typing import Final, NamedTuple

import yaml

from tests.controlplane.client import Object
from tests.documents.blocks import Block, blocks
from tests.documents.links import ROOT

#: Name of the workload on every page.
NAME: Final = "train"
_FOLDER: Final = ROOT / "docs" / "operators"


class Example(NamedTuple):
    """What a page shows."""

    text: str
    #: Output by command, as it is typed.
    answers: dict[str, str]

    def objects(self, name: str) -> list[Object]:
        """The objects of the manifest, for a workload of this name."""
        found = list(yaml.safe_load_all(re.sub(rf"\b{NAME}\b", name, self.text)))
        return [one for each in found for one in each.get("items", [each])]


def whole_gang(word: str, *manifests: Object) -> Example:
    """An example that is on no page: the last object has all its pods as one gang, by annotation.

    Args:
        word: The kind of that object, as users name it to `tutti why`.
        manifests: The objects; that one is named `train`.
    """
    manifests[-1]["metadata"]["annotations"] = {"tutti.dev/gang": "all"}
    reference = f"{word}/{NAME}"
    answers = {f"tutti why {reference}": f"{reference} waits: …"}
    return Example(yaml.safe_dump_all(manifests), answers)


def example_of(page: str, file: str = f"{NAME}.yaml", *, folder: Path = _FOLDER) -> Example:
    """The example on a page, by default of docs/operators, whose manifest is this file."""
    path = folder / f"{page}.md"
    found = list(blocks(path.relative_to(ROOT).as_posix(), path.read_text()))
    files = [at for at, one in enumerate(found) if one.what == "file"]
    (start,) = [at for at in files if found[at].detail == file]
    # The answers that follow a manifest are about it.
    end = min((at for at in files if at > start), default=len(found))
    return Example(found[start].text, _answers(found[start:end]))


def _answers(found: list[Block]) -> dict[str, str]:
    typed = [each for one in found if one.typed for each in one.commands()]
    return {each.typed: each.output for each in typed}
