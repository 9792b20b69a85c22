"""Statistics and normalization on dask: of its arrays, and of stores and files by the workers of a cluster.

Needs the extra `dask`. What comes out is the same to the bit for any chunks, workers and order of arrival.
"""
