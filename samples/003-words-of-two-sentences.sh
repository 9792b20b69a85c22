#!/usr/bin/env bash
# An explanation (直接对比 LayerNorm 和 BatchNorm) asks: of 2 sentences of 3 words with 4 numbers each, which
# numbers are normalized together? It takes BatchNorm over the batch axis alone, one group per word and feature.
set -eu
cd "$(dirname "$0")"

echo "== LayerNorm: 6 groups of 4; the first word 1 2 3 4 has the mean 2.5 and the variance 1.25"
normcli ln -i 003-words.json --layout NLC --eps 0 --digits 4

echo
echo "== BatchNorm over the batch alone: 12 groups of 2; 1 and -1 have the mean 0 and the variance 1"
normcli bn -i 003-words.json --layout NLC --axes N --eps 0

echo
echo "== The first word with a framework's eps of 1e-5: LayerNorm, then BatchNorm over the batch alone"
normcli ln -i 003-words.json --layout NLC --print normalized | head -n 4
echo
normcli bn -i 003-words.json --layout NLC --axes N --print normalized | head -n 4

echo
echo "== A batch of one: each group has a single value and no variance, which a warning says"
normcli bn --data '[[[1, 2, 3, 4]]]' --layout NLC --axes N --show stats,normalized 2>&1

echo
echo "== For comparison, BatchNorm by its definition, over the words too: 4 groups of 6"
normcli bn -i 003-words.json --layout NLC --show stats,normalized
