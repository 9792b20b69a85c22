"""Verbs of many files or batches: statistics fitted, used, folded, watched.

* `apply`: `apply` and `invert`: fitted statistics used, and undone
* `fit`: `fit` and `merge`: exact statistics over many files
* `fold`: a norm folded into the layer beside it
* `simulate`: batches drawn by chance
* `track`: `--state`: batches enter the running statistics
"""
