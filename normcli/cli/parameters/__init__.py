"""Options and arguments of the command line.

* `answer_options`: `--output`, `--format`, `--print`, `--show`, `--threads` and others of answers
* `options`: `--input`, `--shape`, `--columns`, `--gamma`, `--mask` and others of tensors and norms
* `settings`: the values of all options as typed records; notes and warnings on standard error
* `types`: click types of options: shapes, words, norms, frameworks, shards
"""
