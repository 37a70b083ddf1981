"""Names of code in backticks: each must be defined in the product, or belong to a named vocabulary.

Checked are classes (`GangDecision`, `Ledger.settle`), our own modules and what they define
(`shared.bus.fence`), files (`fence.py`), paths in a service's core (`core/state/holds.py`) and
names with underscores (`pods_in_flight`). Tables that are made from the code, code blocks and pages
of history are left out.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from tests.documents.blocks import blocks
from tests.documents.links import ROOT, definitions

#: Reasons, kinds, effects and policies of Kubernetes.
KUBERNETES: Final = frozenset(
    {
        "DiscoveryFailed",
        "DisruptionTarget",
        "FailedMount",
        "FailedScheduling",
        "IfNotPresent",
        "NoExecute",
        "NoSchedule",
        "PodScheduled",
        "PreferNoSchedule",
        "ScheduleAnyway",
        "ValidatingAdmissionPolicy",
    }
)
#: A feature gate, files and metrics of Volcano.
VOLCANO: Final = frozenset(
    {
        "SchedulingGatesQueueAdmission",
        "last_time",
        "namespace_share",
        "namespace_weight",
        "namespace_weighted_share",
        "plugin_scheduling_latency_milliseconds",
        "volcano-controller.conf",
        "volcano-scheduler.conf",
    }
)
#: Files that programs make, or that users are asked to write.
MADE: Final = frozenset(
    {
        "NAME.py",
        "RELEASE-NOTES.md",
        "authorization.conf",
        "ca.crt",
        "krew-tutti.yaml",
        "provenance.json",
        "ready.json",
        "soak.svg",
        "tls.crt",
        "tls.key",
    }
)

_PACKAGES: Final = ("services", "shared", "tutti", "release", "tests", "bench")
_GENERATED: Final = re.compile(r"^<!-- table: .*?^<!-- end -->$", re.DOTALL | re.MULTILINE)
_FENCED: Final = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_QUOTED: Final = re.compile(r"`([^`\n]+)`")
_CLASS: Final = re.compile(r"([A-Z][a-z0-9]+(?:[A-Z][A-Za-z0-9]*)+)(?:\.(\w+))?(?:\(\))?")
_DOTTED: Final = re.compile(rf"(?:{'|'.join(_PACKAGES)})(?:\.\w+)+(?:\(\))?")
_CORE: Final = re.compile(r"core/[\w./-]*")
_FILE: Final = re.compile(r"[\w-]+\.(?:py|yaml|json|conf|toml|md|svg|crt|key)")
_SNAKE: Final = re.compile(r"_*[a-z0-9]+(?:_[a-z0-9]+)+(?:\(\))?")
_WORD: Final = re.compile(r"\w+")
_COMMENT: Final = re.compile(r"(?m)(?:^|\s)#.*$")
#: Files whose mentions of a name prove nothing.
_SELF: Final = ("symbols.py", "test_symbols.py")


def missing_symbols(page: str, text: str) -> Iterator[str]:
    """Names in a page's backticks that nothing defines, in the page's order."""
    own_files = {block.detail for block in blocks(page, text) if block.what == "file"}
    for name in _QUOTED.findall(_FENCED.sub("", _GENERATED.sub("", text))):
        if not _is_known(name, own_files):
            yield name


def _is_known(name: str, own_files: set[str]) -> bool:
    if _FILE.fullmatch(name):
        ours = {file.rpartition("/")[2] for file in own_files}
        return name in _file_names() | MADE | VOLCANO | ours
    if _CORE.fullmatch(name):
        cores = (ROOT / "services").glob(f"*/{name}")
        return any(cores) or any((ROOT / "services").glob(f"*/{name}.py"))
    if _DOTTED.fullmatch(name):
        return _is_module_or_member(name.removesuffix("()"))
    if (found := _CLASS.fullmatch(name)) is not None:
        if found[1] in KUBERNETES | VOLCANO:
            return True
        if found[2] and found[0] in _definitions():
            return True
        return found[1] in _words() and (found[2] is None or found[2] in _words())
    if _SNAKE.fullmatch(name):
        return name in VOLCANO or name.removesuffix("()") in _words()
    return True


def _is_module_or_member(name: str) -> bool:
    """Whether it is a module, a package, or something that a module defines or assigns."""
    path = name.replace(".", "/")
    if (ROOT / path).is_dir() or (ROOT / f"{path}.py").is_file():
        return True
    parent, _, member = path.rpartition("/")
    for file in (ROOT / f"{parent}.py", ROOT / parent / "__init__.py"):
        if file.is_file():
            text = file.read_text()
            assigned = re.search(rf"^{re.escape(member)}\b", text, re.MULTILINE)
            return member in definitions(text) or assigned is not None
    return False


@cache
def _definitions() -> frozenset[str]:
    return frozenset(
        name
        for package in _PACKAGES[:3]
        for path in (ROOT / package).rglob("*.py")
        for name in definitions(path.read_text())
    )


@cache
def _words() -> frozenset[str]:
    """Every word of the sources and of what is deployed, comments left out, and every metric."""
    found = set(_WORD.findall((ROOT / "docs" / "reference" / "metrics.md").read_text()))
    paths = [path for package in _PACKAGES for path in (ROOT / package).rglob("*.py")]
    paths += [path for path in (ROOT / "deploy").rglob("*") if path.is_file()]
    for path in paths:
        if path.name not in _SELF:
            found.update(_WORD.findall(_COMMENT.sub("", path.read_text())))
    return frozenset(found)


@cache
def _file_names() -> frozenset[str]:
    folders = (*_PACKAGES, "deploy", "docs", "requirements")
    found = {path.name for folder in folders for path in (ROOT / folder).rglob("*.*")}
    return frozenset(found | {path.name for path in ROOT.glob("*.*")})
