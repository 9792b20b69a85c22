"""Functions beside `normalize` and `backward`.

* `auditing`: recorded runs of models, judged
* `calculating`: `normalize`, with results that a notebook shows as tables
* `fit_tensors`: statistics fitted, loaded, merged; rows normalized group by group
* `intake`: callers' tensors and tables on their way to statistics
* `judgement`: verdicts on arrays that are read: what `judging`, the command line and assertions call
* `judging`: verdicts on somebody's tensors
* `judging_codes`: verdicts on codes of few bits
* `restoring`: a tensor brought back to the scale of another
* `statistics`: fitted statistics
* `training`: running statistics, batch by batch
"""
