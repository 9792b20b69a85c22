"""File formats that hold arrays.

NumPy's `npy` and `npz`; `safetensors`; `json_lists`, of `json_items`; Zarr and HDF5 as `stores` of a
`stored_array`, found by `store_places`, with `coordinates`; a `guarded_store` has regular files alone.
"""
