"""Statistics over many files: fitted, kept in a file, merged, used, and undone.

* `block_sums`: statistics from blocks of a tensor
* `by_column`: rows grouped by a column, and the sums of each group
* `fit`: the statistics of files, each read once
* `gather`: the sums of one tensor
* `shards`: the part of the data that one of several commands fits
* `statistics`: what `fit` returns: exact sums, rounded to dtypes when read, merged from two files
* `stats_file`: the stats file
* `subject`: the norm and the tensors that statistics are of
* `sums`: sums without rounding, added in any order; means, deviations and extremes from them
* `use`: tensors normalized with statistics, and that undone
* `workers`: tasks in processes
"""
