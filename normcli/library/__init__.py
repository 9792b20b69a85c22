"""Functions beside `normalize` and `backward`: fitted statistics, and verdicts on somebody's tensors."""
