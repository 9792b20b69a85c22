"""`python -m tests.compiled`: renew the stamp by which an object says of which C sources it was made."""

from normcli.compiled import STAMP
from tests.compiled import find_stamp

if __name__ == "__main__":
    STAMP.write_text(find_stamp())
