"""A trace is a Perfetto trace: Perfetto's own protobuf classes read it, ours are not asked.

``check_trace`` holds for every trace that ungil writes, and returns what is in it.
"""

from __future__ import annotations

import subprocess
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import (
    BUILTIN_CLOCK_BOOTTIME,
    BUILTIN_CLOCK_MONOTONIC,
    BUILTIN_CLOCK_REALTIME,
    DebugAnnotation,
    Trace,
    TracePacket,
    TrackDescriptor,
    TrackEvent,
)
from suite import RUST_FEATURES

REPOSITORY = Path(__file__).parents[1]


@dataclass
class Event:
    """A slice, or an instant, which ends where it begins."""

    track: int
    name: str
    begin_ns: int
    end_ns: int
    args: dict[str, Any]


@dataclass
class Contents:
    """What a trace shows in the Perfetto UI."""

    tracks: dict[int, TrackDescriptor] = field(default_factory=dict[int, TrackDescriptor])
    """The last descriptor of each track."""
    slices: list[Event] = field(default_factory=list[Event])
    instants: list[Event] = field(default_factory=list[Event])

    def of_thread(self, name: str) -> list[Event]:
        """Slices of the threads with this name."""
        return [slice_ for slice_ in self.slices if self.thread_name(slice_.track) == name]

    def thread_name(self, track: int) -> str:
        """The name of the thread whose track this is."""
        return self.tracks[track].thread.thread_name


@dataclass
class Sequence:
    """What the first packet of a sequence says about the others."""

    defaults: TracePacket
    event_names: dict[int, str]
    annotation_names: dict[int, str]


def check_trace(path: Path) -> Contents:
    """Check everything that a trace of ungil promises, whatever was traced."""
    contents = Contents()
    sequences: dict[int, Sequence] = {}
    open_slices: dict[int, list[Event]] = {}
    clocks: set[int] = set()
    events: list[Event] = []
    for packet in packets(path):
        assert not unknown_fields(packet), packet
        assert packet.trusted_packet_sequence_id, packet
        if packet.HasField("clock_snapshot"):
            clocks |= {clock.clock_id for clock in packet.clock_snapshot.clocks}
            assert packet.clock_snapshot.primary_trace_clock == BUILTIN_CLOCK_MONOTONIC
        if packet.sequence_flags & TracePacket.SEQ_INCREMENTAL_STATE_CLEARED:
            assert packet.trusted_packet_sequence_id not in sequences
            sequences[packet.trusted_packet_sequence_id] = Sequence(
                packet,
                {name.iid: name.name for name in packet.interned_data.event_names},
                {name.iid: name.name for name in packet.interned_data.debug_annotation_names},
            )
        if packet.HasField("track_descriptor"):
            contents.tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        if packet.HasField("track_event"):
            assert clocks == {
                BUILTIN_CLOCK_MONOTONIC,
                BUILTIN_CLOCK_BOOTTIME,
                BUILTIN_CLOCK_REALTIME,
            }
            assert packet.sequence_flags & TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
            sequence = sequences[packet.trusted_packet_sequence_id]
            event = decode(packet, sequence)
            stack = open_slices.setdefault(event.track, [])
            match packet.track_event.type:
                case TrackEvent.TYPE_SLICE_BEGIN:
                    stack.append(event)
                    contents.slices.append(event)
                case TrackEvent.TYPE_SLICE_END:
                    begun = stack.pop()
                    assert event.begin_ns >= begun.begin_ns, (begun, event)
                    assert not begun.args.keys() & event.args.keys()
                    begun.end_ns = event.end_ns
                    begun.args |= event.args
                case _:
                    assert packet.track_event.type == TrackEvent.TYPE_INSTANT
                    contents.instants.append(event)
            events.append(event)
    assert not any(open_slices.values()), "a slice is left open"
    assert (events[0].name, events[0].args["schema"]) == ("ungil", 1)
    assert contents.tracks[events[0].track].name == "ungil"
    assert (events[-1].name, events[-1].track) == ("end", events[0].track)
    check_tracks(contents)
    for slice_ in contents.slices:
        check_slice(contents, slice_)
    return contents


def check_tracks(contents: Contents) -> None:
    """Every event is on a track, every thread has its process."""
    for event in [*contents.slices, *contents.instants]:
        assert event.track in contents.tracks, event
    for track in contents.tracks.values():
        if track.HasField("thread"):
            assert track.thread.HasField("tid")
            assert track.thread.pid == contents.tracks[track.parent_uuid].process.pid


def check_slice(contents: Contents, slice_: Event) -> None:
    """A slice is on a thread's track, and says how it ended."""
    assert contents.tracks[slice_.track].HasField("thread"), slice_
    args = slice_.args
    if slice_.name == "parked":
        assert args["since_ns"] == slice_.begin_ns, slice_
        assert args["cause"] == "lock off the GIL", slice_
        assert args["ending"] in ("woken", "let go", "alone", "unfinished"), slice_
        assert ("waker" in args) == ("waker_tid" in args), slice_
        return
    assert slice_.name in ("wait", "hold"), slice_
    if slice_.name == "hold":
        assert args.keys() <= {"gil", "release", "unfinished"}, slice_
        assert ("release" in args) != ("unfinished" in args), slice_
        assert args.get("release", "forced") in ("voluntary", "forced"), slice_
    else:
        assert args.keys() <= {"gil", "culprit", "culprit_tid", "unfinished"}, slice_
        assert ("culprit" in args) == ("culprit_tid" in args), slice_
    assert args.get("gil", 1) > 0, slice_
    assert args.get("unfinished", True) is True, slice_


def packets(path: Path) -> Iterator[TracePacket]:
    """All packets of a trace, as ``trace_processor`` sees them."""
    trace = Trace.FromString(path.read_bytes())
    assert not UnknownFieldSet(trace)
    for packet in trace.packet:
        if packet.HasField("compressed_packets"):
            yield from Trace.FromString(zlib.decompress(packet.compressed_packets)).packet
        else:
            yield packet


def unknown_fields(message: Message) -> list[str]:
    """Names of the messages in ``message`` that hold fields which Perfetto does not know."""
    found = [message.DESCRIPTOR.name] if len(UnknownFieldSet(message)) else []
    for descriptor, value in message.ListFields():
        if descriptor.message_type is not None:
            parts = value if descriptor.is_repeated else [value]
            found += [name for part in parts for name in unknown_fields(part)]
    return found


def decode(packet: TracePacket, sequence: Sequence) -> Event:
    """The event of a packet, with the defaults and names of its sequence."""
    defaults = sequence.defaults.trace_packet_defaults
    assert defaults.timestamp_clock_id == BUILTIN_CLOCK_MONOTONIC
    event = packet.track_event
    return Event(
        event.track_uuid or defaults.track_event_defaults.track_uuid,
        sequence.event_names[event.name_iid] if event.name_iid else event.name,
        packet.timestamp,
        packet.timestamp,
        {
            annotation_name(annotation, sequence.annotation_names): annotation_value(annotation)
            for annotation in event.debug_annotations
        },
    )


def annotation_name(annotation: DebugAnnotation, names: Mapping[int, str]) -> str:
    """Its name, interned or not."""
    return names[annotation.name_iid] if annotation.name_iid else annotation.name


def annotation_value(annotation: DebugAnnotation) -> Any:
    """Its value as Python has it."""
    value = annotation.WhichOneof("value")
    if value is None:
        return [annotation_value(element) for element in annotation.array_values]
    return getattr(annotation, value)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Contents:
    """The trace of ``examples/sample_trace.rs``."""
    path = tmp_path_factory.mktemp("trace") / "sample.pftrace"
    command = ["cargo", "run", "--quiet", *RUST_FEATURES, "--example", "sample_trace"]
    subprocess.run([*command, path], cwd=REPOSITORY, check=True)
    return check_trace(path)


def test_waits_and_holds_are_slices_of_their_thread(sample: Contents) -> None:
    worker = sample.of_thread("worker-1")
    assert [(slice_.name, slice_.begin_ns, slice_.end_ns) for slice_ in worker] == [
        ("wait", 210, 5_000_500),
        ("hold", 5_000_500, 6_000_000),
        ("hold", 6_000_100, 6_000_200),
        ("wait", 6_000_200, 6_000_300),
    ]


def test_a_wait_names_its_culprit_and_a_hold_its_release(sample: Contents) -> None:
    (main,) = sample.of_thread("python3")
    assert main.args == {"release": "forced"}
    wait, hold = sample.of_thread("worker-1")[:2]
    assert wait.args == {"culprit": "python3", "culprit_tid": 4242}
    assert hold.args == {"release": "voluntary"}


def test_slices_whose_events_were_lost_are_closed(sample: Contents) -> None:
    hold, wait = sample.of_thread("worker-1")[2:]
    assert hold.args == wait.args == {"gil": 1, "unfinished": True}
    (release,) = [instant for instant in sample.instants if instant.name == "release"]
    assert release.args == {"gil": 1, "release": "voluntary"}
    (waiting,) = sample.of_thread("a.out")
    assert (waiting.name, waiting.end_ns, waiting.args) == (
        "wait",
        last(sample),
        {"unfinished": True},
    )


def last(contents: Contents) -> int:
    """When the trace ends."""
    return contents.instants[-1].begin_ns


def test_an_image_after_exec_is_a_process_of_its_own(sample: Contents) -> None:
    processes = [track.process for track in sample.tracks.values() if track.HasField("process")]
    assert [(process.pid, process.process_name) for process in processes] == [
        (4242, "python3 server.py --port 80"),
        (4242, "a.out"),
    ]
    assert list(processes[0].cmdline) == ["/usr/bin/python3", "server.py", "--port", "80"]
    threads = [track.thread for track in sample.tracks.values() if track.HasField("thread")]
    assert [(thread.tid, thread.thread_name) for thread in threads] == [
        (4242, "python3"),
        (4243, "worker-1"),
        (4242, "a.out"),
    ]


def test_instants_carry_what_a_person_wants_to_know(sample: Contents) -> None:
    args = {instant.name: instant.args for instant in sample.instants}
    assert args["stack"] == {
        "stack": ["spin (/srv/app (2)/server.py:7)", "<module> (server.py:12)"],
        "native": ["spin_for = _fast.spin [/srv/app (2)/_fast.so]"],
    }
    assert args["stopped"] == {"stood_ns": 25_000}
    assert args["drop request"] == {}
    assert args["scheduled"] == {"ran_ns": 2_000_000, "delayed_ns": 3_000_000, "runnable": 1}
    assert args["throttled"] == {"times": 2, "stopped_ns": 160_000_000}
    ran = [instant.args for instant in sample.instants if instant.name == "ran"]
    assert ran == [{"cpu_ns": 2_000_000, "blocked": True}, {}]
    assert args["note"] == {"text": "stacks are missing: ptrace is not permitted"}
    assert args["process totals"] == {
        "switch_interval_ns": 5_000_000,
        "policy": 0,
        "unrecorded_threads": 0,
        "clock_error_ns": 60,
    }
    assert args["thread totals"] == {
        "waits": 1,
        "waited_ns": 5_000_290,
        "holds": 1,
        "held_ns": 999_500,
        "voluntary": 1,
        "forced": 0,
        "drop_requests": 1,
        "cpu_ns": 2**64 - 1,
        "voluntary_switches": 0,
        "involuntary_switches": 0,
        "lost_events": 3,
    }
    started = [instant.args for instant in sample.instants if instant.name == "process started"]
    assert [process.get("not_recorded") for process in started] == [
        None,
        "PyPy has a GIL of its own kind",
    ]
    assert started[0] == {
        "pid": 4242,
        "parent_pid": 1,
        "argv": ["/usr/bin/python3", "server.py", "--port", "80"],
        "python": "3.13.0",
        "processors": 4,
        "cpu_limit_thousandths": 1_500,
    }
