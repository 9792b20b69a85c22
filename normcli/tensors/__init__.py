"""Reading, writing and generating tensors: one file per format. Nothing here knows of norms.

* `files`: from the name of a file to a tensor
* `formats`: files that hold arrays
* `held_files`: opening files, and detecting later changes
* `many`: globs, folders and lists of files
* `mapped`: arrays in files: memory maps, and reads by position
* `pieces`: long arrays piece by piece
* `random`: tensors drawn at random
* `residual`: the sum of a tensor and its residual
* `spool`: temporary files without a name
* `tables`: tables of columns, some of them numbers
* `tensor`: a tensor with its source, and the place of an array in a store
* `written_whole`: files that are written whole or not at all
"""
