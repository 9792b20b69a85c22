"""The command line: click over the library, without arithmetic.

* `commands`: the names of all commands, each with its line of help
* `files`: the files that a command line names
* `languages`: the option `--lang`, and help texts in the language that it chooses
* `main`: the top of the command line, which imports a verb's module when the verb is called
* `manual`: the man page
* `parameters`: the options, and the records that they become
* `problem`: the tensor, plan, gamma, beta and running statistics that a verb works on
* `progress`: the progress bar
* `run`: one run of the command line, from its words to its exit code
* `verb_commands`: a verb as a record, and the click commands built from it
* `verbs`: a file for each verb
"""
