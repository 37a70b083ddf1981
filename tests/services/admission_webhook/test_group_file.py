"""The admission configuration file: read, reloaded, and kept when its new content is broken."""

import asyncio
from pathlib import Path

import pytest

from services.admission_webhook.group_file import GroupFile
from shared.admission.resource_groups import BadConfiguration
from tests.support.waiting import eventually

ONE = "resourceGroups: [{resourceGroup: one, schedulerName: volcano}]"


def put(path: Path, content: str) -> None:
    """Change a file as a mounted ConfigMap changes: at once."""
    fresh = path.with_suffix(".new")
    fresh.write_text(content)
    fresh.replace(path)


def names(file: GroupFile) -> list[str]:
    return [group.resource_group for group in file.groups]


def test_without_a_file_there_are_no_groups() -> None:
    assert GroupFile("").groups == ()


@pytest.mark.parametrize(
    "content", ["resourceGroups: 7", "a: [", "[]", "a: !!timestamp 2026-13-45"]
)
def test_a_broken_file_is_refused_at_start(tmp_path: Path, content: str) -> None:
    path = tmp_path / "conf.yaml"
    path.write_text(content)
    with pytest.raises(BadConfiguration):
        GroupFile(str(path))


async def test_a_change_is_taken_and_a_broken_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "conf.yaml"
    path.write_text(ONE)
    file = GroupFile(str(path))
    assert names(file) == ["one"]
    changes: list[list[str]] = []
    watching = asyncio.create_task(
        file.watch(lambda: changes.append(names(file)), every_s=0.01), name="watch"
    )
    try:
        put(path, "resourceGroups: 7")
        put(path, ONE.replace("one", "two"))
        await eventually(lambda: changes == [["two"]])
        put(path, "resourceGroups: 7")
        put(path, "")
        await eventually(lambda: changes == [["two"], []])
    finally:
        watching.cancel()
        await asyncio.wait([watching])
