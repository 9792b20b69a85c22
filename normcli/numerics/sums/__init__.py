"""Exact sums, in any order: of rows and columns of values, of leaves, of tiles, of files.

`row_sums`, `short_row_sums` and `column_sums` measure leaves, pieces of groups; `leaf_records` hold their sums
and fold them; `fixed_point` holds sums that are added without end; `averages` divides such sums.
"""
