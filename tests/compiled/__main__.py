"""`python -m tests.compiled`: renew the stamp by which an object says of which C sources it was made."""

from pathlib import Path

from normcli.compiled import STAMP
from tests.compiled import find_stamp

if __name__ == "__main__":
    Path(STAMP).write_text(find_stamp())
