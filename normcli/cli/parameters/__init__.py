"""Options and arguments of the command line.

* `answer_options`: the options of answers and of runs
* `options`: the options that several commands share
* `settings`: the options of one command line as typed records
* `types`: texts read as values, for options that several verbs have
"""
