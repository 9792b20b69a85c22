"""Reading, writing and generating tensors: one file per format. Nothing here knows of norms.

* `files`: from the name of a file to a tensor
* `formats`: files that hold arrays
* `held_files`: opening files, and detecting later changes
* `locks`: locks that end with their process
* `many`: globs, folders and lists of files
* `mapped`: arrays in files: memory maps, and reads by position
* `pieces`: long arrays piece by piece
* `positions`: reading and replacing open files, on Windows too
* `random`: tensors drawn at random
* `residual`: the sum of a tensor and its residual
* `spool`: temporary files without a name
* `tables`: tables of columns, some of them numbers
* `tensor`: a tensor with its source
* `watched`: the progress of long work outside the engine
* `written_whole`: files that are written whole or not at all
"""
