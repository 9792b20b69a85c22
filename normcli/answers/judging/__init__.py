"""Answers about numbers that other programs calculated.

* `check_verdict`: `normcli check NORM`, also with `--by`, and of running statistics: what differs, and how far
* `gradients_verdict`: `normcli check NORM --backward`: which gradients differ, how far, and by which fault
* `quantized_verdict`: `check` and `identify` with `--quantize`: codes and scales
* `identification`: `normcli identify`: the norms that give y; the last lines of a verdict
* `audit_report`: `normcli audit`: a line for each layer of a model, the first bad one in full
* `run_comparison`: `normcli audit --against`: two runs of a model, and where they part
* `doctor_report`: `normcli doctor`: which algorithms are safe on a tensor
* `distances`: parts of these answers: worst value, histogram of distances, tolerance
"""
