"""All rows of faults, in the order in which they are told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from normcli.identifying.faults.around import AROUND
from normcli.identifying.faults.behind import BEHIND
from normcli.identifying.faults.counting import COUNTING
from normcli.identifying.faults.dividing import DIVIDING
from normcli.identifying.faults.order import ORDER
from normcli.identifying.faults.parameters import PARAMETERS
from normcli.identifying.faults.parts import CAST, OF_COPIES, OF_REGIONS
from normcli.identifying.faults.stored import STORED
from normcli.identifying.faults.thinned import THINNED
from normcli.identifying.faults.unknown import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from normcli.identifying.faults.claim import Row


STATISTICS: Sequence[Row] = (*STORED, *DIVIDING, *COUNTING)


REST: Sequence[Row] = (*AROUND, *PARAMETERS, *BEHIND, *THINNED, *ORDER)


TABLES = (*STATISTICS, *REST)


FAULTS: Sequence[Row] = (*TABLES, *OF_COPIES, *OF_REGIONS.values(), *UNKNOWN.values(), CAST)
"""Every row: what `normcli help faults` lists."""
