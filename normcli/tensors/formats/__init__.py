"""File formats that hold arrays.

* `coordinates`: coordinates and attributes of Zarr arrays
* `file_formats`: the registry: suffix, first bytes, reader, writer, limits of each format
* `guarded_store`: a Zarr folder of which only regular files are read
* `json_items`: the parser of long JSON: lines, or the items of an array
* `json_lists`: nested lists, normcli's own answer, lists as NumPy and PyTorch print them
* `npy`: NumPy's `.npy`
* `npz`: NumPy's `.npz`; members of stats and state files, checked
* `safetensors`: safetensors files
* `stored_array`: chunks of a stored array: sizes, reading, cache
* `stores`: Zarr and HDF5 stores, opened and written
"""
