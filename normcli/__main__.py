"""`python -m normcli`, and the console script: the command line with nothing that can go wrong before it."""

from __future__ import annotations

import gc
import os
import sys

_OBJECTS = 50_000
"""Objects that are made before any are looked through for cycles: those of modules, which stay, are fewer."""


def main() -> None:
    """Run the command line; leave with its exit code."""
    gc.set_threshold(_OBJECTS, *gc.get_threshold()[1:])
    try:
        from normcli.cli.run import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # while modules are still being imported
        code = 130
    # Everything is written by now. Taking the modules down one by one, as a plain exit does, takes a fifth of
    # the time of a small calculation.
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:  # the reader has gone, and was served as long as it was there
            pass
    os._exit(code)


if __name__ == "__main__":
    main()
