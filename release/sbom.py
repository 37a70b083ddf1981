"""The bill of materials of the image, as CycloneDX: wheels of the lock, and Debian's packages."""

import json
import sys
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from release.debian import DebianPackage
from release.image import instant
from release.oci import canonical
from release.python_packages import run_tool
from release.source import PROJECT, Source

_NAMESPACE: Final = uuid.UUID("6d5f9ad6-6f0b-5b8f-9d0f-2b9d9c3a7c11")


class InvalidBillError(RuntimeError):
    """The bill breaks CycloneDX's schema; the message has the schema's complaint."""


def bill_of_materials(source: Source, packages: Iterable[DebianPackage], work: Path) -> bytes:
    """The bill as JSON, checked by the schema.

    Raises:
        BuildError: cyclonedx-py failed.
        InvalidBillError: The result is not CycloneDX.
    """
    made = work / "python.cdx.json"
    command = (sys.executable, "-m", "cyclonedx_py", "requirements", "--output-reproducible")
    root = ("--pyproject", str(source.folder / PROJECT), "--mc-type", "application")
    lock = source.folder / "requirements" / "runtime.lock"
    run_tool(*command, *root, "--output-file", str(made), str(lock), cwd=work)
    bill = json.loads(made.read_text("utf-8"))
    add_packages(bill, packages)
    # No clock and no random number: the same content has the same number.
    bill["metadata"]["timestamp"] = instant(source.epoch)
    number = uuid.uuid5(_NAMESPACE, canonical(bill).decode())
    bill["serialNumber"] = f"urn:uuid:{number}"
    text = json.dumps(bill, indent=2, sort_keys=True) + "\n"
    _check(text)
    return text.encode()


def add_packages(bill: dict[str, Any], packages: Iterable[DebianPackage]) -> None:
    """Add Debian's packages to a bill as components of the same image."""
    components = [_component(one) for one in sorted(packages)]
    bill["components"] = [*bill.get("components", ()), *components]
    dependencies = [{"ref": one["bom-ref"]} for one in components]
    bill["dependencies"] = [*bill.get("dependencies", ()), *dependencies]


def _component(package: DebianPackage) -> dict[str, Any]:
    version = package.version.replace(":", "%3A").replace("+", "%2B").replace("~", "%7E")
    locator = f"pkg:deb/debian/{package.name.replace('+', '%2B')}@{version}"
    locator = f"{locator}?arch={package.architecture}&distro=debian-12"
    return {
        "bom-ref": locator,
        "hashes": [{"alg": "SHA-256", "content": package.sha256}],
        "name": package.name,
        "purl": locator,
        "type": "library",
        "version": package.version,
    }


def _check(text: str) -> None:
    # Only the release's own environment has it.
    from cyclonedx.schema import SchemaVersion  # pyright: ignore[reportMissingImports] - see above
    from cyclonedx.validation.json import JsonStrictValidator  # pyright: ignore[reportMissingImports] - see above

    version = SchemaVersion.from_version(json.loads(text)["specVersion"])
    error = JsonStrictValidator(version).validate_str(text)
    if error is not None:
        raise InvalidBillError(f"the bill of materials: {error!r}"[:2000])
