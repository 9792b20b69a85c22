"""Answers about numbers that other programs calculated.

* `check_verdict`: `normcli check NORM`, also with `--by`, and of running statistics: what differs, how far
* `gradients_verdict`: `normcli check NORM --backward`: which gradients differ, how far, and by which fault
* `quantized_verdict`: `check` and `identify` with `--quantize`: codes and scales
* `identification`: `normcli identify`: the norms that explain y; cause, evidence and remedy of any verdict
* `audit_report`: `normcli audit`: a line for each layer of a model, the first bad one in full
* `run_comparison`: `normcli audit --against`: two runs of a model, and the first layer that differs
* `doctor_report`: `normcli doctor`: which algorithms are safe on a tensor
* `distances`: the worst value, the histogram of distances and the tolerance, for all of these
"""
