"""The compiled kernel held against the NumPy path, bit for bit."""

from __future__ import annotations

import hashlib
from pathlib import Path

from normcli.compiled import STAMP


def find_stamp() -> str:
    """Return what `stamp.h` has to hold: a hash of the C sources."""
    total = hashlib.sha256()
    for path in sorted(Path(STAMP).parent.glob("*.[ch]")):
        if path != Path(STAMP):
            total.update(path.name.encode() + b"\0" + path.read_bytes())
    return f'"{total.hexdigest()[:16]}"\n'
