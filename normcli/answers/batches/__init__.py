"""Answers on many batches, or on layers that were folded into others.

* `fitted_statistics`: `normcli fit` and `normcli merge`: tables of statistics over files
* `running_statistics`: `normcli NORM --state`: running mean and variance before and after a batch
* `folding`: `normcli fold`: the folded layer, the folded layers of a state dict, or weights with their σ
* `simulations`: `normcli simulate batch-size` and `simulate training`: one sample's output over batches or
steps
"""
