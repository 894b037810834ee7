#!/usr/bin/env bash
# Trains with verl over the farm of SWEFARM_GATEWAY_URL and SWEFARM_GATEWAY_TOKEN. usage: run.sh smoke|grpo DATA MODEL [OVERRIDE...]
# DATA: the folder of prepare.sh; smoke uses DATA/smoke.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
name=$1 DATA=$2 MODEL=$3
[ "$name" != smoke ] || DATA=$DATA/smoke
: "${SWEFARM_GATEWAY_URL:?the address of swefarm serve}" "${SWEFARM_GATEWAY_TOKEN:?its token}"
SWEFARM_VERL_CONFIG=$(python -c 'import swefarm.trainers.verl as package; print(package.__path__[0])')/config
export DATA MODEL SWEFARM_VERL_CONFIG VERL_USE_EXTERNAL_MODULES=swefarm.trainers.verl.advantage
exec python -m verl.trainer.main_ppo --config-path "$here/config" --config-name "$name" 'hydra.searchpath=[pkg://verl.trainer.config]' "${@:4}"
