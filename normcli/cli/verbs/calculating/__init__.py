"""Verbs that calculate: one tensor, its gradients, its picture, its code.

* `backward`: the derivatives of a loss with respect to the tensor, gamma and beta
* `draw`: the picture of the groups
* `emit`: `--emit`: the request as code, or as an ONNX model
* `generate`: the seeded tensor alone
* `grouped`: `--by COLUMN`, of `check` too: rows normalized group by group
* `normalize`: the command of each norm
* `on_cluster`: `--scheduler` and `--workers`: the verbs that a cluster can do
* `quantized`: `--quantize`, of `check` and `identify` too: scales and codes
"""
