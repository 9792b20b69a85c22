#!/usr/bin/env bash
# A check for pull requests: the kernel is run on tensors that normcli makes, and held against exact results.
# In a workflow it is one step: pip install normcli && bash check.sh
# 771 values in a row fill no block of lanes, and their mean is not 0: what is lost in either would not show otherwise.
# Exit code: 0 if every value agrees, 1 if one differs; the report says which, by how much, and what it is instead.
set -eu
cd "$(dirname "$0")"
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT

for dtype in float16 float32; do
    normcli golden ln --shape 64,771 --dist uniform --low 1 --high 5 --dtype $dtype --affine-seed 1 -o "$folder/$dtype"
    python layer_norm.py "$folder/$dtype"/{input,gamma,beta}.npy "$folder/y-$dtype.npy"
    normcli check ln -i "$folder/$dtype/input.npy" --gamma "$folder/$dtype/gamma.npy" --beta "$folder/$dtype/beta.npy" \
        --actual "$folder/y-$dtype.npy"
done
