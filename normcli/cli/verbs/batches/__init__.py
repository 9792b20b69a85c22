"""Verbs of many files or batches: statistics fitted, applied, folded, simulated.

* `apply`: `apply` and `invert`: files normalized with fitted statistics, and the inverse
* `fit`: `fit` and `merge`: exact statistics over many files
* `fold`: a norm folded into the layer beside it
* `simulate`: batches drawn by chance
* `track`: `--state`: running statistics updated with batches
"""
