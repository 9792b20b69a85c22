#!/usr/bin/env bash
# A notebook (BatchNorm 计算演示, LayerNorm 计算演示) asks: given a tensor of whole numbers, which values
# share one mean and one variance, what are these, and what does each value become?
# It computes in float32, so its last printed digit may differ from the one here.
set -eu
cd "$(dirname "$0")"

echo "== BatchNorm: the tensor, and the mean and variance of each of its 3 channels"
normcli bn --shape 2,3,4,4 --seed 42 --show input,stats --digits 7

echo
echo "== BatchNorm: the standardized tensor; its means are about 0, its variances about 1"
normcli bn --shape 2,3,4,4 --seed 42 --show normalized,check --digits 7

echo
echo "== BatchNorm: gamma = 1 and beta = 0 change nothing (first row of the first matrix)"
normcli bn --shape 2,3,4,4 --seed 42 --gamma 1 --beta 0 --print normalized | head -n 4

echo
echo "== LayerNorm: the tensor, and the mean and variance of each of its 2 × 4 tokens"
normcli ln --shape 2,4,8 --seed 45 --layout NLC --show input,stats

echo
echo "== LayerNorm: the standardized tensor (the notebook computes it and does not print it)"
normcli ln --shape 2,4,8 --seed 45 --layout NLC --show normalized,check
