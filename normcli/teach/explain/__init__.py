"""The arithmetic of one value, or of one group, as a person would write it on paper.

* `explain`: one group is chosen, measured and told, forward or backward, with what stands around the norm
* `story`: the records `Story` and `StoryStep`, the symbol of each name, and the base class that adds steps
* `measured_group`: one group, measured: its values, statistics and results
* `statistic_steps`: the steps to centre and divisor: sums, quantiles, lengths, windows, eps and root
* `value_steps`: the steps from centre and divisor to y
* `gradient_steps`: the steps back to dx, by the chain rule
* `window_and_matrix_gradients`: the steps back where groups are sliding windows, or matrices
* `iteration_steps`: the step to the largest singular value, and sentences on power iterations
* `surrounding_steps`: the step that adds a residual, before the norm, and the steps of a gate
"""
