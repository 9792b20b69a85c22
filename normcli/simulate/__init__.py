"""Batches drawn by chance around one sample, whose statistics and output are watched.

* `batch_size`: the batches that are drawn; how statistics and output move with their size
* `training`: training against evaluation, step after step
"""
