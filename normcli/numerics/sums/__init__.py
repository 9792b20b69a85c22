"""Exact sums, in any order: of rows and columns of values, of leaves, of tiles, of files.

* `column_sums`: sums of leaves that lie as columns
* `fixed_point`: sums of any size, added without end, and averages
* `leaf_records`: records of leaves, and how they are folded
* `row_sums`: sums of leaves that lie as rows
* `short_row_sums`: the same for float16 and float32
"""
