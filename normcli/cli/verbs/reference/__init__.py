"""Verbs that look something up: help, tables, completion.

* `completion`: the script for a shell, and completions of a command line
* `help`: topics, and the help of a command
* `list_tables`: `norms` and `conventions`; the table of symptoms
"""
