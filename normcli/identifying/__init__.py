"""The judge: names the norm, the convention or the fault that made a tensor.

* `question`: the question (x, y, gamma, beta), its answer, and the diagnosis in words
* `identify`: the steps of the search, the likeliest explanation first; faults of the requested norm
* `explanations`: the steps that look for norms, faults of the default norms, maps and algorithms
* `inquiry`: what steps share of a question: samples, one line for all values, cases of the default norms
* `sampling`: some values of a tensor: whole groups, blocks, evenly spread indices
* `search`: norms that reproduce y, tried on few values first
* `models`: divisors of groups, maps without statistics, and the evidence of values for them
* `faults`: the faults of a kernel, looked for in each part of a norm
* `confirmation`: matches found in a sample of a large tensor, tested on all of its groups
* `grouped_check`: a table whose rows are normalized group by group; `grouped_diagnosis`: its faults;
  `grouped_order`: rows in another order, or grouped by other columns; `grouped_scale`: one divisor; RLOO
* `attempts`: sampled groups, on which algorithms, dtypes of sums and casts are tried: the share of equal bits
* `gated_norm`: the default norm whose result is y with a given gate
* `quantized_norm`: the default norm, or another request, whose codes and scales are given ones
* `reproduction`: the algorithm, dtype of sums and order of casts that reproduce y's bits
* `words`: causes, evidence and remedies of a diagnosis
"""
