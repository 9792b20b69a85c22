"""Damage: what disks, programs and people do to a file, drawn from a seeded stream."""

from __future__ import annotations

import io
import json
import os
import re
import struct
import zipfile
import zlib
from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator
    from pathlib import Path

_NUMBER = re.compile(rb"-?\d+(\.\d+)?([eE][-+]?\d+)?")

_WORDS = (
    b"0", b"-0", b"-1", b"1", b"2147483648", b"9007199254740993", b"9223372036854775808", b"18446744073709551616",
    b"1e400", b"-1e-400", b"nan", b"inf", b"-Infinity", b"1" * 400, b"1_000", b"0x10", b"NA", b"null", b"-", b"",
    b"\"", b"[", b"]", b"{", b"}", b",", b"\t", b";", b"\n", b"\r", b"\x00", b"\xff\xfe", "٣".encode(),
    "\u202e".encode(), b"True", b"None", b"(", b"'", b":", b"[[[[[[[[[[", b"{}", b"\x1b[31m", b"[" * 40, b"]" * 40,
    b"[" * 100_000, "\uffff".encode(), "\u2028".encode(), b"\\ud800",
)  # fmt: skip

_INTEGERS = (
    0, 1, 7, 255, 2**31 - 1, 2**31, 2**32 - 1, 2**53 + 1, 2**62, 0x7FA00000, 0x7FF4 << 48, 2**63 - 1, 2**63, 2**64 - 1,
)  # fmt: skip
"""Among them two signalling NaNs, of four bytes and of eight."""


def mutate(data: bytes, other: bytes, random: random.Random) -> bytes:
    """Return a file with one to four kinds of damage; `other` is a valid file, of which parts may be taken."""
    if data.startswith(b"PK") and random.random() < 0.5:
        return _mutate_member(data, other, random)
    if _is_manifest(data) and random.random() < 0.5:
        return _edit_manifest(data, random)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        data = random.choice(_KINDS)(data, other, random)
    return data


def replace(file: Path, random: random.Random) -> str:
    """Put something in the place of a file that is no file, or one elsewhere; return what."""
    file.unlink()
    kind, make = random.choice(
        [
            ("a pipe", lambda: os.mkfifo(file)),
            ("a folder", file.mkdir),
            ("nothing", lambda: None),
            *((f"a link to {target}", partial(file.symlink_to, target)) for target in _TARGETS),
        ]
    )
    make()
    return kind


_TARGETS = ("/dev/zero", "/etc/passwd", ".", "..", "nowhere", "../../x.npy")


def _flip_bit(data: bytes, other: bytes, random: random.Random) -> bytes:
    if not data:
        return data
    place = random.randrange(len(data))
    return data[:place] + bytes([data[place] ^ 1 << random.randrange(8)]) + data[place + 1 :]


def _set_bytes(data: bytes, other: bytes, random: random.Random) -> bytes:
    place, count = _choose_part(data, random)
    return data[:place] + random.randbytes(count) + data[place + count :]


def _delete(data: bytes, other: bytes, random: random.Random) -> bytes:
    place, count = _choose_part(data, random)
    return data[:place] + data[place + count :]


def _repeat(data: bytes, other: bytes, random: random.Random) -> bytes:
    place, count = _choose_part(data, random)
    return data[:place] + data[place : place + count] * random.choice((2, 3, 50)) + data[place + count :]


def _cut(data: bytes, other: bytes, random: random.Random) -> bytes:
    return data[: random.randrange(len(data) + 1)]


def _splice(data: bytes, other: bytes, random: random.Random) -> bytes:
    return data[: random.randrange(len(data) + 1)] + other[random.randrange(len(other) + 1) :]


def _swap(data: bytes, other: bytes, random: random.Random) -> bytes:
    a, b, c = sorted(random.randrange(len(data) + 1) for _ in range(3))
    return data[:a] + data[b:c] + data[a:b] + data[c:]


def _insert_word(data: bytes, other: bytes, random: random.Random) -> bytes:
    place = random.randrange(len(data) + 1)
    return data[:place] + random.choice(_WORDS) + data[place:]


def _replace_number(data: bytes, other: bytes, random: random.Random) -> bytes:
    numbers = list(_NUMBER.finditer(data))
    if not numbers:
        return data
    found = random.choice(numbers)
    return data[: found.start()] + random.choice(_WORDS) + data[found.end() :]


def _set_integer(data: bytes, other: bytes, random: random.Random) -> bytes:
    form = random.choice(("<H", "<I", "<Q", ">Q"))
    packed = struct.pack(form, random.choice(_INTEGERS) & (1 << 8 * struct.calcsize(form)) - 1)
    place = random.randrange(len(data) + 1)
    return data[:place] + packed + data[place + len(packed) :]


def _choose_part(data: bytes, random: random.Random) -> tuple[int, int]:
    return random.randrange(len(data) + 1), random.choice((1, 1, 2, 4, 8, 64))


def _mutate_member(data: bytes, other: bytes, random: random.Random) -> bytes:
    """Damage a member of an archive whose directory and checksums are right, or leave one out."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = random.choice(list(members))
    content = members[name]
    if random.random() < 0.1:
        del members[name]
    elif random.random() < 0.6:  # a number of the same size, so that what is behind the header is damaged
        form = random.choice(("<d", "<q"))
        value = random.choice(_NUMBERS[form])
        start = _find_values(content)
        place = start + 8 * random.randrange(max(1, (len(content) - start) // 8))
        members[name] = content[:place] + struct.pack(form, value) + content[place + 8 :]
    else:
        members[name] = random.choice(_KINDS)(content, zlib.compress(other), random)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def _is_manifest(data: bytes) -> bool:
    return data.startswith(b"{") and (b'"schema"' in data or b'"zarr_format"' in data)


def _edit_manifest(data: bytes, random: random.Random) -> bytes:
    """Change, remove or add members of a JSON object, at any depth, as a person would who edits the file."""
    manifest = json.loads(data)
    for _ in range(random.choice((1, 1, 2, 3))):
        holder = random.choice(list(_find_holders(manifest)))
        names = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        name = random.choice(names)
        kind = random.random()
        if kind < 0.2:
            del holder[name]
        elif kind < 0.3 and isinstance(holder, dict):
            other = random.choice(("eps", "groups", "../x", "recipe", "mean", "\u202e"))
            holder[other] = deepcopy(holder[name])
        elif kind < 0.4:
            holder[name] = deepcopy(holder[random.choice(names)])
        else:
            holder[name] = deepcopy(random.choice(_JSON))
    return json.dumps(manifest).encode()


def _find_holders(value: object) -> Iterator[dict | list]:
    """Yield every object and list of a value that is not empty, itself included."""
    if isinstance(value, dict | list) and value:
        yield value
        for part in value.values() if isinstance(value, dict) else value:
            yield from _find_holders(part)


def _find_values(content: bytes) -> int:
    """Return where the values of a `.npy` member of version 1 begin."""
    return 10 + int.from_bytes(content[8:10], "little")


_JSON = (
    None, True, False, 0, 1, -1, 2, 43, 2**31, 2**63, 2**64, 10**30, -0.0, 0.5, 1e-5, 1e300, "", "a", "bn", "ln", "inf",
    "nan", "NC", "../x", "/etc/passwd", "\x00", "\u202e", "float64", "numpy", "normcli-golden/1", [], [0], [[1]], [3, 4],
    [10**9, 10**9], {}, {"nan": "omit", "fill": "pass"}, {"shape": [2**40]}, [0, 2], [2**40, 2**20], [2**42, 2**20],
    "\uffff", "\u2028", json.loads("[" * 64 + "1" + "]" * 64),
)  # fmt: skip

_NUMBERS = {
    "<d": (0.0, -0.0, -1.0, 1e-320, 1e300, -1e308, float("inf"), float("-inf"), float("nan"), 0.5, 2.0**53),
    "<q": (-1, 0, 1, 2**31, 10**8, 2**53, 2**62, 2**63 - 1, -(2**63)),
}

_KINDS: tuple[Callable[[bytes, bytes, random.Random], bytes], ...] = (
    _flip_bit, _set_bytes, _delete, _repeat, _cut, _splice, _swap, _insert_word, _insert_word, _replace_number,
    _replace_number, _set_integer,
)  # fmt: skip
