"""All rows of faults, in the order in which they are told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from normcli.identifying.faults.tables.around import AROUND
from normcli.identifying.faults.tables.behind import BEHIND
from normcli.identifying.faults.tables.counting import COUNTING
from normcli.identifying.faults.tables.dividing import DIVIDING
from normcli.identifying.faults.tables.order import ORDER
from normcli.identifying.faults.tables.parameters import PARAMETERS, STORED
from normcli.identifying.faults.tables.parts import CAST, OF_COPIES, OF_REGIONS, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from normcli.checking.fault import Row


STATISTICS: Sequence[Row] = (*STORED, *DIVIDING, *COUNTING)


REST: Sequence[Row] = (*AROUND, *PARAMETERS, *BEHIND, *ORDER)


TABLES = (*STATISTICS, *REST)


FAULTS: Sequence[Row] = (*TABLES, *OF_COPIES, *OF_REGIONS.values(), *UNKNOWN.values(), CAST)
"""Every row: what `normcli help faults` lists."""
