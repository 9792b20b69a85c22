"""The engine: reads a tensor in tiles, measures its groups, and writes the normalized tiles.

The result depends on the values and the plan alone: to the bit it is the same for any number of threads,
any size of tiles and any order of memory. Other rooms call `run`, `backward`, `invert` and `single`.

* `backward`: the gradients of a tensor, gamma and beta
* `gradients`: the backward pass of groups
* `inputs`: gamma, beta, known statistics, and which values count
* `invert`: a normalization undone
* `lrn`: local response normalization
* `order`: the passes of norms of quantiles
* `passes`: groups measured, sums of long ones added up, then normalized; all norms but those of quantiles
* `run`: a tensor normalized, or measured alone
* `single`: one group, normalized or differentiated by itself
* `small`: a small tensor in one call of the compiled kernel
* `sn`: spectral normalization
* `tiling`: the tiles of a tensor
* `walk`: a walk over tiles in threads, whatever is done with each
"""
