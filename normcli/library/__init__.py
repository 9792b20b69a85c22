"""Functions beside `normalize` and `backward`.

* `intake`: callers' tensors and tables on their way to statistics
* `judging`: verdicts on somebody's tensors
* `statistics`: fitted statistics
* `training`: running statistics, batch by batch
"""
