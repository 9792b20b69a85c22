#!/usr/bin/env bash
# A notebook (先来看看BN的定义) asks: on a table of 100 samples and 20 features, what differs between averaging
# over the samples (BatchNorm) and over the features (LayerNorm)?
# Its overall means, 3.6e-18 and -7.3e-18, are rounding errors of 0: they depend on the order of summation.
set -eu
cd "$(dirname "$0")"

echo "== BatchNorm: 20 groups of 100; mean and variance of the first feature"
normcli bn --shape 100,20 --dist normal --seed 2025 --eps 1e-9 --show check
normcli bn --shape 100,20 --dist normal --seed 2025 --eps 1e-9 --print mean | head -n 1
normcli bn --shape 100,20 --dist normal --seed 2025 --eps 1e-9 --print var | head -n 1

echo
echo "== BatchNorm: mean and variance of the whole output"
normcli bn --shape 100,20 --dist normal --seed 2025 --eps 1e-9 -o - | normcli bn -i - --axes NC --print mean
normcli bn --shape 100,20 --dist normal --seed 2025 --eps 1e-9 -o - | normcli bn -i - --axes NC --print var

# The notebook ran its second cell several times: its tensor is the sixth draw of 2000 values.
echo
echo "== LayerNorm: 100 groups of 20; mean and variance of the first sample"
normcli ln --shape 100,20 --dist normal --seed 2025 --skip 10000 --eps 1e-9 --show check
normcli ln --shape 100,20 --dist normal --seed 2025 --skip 10000 --eps 1e-9 --print mean | head -n 1
normcli ln --shape 100,20 --dist normal --seed 2025 --skip 10000 --eps 1e-9 --print var | head -n 1

echo
echo "== LayerNorm: mean and variance of the whole output"
normcli ln --shape 100,20 --dist normal --seed 2025 --skip 10000 --eps 1e-9 -o - | normcli bn -i - --axes NC --print mean
normcli ln --shape 100,20 --dist normal --seed 2025 --skip 10000 --eps 1e-9 -o - | normcli bn -i - --axes NC --print var
