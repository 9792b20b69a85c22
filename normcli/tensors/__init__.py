"""Reading, writing and generating tensors: one file per format. Nothing here knows of norms.

* `files`: loading a tensor by the name of its file, `FILE:KEY` or `-`
* `formats`: npy, npz, JSON, safetensors, Zarr, HDF5: files that hold arrays
* `held_files`: state of opened files, locks, reads at offsets, refusal of links and devices
* `many`: globs, folders, lists of files, all arrays of an archive
* `mapped`: memory maps, regions of files, free room on disks
* `pieces`: long arrays of files in pieces and blocks (not the engine's tiles), progress reports, UTF-8
* `random`: tensors drawn at random
* `residual`: the sum of a tensor and its residual
* `spool`: temporary files for streams, results and collected blocks
* `tables`: CSV, JSON records, Parquet: tables with columns of numbers
* `tensor`: a tensor with its source, columns and table; keys of archives, names of stores
* `written_whole`: files and folders that are written whole or not at all
"""
