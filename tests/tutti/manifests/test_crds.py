"""The committed CRDs are those of the kinds in the code."""

from pathlib import Path

import pytest

from shared.kinds.catalogue import CATALOGUE
from shared.kube.decoding import without_nulls
from tutti.manifests.crds import files, manifest, manifests

FOLDER = Path(__file__).parents[3] / "deploy" / "crds"


def test_the_committed_files_are_what_make_manifests_writes() -> None:
    committed = {
        path.relative_to(FOLDER).as_posix(): path.read_text("utf-8")
        for path in FOLDER.rglob("*.yaml")
    }

    assert sorted(committed) == sorted(files())
    for name, text in files().items():
        assert committed[name] == text, f"{name}: run `make manifests`"


def test_a_caller_that_changes_a_manifest_changes_no_other() -> None:
    (first, *_), (second, *_) = manifests(), manifests()

    first["spec"]["names"]["plural"] = "others"

    assert second["spec"]["names"]["plural"] == "jobs"


@pytest.mark.parametrize("description", CATALOGUE, ids=lambda d: d.resource.title)
def test_every_schema_is_structural(description: object) -> None:
    """Each level has a type, or is an amount; no references, no nulls: the API server's rule."""
    made = manifest(description)  # type: ignore[arg-type]  # pytest gives the ids their type only
    schema = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    waiting = [("", schema)]
    while waiting:
        path, found = waiting.pop()
        typed = "type" in found or found.get("x-kubernetes-int-or-string")
        assert typed, path
        assert "$ref" not in found, path
        assert found == without_nulls(found), path
        waiting += [(f"{path}.{key}", each) for key, each in found.get("properties", {}).items()]
        waiting += [(f"{path}[]", found[key]) for key in ("items",) if key in found]
        if isinstance(found.get("additionalProperties"), dict):
            waiting.append((f"{path}.*", found["additionalProperties"]))
