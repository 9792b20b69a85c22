"""The arithmetic of one value, or of one group, as a person would write it on paper.

* `value_story`: `explain`: from the tensor to the steps of one value
* `gradient_story`: `explain_backward`: from dy to the steps of one dx
* `story`: the records: `Story` and its steps
* `measured_group`: one group, measured: its values, statistics and results
* `step_writer`: steps added one after another, each with its arithmetic
* `statistic_steps`: the steps to centre and divisor
* `value_steps`: the steps from there to y
* `gradient_steps`: the steps back to dx, by the chain rule
* `window_gradient_steps`: the steps back where groups are sliding windows
* `matrix_gradient_steps`: the steps back where groups are matrices
* `iteration_steps`: sentences on power iterations
* `residual_step`: the first step where x is a sum
* `gate_step`: the steps of a gate, before the norm or behind it
"""
