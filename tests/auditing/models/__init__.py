"""Whole models with random weights, right and with a planted fault: what `audit` must pass, and what it must name.

* `zoo`: the models: small configurations of transformers, Keras and Flax
* `plants`: the faults, and what must be said of each
"""
