"""A norm's exact result, stored in few bits: scales by a format's rule, and codes.

* `blocks`: codes of a large tensor, block by block in threads
* `codes`: numbers rounded once onto a format's grid
* `formats`: the table of formats, a row for each; what a caller asks for
* `judging`: a kernel's codes and scales, and the rule that made them
* `kernel_rules`: the ways in which kernels make scales and codes
* `quantize`: a norm's result as scales and codes, and what each format costs
* `scales`: one scale for each group of values
* `sharing`: the groups of values that share a scale
* `tile_sinks`: scales and codes of a norm's tiles
"""
