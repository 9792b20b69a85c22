#!/usr/bin/env bash
# Runs `normcli $COMMAND`, shows a failure at line $LINE of $FILE, and leaves the report as a summary, as text and as a page.
set -uo pipefail

folder=$RUNNER_TEMP/normcli
mkdir -p "$folder"
read -ra words <<<"$COMMAND"
normcli "${words[@]}" >"$folder/report.txt" 2>"$folder/messages.txt"
code=$?
cat "$folder/report.txt" "$folder/messages.txt"
if ! normcli "${words[@]}" -q -f html >"$folder/page.html" 2>/dev/null && [ ! -s "$folder/page.html" ]; then
    rm "$folder/page.html" # of what cannot be read
fi
{
    echo "### normcli ${COMMAND}"
    echo '```'
    cat "$folder/report.txt" "$folder/messages.txt"
    echo '```'
} >>"$GITHUB_STEP_SUMMARY"

cause=""
if [ "$code" != 0 ]; then
    cause=$(grep "✗" "$folder/report.txt" | tail -n 1) # after the counts
    cause=${cause:-$(head -n 1 "$folder/messages.txt")}
    cause=${cause#"${cause%%[![:space:]]*}"}
    cause=${cause//%/%25}
    echo "::error file=$FILE,line=$LINE,title=normcli::${cause}"
fi
echo "cause=$cause" >>"$GITHUB_OUTPUT"
exit "$code"
