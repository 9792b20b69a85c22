"""The tiles of a tensor: cut, read, measured, normalized and written.

* `blocks`: arrays in memory, of any strides, which tiles are read from and written to, with their gamma
* `compiled`: a tile by the compiled kernel
* `files`: arrays in files, read and written by position
* `geometry`: kept and reduced axes, cut into leaves and tiles: the blocks that the engine works on
* `tiles`: a tile by NumPy
"""
