#!/usr/bin/env bash
# Trains with OpenRLHF 0.11.2 over the farm of SWEFARM_GATEWAY_URL: 32 groups of 16 in a step. usage: run.sh TRAIN VERIFIED [OPTION...]
# TRAIN, VERIFIED: files of the farm's rows. HOST: address of this node at which workers reach the policy.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ROWS=$(mktemp)
trap 'rm -f "$ROWS"' EXIT
awk 1 "$1" "$2" >"$ROWS" # unlike cat, awk ends the last line of each file
: "${HOST:?the address of this node}"
export ROWS HOST
options=(
  --actor.model_name_or_path Qwen/Qwen3-8B
  --train.agent_func_path "$here/agent.py"
  --data.prompt_dataset "$1" --data.input_key problem_statement --data.label_key instance_id
  --eval.dataset "$2" --eval.steps 20 --eval.n_samples_per_prompt 1 --eval.temperature 1.0
  --data.max_len 40960                                       # prompt and response
  --rollout.batch_size 32 --rollout.n_samples_per_prompt 16
  --train.batch_size 512                                     # samples of an optimizer step: one step for each batch
  --train.micro_batch_size 1 --rollout.micro_batch_size 1
  --rollout.temperature 1.0 --rollout.top_p 1.0
  --algo.advantage.estimator dr_grpo                         # the only estimator that is exact if samples are unjudged
  --algo.kl.init_coef 0
  --algo.advantage.is_correction_level token --algo.advantage.is_correction_mode clip --algo.advantage.is_correction_threshold 0 2
  --actor.adam.lr 1e-6 --actor.gradient_checkpointing_enable --ds.zero_stage 3
  --actor.num_nodes 1 --actor.num_gpus_per_node 8 --ref.num_gpus_per_node 8
  --vllm.num_engines 8 --vllm.enable_prefix_caching --vllm.gpu_memory_utilization 0.6
  --train.colocate_all --vllm.enable_sleep --ds.enable_sleep  # staleness 0
)
python3 -m openrlhf.cli.train_ppo_ray "${options[@]}" "${@:3}" &
trap 'kill "$!"' INT TERM
wait "$!"
