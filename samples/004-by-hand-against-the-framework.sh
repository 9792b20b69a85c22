#!/usr/bin/env bash
# An article (从代码实现看normalization-到底做了什么) asks: what do a framework's BatchNorm and LayerNorm do,
# with a random gamma and beta, to a table, to pictures and to sentences, and does a version by hand agree?
# The framework has eps 1e-5 inside the root, the hand 1e-8 outside: they differ in the last printed digit.
set -eu
cd "$(dirname "$0")"

echo "== Table 3 × 4, BatchNorm: input, gamma, beta, mean, std and output"
normcli bn --shape 3,4 --rng torch --dist normal --seed 0 --affine-seed 1 \
    --digits 5 --show input,stats,normalized
echo
echo "== The same by hand"
normcli bn --shape 3,4 --rng torch --dist normal --seed 0 --affine-seed 1 \
    --eps 1e-8 --eps-mode outside --digits 5 --show normalized
echo
echo "== Table 3 × 4, LayerNorm: gamma, beta, mean, std and output"
normcli ln --shape 3,4 --rng torch --dist normal --seed 0 --affine-seed 2 --digits 5 --show stats,normalized
echo
echo "== The same by hand"
normcli ln --shape 3,4 --rng torch --dist normal --seed 0 --affine-seed 2 \
    --eps 1e-8 --eps-mode outside --digits 5 --show normalized

echo
echo "== Pictures 2 × 2 × 2 × 3, BatchNorm: input, gamma, beta and output"
normcli bn --shape 2,2,2,3 --rng torch --dist normal --seed 3 --affine-seed 4 \
    --digits 5 --show input,normalized
echo
echo "== The same by hand"
normcli bn --shape 2,2,2,3 --rng torch --dist normal --seed 3 --affine-seed 4 \
    --eps 1e-8 --eps-mode outside --digits 5 --show normalized
echo
echo "== Pictures, LayerNorm over c, h and w: a gamma and a beta for each of the 12 values of a picture"
normcli ln --shape 2,2,2,3 --rng torch --dist normal --seed 3 --axes CHW --affine-seed 5 \
    --digits 5 --show normalized --full
echo
echo "== The same by hand"
normcli ln --shape 2,2,2,3 --rng torch --dist normal --seed 3 --axes CHW --affine-seed 5 \
    --eps 1e-8 --eps-mode outside --digits 5 --show normalized

echo
echo "== Sentences 2 × 3 × 4, BatchNorm: gamma, beta, mean, std and output"
normcli bn --shape 2,3,4 --layout NSH --rng torch --dist normal --seed 6 --affine-seed 7 \
    --digits 5 --show stats,normalized
echo
echo "== The same by hand"
normcli bn --shape 2,3,4 --layout NSH --rng torch --dist normal --seed 6 --affine-seed 7 \
    --eps 1e-8 --eps-mode outside --digits 5 --show normalized
echo
echo "== Sentences, LayerNorm: gamma, beta, mean, std and output"
normcli ln --shape 2,3,4 --layout NSH --rng torch --dist normal --seed 6 --affine-seed 8 \
    --digits 5 --show stats,normalized
echo
echo "== The same by hand"
normcli ln --shape 2,3,4 --layout NSH --rng torch --dist normal --seed 6 --affine-seed 8 \
    --eps 1e-8 --eps-mode outside --digits 5 --show normalized
