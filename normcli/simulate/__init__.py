"""Batches drawn at random around one sample, whose statistics and output are watched.

* `batch_size`: how far statistics and output change with the size of the batch
* `batches`: the batches that are drawn
* `training`: training against evaluation, step after step
"""
