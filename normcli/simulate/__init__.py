"""Batches drawn by chance around one sample, whose statistics and output are watched.

* `batch_size`: how statistics and output move with the size of the batch
* `batches`: the batches that are drawn
* `training`: training against evaluation, step after step
"""
