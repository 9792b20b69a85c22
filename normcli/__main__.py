"""`python -m normcli`, and the console script: the command line, which Ctrl-C can end from the start."""

import _signal  # type: ignore[import-not-found]  # of which `signal` is made, and slowly imported
import gc
import os
import sys

_OBJECTS = 100_000
"""The number of new objects from which on garbage is collected; importing modules makes fewer."""


def main() -> None:
    """Run the command line, and end the process with its exit code."""
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:  # not of a run in the background
        _signal.signal(_signal.SIGINT, lambda *_: os._exit(130))  # nothing is written before `run` takes over
    gc.set_threshold(_OBJECTS, *gc.get_threshold()[1:])
    from normcli.cli.run import run

    try:
        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # a second one, while the first is reported
        code = 130
    # Everything is written by now. Taking the modules down one by one, as a plain exit does, takes a fifth of
    # the time of a small calculation.
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:  # the reader of the pipe has gone
            pass
    os._exit(code)


if __name__ == "__main__":
    main()
