"""Reading, writing and generating tensors: one file per format. Nothing here knows of norms.

* `files`: the registry of formats: from a name to a tensor, and back
* `formats`: files that hold arrays
* `held_files`: files opened, held against what they were then, and locked
* `many`: globs, folders and lists of files
* `mapped`: arrays that lie in files
* `pieces`: long arrays and texts piece by piece, and how far the work is
* `random`: tensors drawn at random
* `residual`: a tensor and what is added to it
* `spool`: temporary files without a name
* `tables`: columns of numbers among others
* `tensor`: a tensor with its source, and the name of an array in a store
* `written_whole`: files that are written whole or not at all
"""
