"""Statistics over many files: fitted, kept in a file, merged, used, and undone.

* `block_sums`: statistics of a tensor from the sums of its blocks, in any order; statistics cut to a block
* `by_column`: a table's rows grouped by the values of columns, and the sums of each group
* `fit`: fits statistics to many files or tensors, one after the other or in processes
* `gather`: Σx, Σx², counts and extremes of each group of one tensor
* `shards`: `--shard 3/64`: the data of one of several commands, and which shards merged statistics hold
* `statistics`: what `fit` returns (`Stats`): rounding to mean and variance, merging, warnings about groups
* `stats_file`: writes and reads the stats file, an `.npz`
* `stored_sums`: exact sums, extremes and quantiles as members of a stats file, read and checked
* `subject`: norm, shape, dtype and columns that tensors must share to be fitted or merged
* `sums`: exact sums of groups, added in any order; moments, deviations and extremes from them
* `use`: `apply` and `invert`: tensors normalized with fitted statistics, and normalization undone
* `workers`: tasks in forked processes
"""
