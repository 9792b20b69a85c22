"""The engine: reads a tensor in tiles, measures its groups, and writes the normalized tiles.

The result depends on the values and the plan alone: to the bit it is the same for any number of threads,
any size of tiles and any order of memory.

Other rooms call `run`, `backward`, `invert`, `single` (one group), and give `inputs` and a `walk.Effort`. A run
goes through the `passes` over `tiles` of `blocks` of a `geometry`, of arrays in memory or in `files`, by NumPy
or the compiled kernel (`compiled`, and `small` for small tensors).
`order` runs norms of quantiles, `lrn` and `sn` norms that calculate something else;
`gradients` are the backward pass of groups.
"""
