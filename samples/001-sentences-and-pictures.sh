#!/usr/bin/env bash
# An article (图解LayerNorm & BatchNorm) asks: of a batch of sentences (b, n, d) or of pictures (b, c, h, w),
# how many means are there, of what shape, and does the formula written out agree with the framework?
# Its random tensors have no seed and each listing is another draw, so what it prints is kept in files here.
set -eu
cd "$(dirname "$0")"

echo "== BatchNorm of sentences: one mean per feature (bnd → 11d), here of the input that the article prints"
echo "   (the mean that it prints, 0.0695 -0.6811 -0.1232 -0.5339, is of a draw that it does not show)"
normcli bn -i 001-printed-input.json --layout BND --show input,stats --digits 5

echo
echo "== The framework's output: normalized once more, it stays as it is, to within 0.00004"
normcli bn -i 001-printed-inside.json --layout BND --show normalized,check

echo
echo "== The output of the formula written out, which adds eps outside the root: likewise"
normcli bn -i 001-printed-outside.json --layout BND --eps-mode outside --show normalized,check

echo
echo "== BatchNorm of 4 pictures that count from 0 to 47: one mean per channel (bchw → 1c11)"
normcli bn --shape 4,3,2,2 --dist arange --layout BCHW --show input,stats

# The article writes the shape as 1n1; its own sentence, one mean per word, makes it bn1.
echo
echo "== LayerNorm of sentences: one mean per word of each sentence (bnd → bn1)"
normcli ln -i 001-printed-input.json --layout BND --show stats --digits 5

echo
echo "== LayerNorm of the same 4 pictures: one mean per picture (bchw → b111)"
normcli ln --shape 4,3,2,2 --dist arange --layout BCHW --axes CHW --show stats,normalized

echo
echo "== Shapes for any draw: 1c11 and b111, and the tensor keeps its own"
normcli bn --shape 4,3,2,2 --dist normal --layout BCHW --eps-mode outside --show check
normcli ln --shape 4,3,2,2 --dist normal --layout BCHW --axes CHW --eps-mode outside --show check
