"""The engine: reads a tensor in tiles, measures its groups, and writes the normalized tiles.

The result depends on the values and the plan alone: to the bit it is the same for any number of threads,
any size of tiles and any order of memory.
"""
