"""A recording as a trace: what was recorded is decided again, and simulated otherwise."""

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import click.testing
import pytest

from services.gang_planner.recorder import Frame, Recorder, list_segments
from shared.contracts import codec
from shared.contracts.cluster import Gone, PodChanges
from tests.services.gang_planner.replay.test_comparison import PACKED, recorded
from tests.support.golden import Golden
from tutti.simulate.command import simulate


def segment(folder: Path, frames: list[Frame], now_s: int = 1000) -> Path:
    recorder = Recorder(folder, keep_s=600, keep_bytes=8 << 20)
    recorder.begin(frames, now_s=now_s)
    recorder.flush()
    return list_segments(folder)[-1]


def bundle(tmp_path: Path, *segments: Path) -> Path:
    path = tmp_path / "report.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        for name, content in (
            ("manifest.json", b"{}"),
            *((s.name, s.read_bytes()) for s in segments),
        ):
            header = tarfile.TarInfo(f"report/recordings/gang-planner-1/{name}")
            header.size = len(content)
            tar.addfile(header, io.BytesIO(content))
    return path


def ended(frames: list[Frame]) -> list[Frame]:
    """The recording, and the end of its gang `first` a minute after the last record."""
    records = [codec.decode_cluster(frame.payload) for frame in frames if frame.kind == "cluster"]
    pods = {
        pod.uid: pod for each in records if isinstance(each, PodChanges) for pod in each.changed
    }
    gone = tuple(
        Gone(uid=pod.uid, resource_version=10**6)
        for pod in pods.values()
        if pod.group_name == "first"
    )
    at_ms = max(each.at_ms for each in records if isinstance(each, PodChanges)) + 60_000
    seq = max(frame.seq for frame in frames if frame.kind == "cluster") + 1
    end = codec.encode(PodChanges(epoch=1, at_ms=at_ms, removed=gone))
    return [*frames, Frame(kind="cluster", seq=seq, payload=end)]


def run(*arguments: object) -> Any:
    return click.testing.CliRunner().invoke(simulate, [str(each) for each in arguments])


@pytest.mark.slow
def test_an_unchanged_configuration_reproduces_all_decisions(
    tmp_path: Path, golden: Golden
) -> None:
    one, other = (segment(tmp_path / name, recorded()) for name in ("a", "b"))
    result = run(bundle(tmp_path, one, other))
    assert result.exit_code == 0
    golden(result.stdout)


@pytest.mark.slow
def test_the_first_decision_that_is_not_reproduced_is_named(tmp_path: Path) -> None:
    frames = recorded()
    without = next(at for at, frame in enumerate(frames) if frame.kind == "cluster" and at > 3)
    del frames[without]
    result = run(segment(tmp_path, frames), "-o", "json")
    assert result.exit_code == 1
    (report,) = json.loads(result.stdout)["segments"]
    assert report["differing"] > 0
    assert report["differences"][0].startswith("record ")
    assert report["differsFrom"].startswith("1970-01-01T")


@pytest.mark.slow
def test_another_configuration_is_simulated_beside_the_recorded_one(tmp_path: Path) -> None:
    (tmp_path / "packed.conf").write_text(PACKED)
    path = bundle(tmp_path, segment(tmp_path / "a", ended(recorded())))
    report = json.loads(run(path, "--conf", tmp_path / "packed.conf", "-o", "json").stdout)
    assert report["segments"][0]["differing"] == 0
    assert [each["configuration"] for each in report["configurations"]] == [
        "recorded configuration",
        str(tmp_path / "packed.conf"),
    ]
    assert report["unit"] == "millicpu"
    assert [each["finished"] for each in report["configurations"]] == [report["jobs"]] * 2


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [((), "must have recordings, has none"), (("--jobs", "3"), "only --conf applies")],
)
def test_refusals(tmp_path: Path, arguments: tuple[str, ...], rule: str) -> None:
    result = run(bundle(tmp_path), *arguments)
    assert result.exit_code == 2
    assert rule in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("content", [b"", b"\0\0\0\1x", b"\xff" * 100])
def test_a_file_that_is_no_segment_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "1.tutti-recording"
    path.write_bytes(content)
    result = run(path)
    assert result.exit_code == 2
    assert "no segment of a recording" in result.stderr


def test_an_archive_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    whole = bundle(tmp_path, segment(tmp_path / "a", recorded()))
    path = tmp_path / "cut.tar.gz"
    path.write_bytes(whole.read_bytes()[:-2000])
    result = run(path)
    assert result.exit_code == 2
