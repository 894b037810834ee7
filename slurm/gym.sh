#!/usr/bin/env bash
# Waits for the farm's gateway and writes a configuration for NeMo Gym: two entries with host and port of the gateway.
# usage: gym.sh FARM_DIR OUTPUT.yaml [SECONDS]
set -euo pipefail

dir=${1:?the folder SWEFARM_SLURM_DIR}
output=${2:?the YAML file to write}
patience=${3:-900}
address=$dir/gateway/address.json

for ((waited = 0; ; waited += 2)); do
  [ ! -s "$address" ] || break
  if [ "$waited" -ge "$patience" ]; then
    echo "gym.sh: no gateway in $dir after $waited s: is a job of workers.sh running with SWEFARM_SLURM_GATEWAY=1?" >&2
    exit 12
  fi
  sleep 2
done
host=$(sed -n 's/.*"host":"\([^"]*\)".*/\1/p' "$address")
port=$(sed -n 's/.*"port":\([0-9]*\).*/\1/p' "$address")
cat >"$output.draft" <<YAML
swe_farm:
  responses_api_agents:
    swe_farm:
      host: $host
      port: $port
swe_farm_environment_server:
  environment_servers:
    legacy_agent:
      host: $host
      port: $port
      agent_server:
        type: responses_api_agents
        name: swe_farm
YAML
mv -f "$output.draft" "$output"
