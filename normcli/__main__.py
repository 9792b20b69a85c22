"""`python -m normcli`, and the console script: the command line with nothing that can go wrong before it."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; leave with its exit code."""
    try:
        from normcli.cli.run import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # while modules are still being imported
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    main()
