"""What the frameworks give where their conventions part: constant groups, half precision, nearly constant columns.

Each function takes a tensor and the options of the case, as those of `tests/peers.py` do.
"""

from __future__ import annotations



