"""A recording is a folder of segments, each of which can be read alone, within its bounds."""

import pathlib

from services.gang_planner.recorder import Frame, Recorder, list_segments, read_segment

_BASE = [Frame(kind="configuration", payload=b"actions: allocate")]


def _recorder(folder: pathlib.Path, *, keep_s: int = 600, keep_bytes: int = 8 << 20) -> Recorder:
    return Recorder(folder, keep_s=keep_s, keep_bytes=keep_bytes, segment_s=300)


def test_what_was_recorded_is_read_back_in_order_behind_its_base(tmp_path: pathlib.Path) -> None:
    recorder = _recorder(tmp_path)
    frames = [Frame(kind="cluster", seq=seq, payload=bytes([seq])) for seq in range(5)]
    recorder.begin(_BASE, now_s=1000)
    for frame in frames:
        recorder.append(frame)
    recorder.flush()
    assert list(read_segment(list_segments(tmp_path)[0])) == _BASE + frames


def test_a_frame_cut_off_by_a_kill_is_left_out(tmp_path: pathlib.Path) -> None:
    recorder = _recorder(tmp_path)
    recorder.begin(_BASE, now_s=1000)
    recorder.append(Frame(kind="cluster", seq=1, payload=b"whole"))
    recorder.append(Frame(kind="cluster", seq=2, payload=b"torn"))
    recorder.flush()
    path = list_segments(tmp_path)[0]
    path.write_bytes(path.read_bytes()[:-3])
    assert [frame.seq for frame in read_segment(path)] == [0, 1]


def test_frames_before_the_first_base_are_dropped_because_nothing_could_replay_them(
    tmp_path: pathlib.Path,
) -> None:
    recorder = _recorder(tmp_path)
    recorder.append(Frame(kind="cluster", seq=1, payload=b"early"))
    recorder.begin(_BASE, now_s=1000)
    recorder.flush()
    assert list(read_segment(list_segments(tmp_path)[0])) == _BASE


def test_a_segment_is_due_at_first_then_by_age_or_by_size(tmp_path: pathlib.Path) -> None:
    recorder = _recorder(tmp_path, keep_bytes=800)
    assert recorder.due(1000)
    recorder.begin(_BASE, now_s=1000)
    assert not recorder.due(1299)
    assert recorder.due(1300)
    recorder.append(Frame(kind="cluster", seq=1, payload=b"x" * 100))
    assert recorder.due(1001)


def test_segments_beyond_the_age_are_deleted_but_never_the_newest(tmp_path: pathlib.Path) -> None:
    recorder = _recorder(tmp_path, keep_s=600)
    for now_s in (1000, 1300, 1600, 1900, 2200, 9000):
        recorder.begin(_BASE, now_s=now_s)
    recorder.flush()
    assert [path.name.split(".")[0] for path in list_segments(tmp_path)] == ["000000009000"]


def test_segments_beyond_the_size_are_deleted_oldest_first(tmp_path: pathlib.Path) -> None:
    recorder = _recorder(tmp_path, keep_bytes=3000)
    for now_s in range(1000, 1010):
        recorder.begin(_BASE, now_s=now_s)
        recorder.append(Frame(kind="cluster", seq=1, payload=b"x" * 1000))
        recorder.flush()
    kept = list_segments(tmp_path)
    assert kept[-1].name.startswith("000000001009")
    assert sum(path.stat().st_size for path in kept) <= 3000 + 1200
