#!/usr/bin/env bash
# Fits a store in 64 parts, each a task of SLURM in constant memory, then merges them; in which order, no bit depends on:
#     fit=$(sbatch --parsable slurm.sh train.zarr stats.npz)
#     sbatch --array=1 --dependency="afterok:$fit" slurm.sh train.zarr stats.npz merge
# A part that failed is run again alone: sbatch --array=7 slurm.sh train.zarr stats.npz
#SBATCH --job-name=normcli-fit
#SBATCH --array=1-64
#SBATCH --cpus-per-task=4
#SBATCH --mem=2G
#SBATCH --time=01:00:00
set -euo pipefail

shards=64 # as --array says
store=$1
output=$2
parts=${output%.npz}.parts

if [ "${3:-}" = merge ]; then
    shopt -s nullglob
    found=("$parts"/*.npz)
    if [ "${#found[@]}" != "$shards" ]; then
        echo "${#found[@]} of $shards parts are there" >&2
        exit 1
    fi
    normcli merge "${found[@]}" -o "$output" --quiet
else
    mkdir -p "$parts"
    normcli fit bn "$store" --shard "$SLURM_ARRAY_TASK_ID/$shards" --threads "$SLURM_CPUS_PER_TASK" \
        -o "$parts/$SLURM_ARRAY_TASK_ID.npz" --quiet
fi
