"""A message bus on a socket of ours, with accessible applications on it that answer, fail, hang or lie."""

import contextlib
import itertools
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = "/org/a11y/atspi/accessible/root"
SHOWING, SENSITIVE, FOCUSABLE, BUSY, ICONIFIED, EDITABLE, VISIBLE = 25, 24, 11, 3, 15, 7, 30
FRAME, PANEL, BUTTON, ENTRY, STATIC, SLIDER, SECTION, DOCUMENT = 23, 39, 43, 79, 116, 51, 85, 95
ICON, HEADING, PAGE_TAB, UNKNOWN = 26, 83, 37, 67


def align(out: bytearray, boundary: int) -> None:
    out += bytes(-len(out) % boundary)


def split_first(signature: str) -> tuple[str, str]:
    """Return the first complete type of a signature, and the rest."""
    if signature[0] == "a":
        element, rest = split_first(signature[1:])
        return "a" + element, rest
    if signature[0] != "(":
        return signature[0], signature[1:]
    depth = 0
    for n, letter in enumerate(signature):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth == 0:
            return signature[: n + 1], signature[n + 1 :]
    raise ValueError(signature)


def put(out: bytearray, kind: str, value: Any) -> None:
    """Marshal one value, as the specification says."""
    if kind in "uidy":
        size = {"u": 4, "i": 4, "d": 8, "y": 1}[kind]
        align(out, size)
        out += struct.pack("<" + {"u": "I", "i": "i", "d": "d", "y": "B"}[kind], value)
    elif kind in "so":
        raw = value if isinstance(value, bytes) else value.encode()
        put(out, "u", len(raw))
        out += raw + b"\0"
    elif kind == "g":
        out += bytes((len(value),)) + value.encode() + b"\0"
    elif kind == "v":
        put(out, "g", value[0])
        put(out, value[0], value[1])
    elif kind[0] == "(":
        align(out, 8)
        put_all(out, kind[1:-1], value)
    else:
        put(out, "u", 0)
        at = len(out)
        align(out, 8 if kind[1] in "(d" else 4)
        start = len(out)
        for each in value:
            put(out, kind[1:], each)
        out[at - 4 : at] = struct.pack("<I", len(out) - start)


def put_all(out: bytearray, signature: str, values: Any) -> None:
    for value in values:
        kind, signature = split_first(signature)
        put(out, kind, value)


def marshalled(signature: str, *values: Any) -> bytes:
    out = bytearray()
    put_all(out, signature, values)
    return bytes(out)


def message(kind: int, serial: int, reply_to: int, signature: str, body: bytes) -> bytes:
    fields = [(6, ("s", ":1.0")), (5, ("u", reply_to)), (7, ("s", ":1.1"))]
    fields += [(8, ("g", signature))] if signature else []
    out = bytearray(struct.pack("<BBBBII", 0x6C, kind, 1, 1, len(body), serial))
    put(out, "a(yv)", fields)
    align(out, 8)
    return bytes(out) + body


@dataclass
class Received:
    """A method call as it came over the wire."""

    serial: int
    fields: dict[int, str]
    body: bytes

    @property
    def path(self) -> str:
        return self.fields[1]

    @property
    def member(self) -> str:
        return self.fields[3]

    @property
    def destination(self) -> str:
        return self.fields[6]


def parse_call(raw: bytes) -> Received:
    order, kind, _, version, body_bytes, serial, fields_bytes = struct.unpack_from("<BBBBIII", raw)
    assert (order, kind, version) == (0x6C, 1, 1)
    fields, at = {}, 16
    while at < 16 + fields_bytes:
        at += -at % 8
        code, letter = raw[at], raw[at + 2 : at + 3]
        assert raw[at + 1] == 1
        assert raw[at + 3] == 0
        length = raw[at + 4] if letter == b"g" else struct.unpack_from("<I", raw, at + 4)[0]
        begin = at + (5 if letter == b"g" else 8)
        fields[code] = raw[begin : begin + length].decode()
        assert raw[begin + length] == 0
        at = begin + length + 1
    body = raw[-body_bytes:] if body_bytes else b""
    return Received(serial, fields, body)


@dataclass
class Thing:
    """One object of an application."""

    role: int
    name: str = ""
    place: tuple[int, int, int, int] = (0, 0, 10, 10)
    children: list["Thing"] = field(default_factory=list)
    states: tuple[int, ...] = (SHOWING, SENSITIVE)
    text: str = ""
    value: float = 0.0
    path: str = ""


@dataclass
class Program:
    """An application on the bus."""

    windows: list[Thing]
    title: str = "program"
    toolkit: str = "gtk"
    pid: int = 4711
    hangs: bool = False
    says: dict[str, tuple[str, bytes] | None] = field(default_factory=dict)
    """What it sends for a method, whatever the object; None for an error."""
    attributes_asked: int = 0
    on_look: Callable[["Program"], None] = lambda program: None
    """Called when its windows are asked for."""
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def thing(self, path: str) -> Thing | None:
        """Return the object at a path."""
        waiting = list(self.windows)
        while waiting:
            thing = waiting.pop()
            if thing.path == path:
                return thing
            waiting += thing.children
        return None

    def answer(self, call: Received, name: str) -> tuple[str, bytes] | None:
        """Return signature and body of the reply, or None for an error."""
        if call.member in self.says:
            return self.says[call.member]
        if call.path == ROOT:
            return self._answer_as_application(call, name)
        thing = self.thing(call.path)
        return None if thing is None else self._answer_as(thing, call, name)

    def _answer_as_application(self, call: Received, name: str) -> tuple[str, bytes] | None:
        if call.member == "GetChildren":
            self.on_look(self)
            return self._references(name, self.windows)
        if call.member == "GetAttributes":
            self.attributes_asked += 1
            return "a{ss}", marshalled("u", 0)
        assert call.member == "Get"
        return "v", marshalled("v", ("s", self.toolkit if b"ToolkitName" in call.body else self.title))

    def _answer_as(self, thing: Thing, call: Received, name: str) -> tuple[str, bytes] | None:
        bits = sum(1 << state for state in thing.states)
        if call.member == "GetChildren":
            return self._references(name, thing.children)
        if call.member == "GetState":
            return "au", marshalled("au", [bits & 0xFFFFFFFF, bits >> 32])
        if call.member == "GetRole":
            return "u", marshalled("u", thing.role)
        if call.member == "GetExtents":
            return "(iiii)", marshalled("(iiii)", thing.place)
        if call.member == "GetText":
            start, end = struct.unpack("<ii", call.body)
            return "s", marshalled("s", thing.text[start:end])
        assert call.member == "Get"
        value = ("d", thing.value) if b"CurrentValue" in call.body else ("s", thing.name)
        return "v", marshalled("v", value)

    def _references(self, name: str, things: list[Thing]) -> tuple[str, bytes]:
        for thing in things:
            thing.path = thing.path or f"/org/a11y/atspi/accessible/{next(self._numbers)}"
        return "a(so)", marshalled("a(so)", [(name, thing.path) for thing in things])


class MessageBus:
    """Answers for the bus itself, for the registry, and for the programs on it."""

    def __init__(self, path: Path, programs: dict[str, Program]) -> None:
        self.path = path
        self.programs = programs
        self.greeting = b"OK 0123456789abcdef0123456789abcdef\r\n"
        self.before_reply: Callable[[Received], bytes] = lambda call: b""
        """What comes in between."""
        self.calls: list[Received] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(4)
        self._connections: list[socket.socket] = []

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def drop_connections(self) -> None:
        for connection in self._connections:
            # The thread that talks closes it; it may have done so.
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._connections.clear()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.drop_connections()

    def _talk(self, connection: socket.socket) -> None:
        stream = connection.makefile("rwb")
        try:
            assert stream.readline() == b"\0AUTH EXTERNAL " + str(os.getuid()).encode().hex().encode() + b"\r\n"
            stream.write(self.greeting)
            stream.flush()
            if stream.readline() != b"BEGIN\r\n":
                return
            while head := stream.read(16):
                body_bytes, _, fields_bytes = struct.unpack_from("<III", head, 4)
                rest = stream.read(fields_bytes + -fields_bytes % 8 + body_bytes)
                call = parse_call(head + rest)
                self.calls.append(call)
                stream.write(self.before_reply(call) + self._reply(call))
                stream.flush()
        except (OSError, ValueError):
            return
        finally:
            connection.close()

    def _reply(self, call: Received) -> bytes:
        answer: tuple[str, bytes] | None
        if call.member == "Hello":
            answer = "s", marshalled("s", ":1.0")
        elif call.member == "GetConnectionUnixProcessID":
            name = call.body[4:-1].decode()
            answer = "u", marshalled("u", self.programs[name].pid)
        elif call.destination == "org.a11y.atspi.Registry":
            answer = "a(so)", marshalled("a(so)", [(name, ROOT) for name in self.programs])
        else:
            program = self.programs[call.destination]
            if program.hangs:
                return b""
            answer = program.answer(call, call.destination)
        if answer is None:
            return message(3, 99, call.serial, "s", marshalled("s", "no such object"))
        return message(2, 99, call.serial, *answer)


@contextmanager
def message_bus(path: Path, programs: dict[str, Program]) -> Iterator[MessageBus]:
    """Run a bus at the socket `path`."""
    bus = MessageBus(path, programs)
    thread = threading.Thread(target=bus.serve, daemon=True)
    thread.start()
    try:
        yield bus
    finally:
        bus.close()
        thread.join(10)
