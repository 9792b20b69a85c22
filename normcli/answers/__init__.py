"""Each verb's answer, made of results, as a document.

* `calculating`: results of one norm: numbers, gradients, pictures, and the tables of norms and conventions
* `teaching`: explain, compare, restore
* `judging`: check, identify, doctor
* `batches`: many batches: fit, merge, fold, running statistics, simulate
"""
