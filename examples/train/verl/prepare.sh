#!/usr/bin/env bash
# Writes the data of config/*.yaml to FOLDER: whole splits in FOLDER, and 10 training and 2 validation instances in FOLDER/smoke.
# usage: prepare.sh TRAIN VALIDATION FOLDER; files with rows, such as those of `swefarm dataset fetch`
set -euo pipefail
train=$1 validation=$2 folder=$3

rows() { # rows DATASET SHARE PART OUT [OPTION...]: writes one part of a dataset to OUT
  local scratch
  scratch=$(mktemp -d)
  swefarm dataset to-verl --dataset "$1" --val-share "$2" --agent-name swefarm --skip-ungradable --output-dir "$scratch" "${@:5}"
  mkdir -p "$(dirname "$4")"
  mv "$scratch/$3.parquet" "$4"
  rm -r "$scratch"
}

rows "$train" 0 train "$folder/train.parquet"
rows "$validation" 1 val "$folder/val.parquet"
rows "$train" 0 train "$folder/smoke/train.parquet" --first 10
rows "$validation" 1 val "$folder/smoke/val.parquet" --first 2
