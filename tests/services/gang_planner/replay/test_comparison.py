"""A recording run through another configuration shows what it decides otherwise."""

import pathlib
import subprocess
import sys
from typing import Any

import pytest
from typing_extensions import override

from services.gang_planner.recorder import Frame, Recorder, list_segments
from services.gang_planner.replay.__main__ import start
from services.gang_planner.replay.comparison import compare
from services.gang_planner.replay.reproduction import reproduce
from shared.contracts import codec
from shared.contracts.decisions import EpochOpened
from shared.model.objects import PriorityClass
from tests.services.gang_planner.core.logged_scene import LoggedScene
from tests.services.gang_planner.core.scene import make_group, make_node, make_pods, make_shape
from tests.support.golden import Golden
from tests.support.snapshots import snapshot_of

SPREAD = "actions: enqueue, allocate\ntiers: [{plugins: [{name: priority}, {name: nodeorder}]}]"
PACKED = "actions: enqueue, allocate\ntiers: [{plugins: [{name: binpack}]}]"
NODES = [make_node(f"node-{index}") for index in range(3)]


class _Taped(LoggedScene):
    """A scene whose records are kept as frames."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        super().__init__(NODES, conf=SPREAD)

    @override
    def apply(self, record: Any) -> None:
        super().apply(record)
        payload = codec.encode(record)
        self.frames.append(Frame(kind="cluster", seq=self.cluster_seq, payload=payload))


def recorded() -> list[Frame]:
    """Two gangs that fill the cluster but for two CPUs, then two that want those."""
    scene = _Taped()
    scene.put(PriorityClass(uid="pc", name="urgent", resource_version=1, value=9))
    scene.put(make_group("first", 5), *make_pods("first", 5, make_shape({"cpu": 2000})))
    scene.settle()
    scene.carry_out(phase="Running")
    for name, fields in (("old", {"created_ms": 1}), ("urgent", {"priority_class": "urgent"})):
        scene.put(make_group(name, 2, **{"created_ms": 2, **fields}))
        scene.put(*make_pods(name, 2, make_shape({"cpu": 1000})))
    scene.settle()
    page = snapshot_of(NODES, at_ms=10_000, cluster_seq=1)
    epoch = EpochOpened(epoch=1, planner="p", at_ms=10_000, cluster_epoch=1)
    return [
        Frame(kind="configuration", payload=scene.conf.source.encode()),
        Frame(kind="snapshot", payload=codec.encode(page)),
        Frame(kind="decision", seq=1, payload=codec.encode(epoch)),
        *scene.frames,
        *(
            Frame(kind="outcome", seq=seq, payload=codec.encode(outcome))
            for seq, outcome in scene.outcomes
        ),
        *(
            Frame(kind="decision", seq=seq, payload=codec.encode(record))
            for seq, record in scene.records
        ),
    ]


def test_the_recorded_configuration_decides_the_same() -> None:
    frames = recorded()
    assert reproduce(frames).differences == []
    found = compare(frames, SPREAD)
    assert (found.differences, found.equal) == ([], 2)
    assert found.bound == (7, 7)


def test_another_configuration_places_others_elsewhere(golden: Golden) -> None:
    found = compare(recorded(), PACKED)
    golden(*found.differences)


def test_the_command_prints_the_differences_and_ends_with_1(tmp_path: pathlib.Path) -> None:
    recorder = Recorder(tmp_path, keep_s=600, keep_bytes=8 << 20)
    recorder.begin(recorded(), now_s=1000)
    recorder.flush()
    policy = tmp_path / "packed.conf"
    policy.write_text(PACKED)
    command = [sys.executable, "-m", "tutti.cli", "replay", str(list_segments(tmp_path)[0])]
    same = subprocess.run(command, capture_output=True, text=True)
    assert (same.returncode, same.stderr) == (0, "")
    assert "0 differ" in same.stdout
    other = subprocess.run(
        [*command, "--scheduler-conf", str(policy)], capture_output=True, text=True
    )
    assert other.returncode == 1
    assert "team/old: is placed at" in other.stdout
    assert "pods bound 7 instead of 7" in other.stdout
    policy.write_text("actions: dance")
    wrong = subprocess.run(
        [*command, "--scheduler-conf", str(policy)], capture_output=True, text=True
    )
    assert wrong.returncode == 2
    assert "unknown action 'dance'" in wrong.stderr


@pytest.mark.parametrize("content", [b"", b"a: [b\n", b"\0\0\0\1x", b"\xff" * 100])
def test_a_file_that_is_no_segment_is_refused_with_its_name(
    content: bytes, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "train.yaml"
    path.write_bytes(content)
    assert start([str(path)]) == 2
    assert capsys.readouterr().err.startswith(f"tutti: {path}: no segment of a recording")
