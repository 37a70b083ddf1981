"""A rolling recording of all inputs of a planner, which reproduces its decisions byte for byte.

The standby keeps it, because the active planner only decides. A recording is a folder of segments;
each begins with a base (configuration, snapshot pages, checkpoint) and continues with the records
of the three logs as they were applied, so that each segment can be replayed alone. A frame is a
4-byte big-endian length and the msgpack of a `Frame`.

Bounds: segments older than `keep_s` or beyond `keep_bytes` are deleted, oldest first; at least one
is kept.
"""

import pathlib
import struct
from collections.abc import Iterable
from typing import Final, Literal

import msgspec

FrameKind = Literal["configuration", "snapshot", "checkpoint", "cluster", "decision", "outcome"]

_LENGTH: Final = struct.Struct(">I")
_SUFFIX: Final = ".tutti-recording"


class Frame(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One record: `payload` is the message's own bytes, `seq` its sequence in its stream; 0 for the
    parts of the base.
    """

    kind: FrameKind
    seq: int = 0
    payload: bytes


class NoSegment(ValueError):
    """The file is no segment of a recording, or its base is cut off."""


class Recorder:
    """Writes frames into the newest segment; the caller begins a new one when `due` says so.

    Args:
        folder: where segments lie; created when missing.
        keep_s: age in seconds beyond which a finished segment is deleted.
        keep_bytes: size of all segments beyond which the oldest are deleted.
        segment_s: a segment older than this many seconds is due.
    """

    def __init__(
        self, folder: pathlib.Path, *, keep_s: int, keep_bytes: int, segment_s: int = 300
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._keep_s = keep_s
        self._keep_bytes = keep_bytes
        self._segment_s = segment_s
        self._segment_bytes = keep_bytes // 8
        self._encode = msgspec.msgpack.Encoder().encode
        self._file: pathlib.Path | None = None
        self._begun_s = 0
        self._buffer = bytearray()
        self._written = 0

    def due(self, now_s: int) -> bool:
        """Whether a new segment should begin: there is none, or it is old or large enough."""
        return (
            self._file is None
            or now_s - self._begun_s >= self._segment_s
            or self._written >= self._segment_bytes
        )

    def begin(self, base: Iterable[Frame], now_s: int) -> None:
        """Close the current segment, drop what is beyond the bounds, begin one with `base`."""
        self.flush()
        self._begun_s = now_s
        self._written = 0
        self._file = self._folder / f"{now_s:012d}{_SUFFIX}"
        self._file.write_bytes(b"")
        for frame in base:
            self.append(frame)
        self._prune(now_s)

    def append(self, frame: Frame) -> None:
        """Add one frame; it reaches the file when 64 KiB are buffered, or at `flush`."""
        data = self._encode(frame)
        self._buffer += _LENGTH.pack(len(data)) + data
        self._written += len(data)
        if len(self._buffer) >= 64 * 1024:
            self.flush()

    def flush(self) -> None:
        """Write the buffered frames; without a segment, which replays need, drop them."""
        if self._file is not None and self._buffer:
            with self._file.open("ab") as file:
                file.write(self._buffer)
        self._buffer.clear()

    def _prune(self, now_s: int) -> None:
        segments = list_segments(self._folder)
        total = sum(path.stat().st_size for path in segments)
        for path in segments[:-1]:
            begun_s = int(path.name.removesuffix(_SUFFIX))
            if now_s - begun_s <= self._keep_s + self._segment_s and total <= self._keep_bytes:
                break
            total -= path.stat().st_size
            path.unlink()


def list_segments(folder: pathlib.Path) -> list[pathlib.Path]:
    """The segments of a recording, oldest first."""
    return sorted(folder.glob(f"*{_SUFFIX}"))


def read_segment(path: pathlib.Path) -> list[Frame]:
    """The frames of one segment, without a last frame that a kill cut off.

    Raises:
        NoSegment: It has other content.
        OSError: The file cannot be read.
    """
    decode = msgspec.msgpack.Decoder(Frame).decode
    data = path.read_bytes()
    frames: list[Frame] = []
    at = 0
    while at + _LENGTH.size <= len(data):
        (length,) = _LENGTH.unpack_from(data, at)
        begin, at = at + _LENGTH.size, at + _LENGTH.size + length
        if at > len(data):
            break
        try:
            frames.append(decode(data[begin:at]))
        except msgspec.DecodeError as error:
            raise NoSegment(f"{path}: no segment of a recording: {error}") from error
    return frames
