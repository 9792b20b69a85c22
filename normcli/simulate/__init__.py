"""Batches drawn at random around one sample, whose statistics and output are watched.

* `batch_size`: `simulate batch-size`: statistics and output of a sample by size of its batch
* `batches`: populations, random batches around a sample, changed data, quartiles
* `training`: `simulate training`: output by batch statistics and by running statistics, by steps
"""
