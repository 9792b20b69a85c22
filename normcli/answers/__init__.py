"""Each verb's answer, made of results, as a document.

* `calculating`: results of one norm: values, gradients, codes, pictures; the tables of norms and conventions
* `teaching`: explain, compare, restore, residual placement
* `judging`: check, identify, doctor, audit
* `batches`: fit, merge, fold, running statistics (`--state`), simulate
"""
