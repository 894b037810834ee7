#!/usr/bin/env bash
# Trains with slime 0.3.1 over the farm of SWEFARM_GATEWAY_URL: 32 groups of 16 in a step. usage: run.sh SLIME MODEL TRAIN VERIFIED [OPTION...]
# SLIME: checkout of THUDM/slime. MODEL: folder of Qwen3-8B. TRAIN, VERIFIED: files with the columns prompt and metadata (README). Ray and Megatron-LM must be there.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
slime=$(realpath "$1") model=$(realpath "$2") train=$(realpath "$3") verified=$(realpath "$4")
. "$slime/scripts/models/qwen3-8B.sh" # MODEL_ARGS
options=(
  --hf-checkpoint "$model" --load "$model"
  --actor-num-nodes 1 --actor-num-gpus-per-node 8 --colocate --rollout-num-gpus-per-engine 2
  --custom-generate-function-path swefarm.trainers.slime.generate
  --custom-reward-post-process-path swefarm.trainers.slime.post_process
  --custom-config-path "$here/farm.yaml"
  --prompt-data "$train" --input-key prompt --metadata-key metadata --rollout-shuffle
  --rollout-batch-size 32 --n-samples-per-prompt 16
  --global-batch-size 512                                    # samples of an optimizer step: one step for each batch
  --num-rollout 200
  # Draws more groups until 32 have rewards that differ. slime cancels the others.
  --dynamic-sampling-filter-path swefarm.trainers.slime.mixed --over-sampling-batch-size 48
  --rollout-max-response-len 32768 --rollout-max-context-len 40960
  --rollout-temperature 1 --rollout-top-p 1
  --eval-prompt-data verified "$verified" --eval-interval 20 --n-samples-per-eval-prompt 1 --eval-max-response-len 32768
  --advantage-estimator grpo --eps-clip 0.2 --eps-clip-high 0.28
  --use-tis --tis-clip 2.0                                   # sampler and trainer differ in bfloat16: truncated per token
)
megatron=(
  --tensor-model-parallel-size 2 --sequence-parallel --context-parallel-size 2
  --recompute-granularity full --recompute-method uniform --recompute-num-layers 1
  --use-dynamic-batch-size --max-tokens-per-gpu 20480
  --optimizer adam --lr 1e-6 --lr-decay-style constant
  --attention-dropout 0.0 --hidden-dropout 0.0
)
cd "$slime"
exec python3 train.py "${MODEL_ARGS[@]}" "${options[@]}" "${megatron[@]}" "${@:5}"
