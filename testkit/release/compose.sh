# shellcheck shell=bash
# Sourced by install.sh: `composed` starts the Compose file of the release with images that Docker pulls from the registry.

composed() {
  local from token id project
  mkdir -p "$work/compose/data" && chmod 1777 "$work/compose/data"
  tar -xzf "$artefacts/swefarm-$version-compose.tar.gz" -C "$work/compose"
  cp "$work/dataset/instances.docker.jsonl" "$work/compose/data/rows.jsonl"
  # A project of its own, ports that are free on most machines, and Debian's Prometheus.
  project=$(printf 'COMPOSE_PROJECT_NAME=%s\nSWEFARM_IMAGES=%s/farm/\nSWEFARM_PORT=15080\nPROMETHEUS_PORT=15090' "$images" "$oci_registry")
  printf '%s\nPROMETHEUS_IMAGE=swefarm.test/prometheus:1\n' "$project" >"$work/compose/.env"
  printf 'services:\n  prometheus: {entrypoint: [prometheus]}\n' >"$work/compose/compose.override.yaml"
  docker rmi "$oci_registry/farm/swefarm-worker:$version" "$oci_registry/farm/swefarm-gateway:$version" >/dev/null || return 1
  from=$(date +%s%3N)
  compose up --detach redis gateway worker prometheus || return 1
  id=$(compose exec -T gateway swefarm submit --dataset /data/rows.jsonl --agent golden | sed -n 's/.*"run_id":"\([^"]*\)".*/\1/p')
  compose exec -T gateway swefarm collect "$id" --output /data/out.jsonl || return 1
  grep -q '"reward":1' "$work/compose/data/out.jsonl" || return 1
  printf 'compose: first reward after %s ms; %s bytes in the registry\n' $(($(date +%s%3N) - from)) "$(du -sb "$work/oci/data" | cut -f 1)"
  token=$(compose exec -T gateway cat /var/lib/swefarm/state/gateway.token)
  curl -sf -H "Authorization: Bearer $token" http://127.0.0.1:15080/v1/runs | grep -q "$id" || return 1
  for _ in {1..90}; do
    if [ "$(curl -s http://127.0.0.1:15090/api/v1/targets | grep -o '"health":"up"' | wc -l)" = 2 ]; then
      echo 'compose: Prometheus scrapes the gateway and the worker' && return 0
    fi
    sleep 1
  done
  curl -s http://127.0.0.1:15090/api/v1/targets
  return 1
}
