"""The engine: reads a tensor in tiles, measures its groups, and writes the normalized tiles.

The result depends on the values and the plan alone: to the bit it is the same for any number of threads,
any size of tiles and any order of memory. Other rooms call `run`, `backward`, `invert` and `single`.

* `backward`: the entry of the backward pass: dx, dgamma, dbeta, dgate
* `gradients`: the passes of the backward pass of norms of groups
* `inputs`: gamma, beta, known statistics, and which values count
* `invert`: a normalization undone
* `lrn`: local response normalization
* `order`: the passes of norms of quantiles: by sorting, or by histograms of digits
* `passes`: groups measured, sums of long ones added up, then normalized; all norms but those of quantiles
* `run`: a tensor normalized, or measured alone
* `single`: one group, normalized or differentiated by itself
* `small`: a small tensor in one call of the compiled kernel
* `sn`: spectral normalization
* `tiling`: the tiles of a tensor: geometry, sources and sinks in memory and in files
* `walk`: threads over tiles, progress, block size (`Effort`)
"""
