"""Runs programs under the real `ungil trace`, and reads what was recorded without ungil's help.

Slices are read by Perfetto's own protobuf classes. `check` recomputes from them what the report
says, in the most naive way, and is applied to every recording of every test.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import zlib
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import DecodeError
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import (
    BUILTIN_CLOCK_MONOTONIC,
    DebugAnnotation,
    Trace,
    TracePacket,
    TrackEvent,
)
from process_groups import program_of
from suite import PATIENCE_S, PROGRAMS

from ungil import _native

Words = Sequence[str | Path]


@dataclass
class Slice:
    """A wait or a hold, in nanoseconds of CLOCK_MONOTONIC."""

    name: str
    start_ns: int
    end_ns: int
    gil: int
    release: str | None = None
    culprit_tid: int | None = None
    unfinished: bool = False

    @property
    def length_ns(self) -> int:
        """How long it lasted."""
        return self.end_ns - self.start_ns


@dataclass
class Track:
    """A thread as the trace shows it."""

    process: int
    """Unique in the trace, unlike `pid`."""
    pid: int
    tid: int
    name: str
    slices: list[Slice] = field(default_factory=list[Slice])
    stacks: list[list[str]] = field(default_factory=list[list[str]])
    """As they were sampled, innermost frame first."""
    natives: list[list[str]] = field(default_factory=list[list[str]])
    """The native frames above them, where they were looked for."""
    parks: list[Slice] = field(default_factory=list[Slice])
    """The sleeps of a thread of a free-threaded interpreter."""

    def of(self, name: str, gil: int = 0) -> list[Slice]:
        """Its slices of that name at that GIL."""
        return [it for it in self.slices if it.name == name and it.gil == gil]


@dataclass(frozen=True)
class Recording:
    """What a run under `ungil trace` left behind."""

    status: int
    stdout: str
    stderr: str
    path: Path
    report: dict[str, Any]

    @property
    def processes(self) -> list[dict[str, Any]]:
        """The processes of the report."""
        return self.report["processes"]

    @property
    def process(self) -> dict[str, Any]:
        """Its only process."""
        (process,) = self.processes
        return process

    @property
    def gil(self) -> dict[str, Any]:
        """The only GIL of its only process."""
        (gil,) = self.process["gils"]
        return gil

    def thread(self, name: str) -> dict[str, Any]:
        """The row of the thread with that name."""
        (thread,) = [it for it in self.gil["threads"] if it["name"] == name]
        return thread

    def finding(self, kind: str) -> dict[str, Any]:
        """The finding of that kind."""
        found = [it for it in self.report["findings"] if it["kind"] == kind]
        assert len(found) == 1, self.report["findings"]
        return found[0]

    @property
    def told(self) -> Any:
        """What the program printed, if that was JSON."""
        return json.loads(self.stdout)

    @cached_property
    def tracks(self) -> list[Track]:
        """The threads of the trace file."""
        return read_tracks(self.path)

    def track(self, name: str) -> Track:
        """The thread of the trace file with that name."""
        (track,) = [it for it in self.tracks if it.name == name]
        return track


class Running:
    """`ungil trace` at work, in a session of its own that a signal can go to as a whole."""

    def __init__(
        self,
        folder: Path,
        words: Words,
        options: Words = (),
        before: Sequence[str] = (),
        **popen: Any,
    ) -> None:
        self.path = folder / "trace.pftrace"
        self._json = folder / "report.json"
        command = [*before, sys.executable, "-m", "ungil", "trace", "--quiet", "--force"]
        command += ["--json", str(self._json), "-o", str(self.path), *map(str, options), "--"]
        defaults: dict[str, Any] = {
            "cwd": folder,
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "text": True,
            "start_new_session": True,
        }
        self.popen = subprocess.Popen[str]([*command, *map(str, words)], **(defaults | popen))

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        if self.popen.poll() is None:
            os.killpg(self.popen.pid, signal.SIGKILL)
        self.popen.communicate()

    def read_line(self) -> str:
        """The next line that the program prints."""
        assert self.popen.stdout is not None
        return self.popen.stdout.readline().rstrip("\n")

    def wait_until(self, condition: Callable[[list[Track]], bool]) -> None:
        """Until what has been written of the unfinished trace fulfils `condition`."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            for unfinished in self.path.parent.glob(f".{self.path.name}.{self.popen.pid}-*.tmp"):
                # A chunk may be there in part.
                with suppress(DecodeError):
                    if condition(read_tracks(unfinished)):
                        return
            assert self.popen.poll() is None, "the program has ended"
            assert time.monotonic() < deadline, "it was never recorded"
            time.sleep(0.01)

    def signal_all(self, number: signal.Signals) -> None:
        """What a terminal does: a signal to ungil, the program, and its children."""
        os.killpg(self.popen.pid, number)

    def signal_program(self, number: signal.Signals) -> None:
        """A signal to the program alone."""
        os.kill(program_of(self.popen.pid), number)

    def finish(self, printed: str | None = None, lost: bool = False) -> Recording:
        """Wait for the end, and check what was recorded. `printed` is what was read before."""
        stdout, stderr = self.popen.communicate(timeout=PATIENCE_S)
        if printed is not None:
            stdout = f"{printed}\n{stdout}"
        assert self._json.exists(), stderr
        report = json.loads(self._json.read_text(encoding="utf-8"))
        recording = Recording(self.popen.returncode, stdout, stderr, self.path, report)
        check(recording, lost)
        return recording


def trace(
    folder: Path,
    *words: str | Path,
    options: Words = (),
    status: int = 0,
    named: Collection[str] = (),
    **popen: Any,
) -> Recording:
    """Run a program under `ungil trace` to its end, which must have that status.

    A recorder reads the names of threads a few times a second, and on a busy machine not even that.
    The input of the program ends when its threads have all the names of `named`.
    """
    if named:
        popen["stdin"] = subprocess.PIPE
    with Running(folder, words, options, **popen) as running:
        if named:
            running.wait_until(lambda tracks: {track.name for track in tracks}.issuperset(named))
        recording = running.finish()
    assert recording.status == status, recording.stderr
    return recording


def packets(path: Path) -> Iterator[TracePacket]:
    """All packets of a trace, decompressed."""
    for packet in Trace.FromString(path.read_bytes()).packet:
        if packet.HasField("compressed_packets"):
            yield from Trace.FromString(zlib.decompress(packet.compressed_packets)).packet
        else:
            yield packet


def read_tracks(path: Path) -> list[Track]:
    """The threads of a trace with their slices, in the order in which they appeared."""
    tracks: dict[int, Track] = {}
    sequences: dict[int, TracePacket] = {}
    open_slices: dict[int, Slice] = {}
    for packet in packets(path):
        if packet.HasField("clock_snapshot"):
            # Then a timestamp is the program's own time.monotonic_ns().
            assert packet.clock_snapshot.primary_trace_clock == BUILTIN_CLOCK_MONOTONIC
        if packet.sequence_flags & TracePacket.SEQ_INCREMENTAL_STATE_CLEARED:
            sequences[packet.trusted_packet_sequence_id] = packet
        if packet.track_descriptor.HasField("thread"):
            uuid, thread = packet.track_descriptor.uuid, packet.track_descriptor.thread
            process = packet.track_descriptor.parent_uuid
            track = tracks.setdefault(uuid, Track(process, thread.pid, thread.tid, ""))
            track.name = thread.thread_name
        if packet.HasField("track_event") and packet.track_event.name == "stack":
            # Native frames, if they were seen, come behind.
            stack = packet.track_event.debug_annotations[0]
            frames = [it.string_value for it in stack.array_values]
            tracks[packet.track_event.track_uuid].stacks.append(frames)
            for native in packet.track_event.debug_annotations[1:]:
                frames = [it.string_value for it in native.array_values]
                tracks[packet.track_event.track_uuid].natives.append(frames)
        if packet.HasField("track_event") and packet.track_event.name == "parked":
            # These are written when they are over.
            parks = tracks[packet.track_event.track_uuid].parks
            if packet.track_event.type == TrackEvent.TYPE_SLICE_BEGIN:
                parks.append(Slice("parked", packet.timestamp, -1, 0))
            else:
                parks[-1].end_ns = packet.timestamp
            continue
        if packet.HasField("track_event") and packet.track_event.type != TrackEvent.TYPE_INSTANT:
            first = sequences[packet.trusted_packet_sequence_id]
            defaults = first.trace_packet_defaults
            assert defaults.timestamp_clock_id == BUILTIN_CLOCK_MONOTONIC
            event = packet.track_event
            uuid = event.track_uuid or defaults.track_event_defaults.track_uuid
            names = {it.iid: it.name for it in first.interned_data.debug_annotation_names}
            said = {names[it.name_iid]: _value(it) for it in event.debug_annotations}
            if event.type == TrackEvent.TYPE_SLICE_BEGIN:
                assert uuid not in open_slices, "a thread does one thing at a time"
                kinds = {it.iid: it.name for it in first.interned_data.event_names}
                begun = Slice(kinds[event.name_iid], packet.timestamp, -1, said.get("gil", 0))
                open_slices[uuid] = begun
                tracks[uuid].slices.append(begun)
            else:
                ended = open_slices.pop(uuid)
                ended.end_ns = packet.timestamp
                ended.release, ended.culprit_tid = said.get("release"), said.get("culprit_tid")
                ended.unfinished = "unfinished" in said
    return list(tracks.values())


def _value(annotation: DebugAnnotation) -> Any:
    kind = annotation.WhichOneof("value")
    assert kind is not None
    return getattr(annotation, kind)


def check(recording: Recording, lost: bool = False) -> None:
    """What holds for every recording; `lost` if the test is about events that cannot be kept."""
    report = recording.report
    assert report["schema"] == 1
    assert report["findings"]
    assert report == json.loads(_native.read_trace(str(recording.path), 20.0))
    if lost:
        return
    assert report["lost_events"] == 0
    assert report["other_processes"] is None
    for track in recording.tracks:
        check_track(track)
    gils: dict[tuple[int, int], Sums] = defaultdict(Sums)
    blamed: Blame = defaultdict(float)
    for process in report["processes"]:
        assert process["unrecorded_threads"] == 0
        for gil in process["gils"]:
            check_gil(gil)
            gils[process["pid"], gil["gil"]].add(gil)
            for row in gil["blame"]:
                key = (process["pid"], gil["gil"], row["victim"], row["culprit"])
                blamed[key] += row["waited_s"]
    for key, sums in gils.items():
        slices = [it for track in recording.tracks if track.pid == key[0] for it in track.slices]
        shown = Sums.of_slices(slices, key[1])
        assert sums == shown, (key, sums, shown)
    if not any(gil["others"] for process in report["processes"] for gil in process["gils"]):
        assert blamed == pytest.approx(
            with_others(blame_of(recording.tracks), blamed), rel=1e-6, abs=1e-6
        )


def check_track(track: Track) -> None:
    """A thread does one thing after the other, and a wait ends with the hold that it was for."""
    for slice_ in track.slices:
        assert slice_.start_ns <= slice_.end_ns, slice_
    for slice_, following in pairwise(track.slices):
        assert slice_.end_ns <= following.start_ns, slice_
        if slice_.name == "wait":
            assert (following.name, following.gil) == ("hold", slice_.gil), slice_
            assert following.start_ns == slice_.end_ns


def check_gil(gil: Mapping[str, Any]) -> None:
    """The numbers of a GIL agree with its threads', and each thread's among themselves."""
    for thread in gil["threads"]:
        holds, waits = thread["holds"], thread["waits"]
        # The last hold may have ended with the process instead of a release.
        assert thread["voluntary"] + thread["forced"] in (holds["count"], holds["count"] - 1), (
            thread
        )
        assert waits["count"] <= holds["count"] + 1, thread
        assert holds["mean_us"] * holds["count"] == pytest.approx(thread["held_s"] * 1e6)
        assert waits["mean_us"] * waits["count"] == pytest.approx(thread["waited_s"] * 1e6)
        if thread["lost_events"] == 0 and gil["others"] is None:
            rows = [it["waited_s"] for it in gil["blame"] if it["victim"] == thread["tid"]]
            same = [it["waited_s"] for it in gil["threads"] if it["tid"] == thread["tid"]]
            assert sum(rows) == pytest.approx(sum(same), abs=1e-9), thread
    assert gil["contended_s"] <= gil["held_s"] + 1e-9


def check_releases(releases: int, forced: int, known: int) -> None:
    """A `threading` thread of Python 3 let go `known` times of its own accord.

    What it was made to do comes on top (a release of its own that came while somebody asked counts
    as forced too), and so do locks of `threading` itself, if others have them when it starts.
    """
    locks = 3
    assert known <= releases <= known + forced + locks, (releases, forced, known)


@dataclass
class Sums:
    """What all threads did to one GIL."""

    holds: int = 0
    waits: int = 0
    voluntary: int = 0
    forced: int = 0
    held_ns: int = 0
    waited_ns: int = 0

    def add(self, gil: Mapping[str, Any]) -> None:
        """As a report tells it."""
        others: Mapping[str, Any] = gil["others"] or defaultdict(int)
        self.voluntary += gil["voluntary"]
        self.forced += gil["forced"]
        for thread in gil["threads"]:
            self.holds += thread["holds"]["count"]
            self.waits += thread["waits"]["count"]
            self.held_ns += round(thread["held_s"] * 1e9)
            self.waited_ns += round(thread["waited_s"] * 1e9)
        self.holds += others["holds"]
        self.waits += others["waits"]
        self.held_ns += round(others["held_s"] * 1e9)
        self.waited_ns += round(others["waited_s"] * 1e9)

    @classmethod
    def of_slices(cls, slices: Sequence[Slice], gil: int) -> Sums:
        """As a trace shows it."""
        mine = [it for it in slices if it.gil == gil]
        holds = [it for it in mine if it.name == "hold"]
        waits = [it for it in mine if it.name == "wait"]
        return cls(
            holds=len(holds),
            waits=len(waits),
            voluntary=sum(it.release == "voluntary" for it in holds),
            forced=sum(it.release == "forced" for it in holds),
            held_ns=sum(it.length_ns for it in holds),
            waited_ns=sum(it.length_ns for it in waits),
        )


# By process id, GIL, tid of the victim, tid of the culprit, None for nobody or "others": seconds.
Blame = dict[tuple[int, int, int, int | str | None], float]


def blame_of(tracks: Sequence[Track]) -> Blame:
    """Each wait laid over the holds of its GIL; that no two of those overlap is checked too."""
    blame: Blame = defaultdict(float)
    for process, gil in sorted({(it.process, s.gil) for it in tracks for s in it.slices}):
        here = [track for track in tracks if track.process == process]
        holds = sorted(
            (hold.start_ns, hold.end_ns, track.tid)
            for track in here
            for hold in track.of("hold", gil)
        )
        ends = [end_ns for _, end_ns, _ in holds]
        assert all(
            end_ns <= next_ns for end_ns, (next_ns, _, _) in zip(ends, holds[1:], strict=False)
        ), "two threads held one GIL"
        for track in here:
            for wait in track.of("wait", gil):
                meanwhile: dict[int | None, int] = defaultdict(int)
                for start_ns, end_ns, tid in holds[bisect_left(ends, wait.start_ns) :]:
                    if start_ns >= wait.end_ns:
                        break
                    meanwhile[tid] += min(end_ns, wait.end_ns) - max(start_ns, wait.start_ns)
                if wait.culprit_tid is not None:
                    assert meanwhile[wait.culprit_tid] == max(meanwhile.values()), wait
                meanwhile[None] += wait.length_ns - sum(meanwhile.values())
                for tid, ns in meanwhile.items():
                    if ns > 0:
                        blame[track.pid, gil, track.tid, tid] += ns / 1e9
    return blame


def with_others(exact: Blame, told: Blame) -> Blame:
    """`exact` with the pairs that a report of too many pairs does not list charged to others."""
    summed = {key[:2] for key in told if key[3] == "others"}
    blame: Blame = defaultdict(float)
    for key, waited_s in exact.items():
        is_listed = key in told or key[:2] not in summed
        blame[key if is_listed else (*key[:3], "others")] += waited_s
    return blame


def compile_library(folder: Path, name: str = "truth", compiler: str = "cc") -> Path:
    """`tests/programs/NAME.c` as a shared library."""
    library = folder / f"{name}.so"
    source = PROGRAMS / f"{name}.c"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, source], check=True)
    return library
