"""Functions beside `normalize` and `backward`.

* `auditing`: `audit`: recorded runs of models, judged or compared
* `calculating`: `normalize` with results that a notebook shows as HTML tables
* `fit_tensors`: `fit`, `load`, `merge`, `apply`; `normalize_by`, rows normalized group by group (GRPO)
* `intake`: callers' tensors, tables and groups of rows, prepared for `fit` and `apply`
* `judgement`: `Judgement`, and the verdicts that `judging`, the command line and assertions share
* `judging`: `check` and `identify` of a tensor
* `judging_codes`: `check` and `identify` of quantized codes and scales
* `restoring`: `invert`: a norm undone by fitted statistics or those of another tensor (RevIN)
* `statistics`: the class `Statistics`: update, merge, apply, invert, save
* `training`: `track`: running statistics, batch by batch
"""
