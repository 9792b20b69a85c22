"""Verbs that calculate: one tensor, its gradients, its picture, its code.

* `backward`: `backward`: the derivatives of a loss with respect to the tensor, gamma and beta
* `draw`: `draw`: a picture of groups, histograms or the reach of a gradient
* `emit`: `--emit`: the request as code, or as an ONNX model
* `generate`: `generate`: a seeded tensor, not normalized
* `grouped`: `--by COLUMN`, of `check` too: rows normalized group by group
* `normalize`: the command of each norm
* `on_cluster`: `--scheduler` and `--workers`: norms, fits and checks on a dask cluster
* `quantized`: `--quantize`, of `check` and `identify` too: scales and codes
"""
