"""File formats that hold arrays.

* `coordinates`: the coordinates of Zarr arrays
* `file_formats`: the registry: suffix, first bytes, reading, limits; what the writer of a format is given
* `guarded_store`: a Zarr folder of which only regular files are read
* `json_items`: the values of JSON text, one after the other
* `json_lists`: nested lists, normcli's own answer, lists as NumPy and PyTorch print them
* `npy`: NumPy's `.npy`
* `npz`: NumPy's `.npz`; members of stats and state files, checked
* `safetensors`: safetensors files
* `stored_array`: an array of a store, chunk by chunk
* `stores`: Zarr and HDF5
"""
