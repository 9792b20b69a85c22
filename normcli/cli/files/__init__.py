"""Files that a command line names.

* `destination`: a file that is written, asked before any work whether it may be
* `outputs`: the normalized tensor, its statistics and the answer, each to its destination
* `sources`: tensors and parameters, from a file, JSON in place or a recipe
"""
