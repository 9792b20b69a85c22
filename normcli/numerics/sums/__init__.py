"""Exact sums, in any order: of rows of values, of leaves, of tiles, of files.

* `fixed_point`: sums of any size, added without end, and averages
* `leaf_records`: records of leaves, and how they are folded
* `row_sums`: sums of leaves that lie as rows
* `scaled_integers`: exact numbers as Python's integers times a power of two
"""
