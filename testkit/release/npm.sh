#!/usr/bin/env bash
# npm.sh FOLDER CACHE: a private npm registry (Verdaccio) on loopback, which forwards requests for other packages to npm's registry. Packages of
# swefarm are its own. Prints its URL, and writes FOLDER/npmrc with the token of a user. Stop it with: kill $(cat FOLDER/pid)
# Environment: NPM_PORT (15001).
set -euo pipefail
mkdir -p "$1" "$2"
folder=$(cd "$1" && pwd) cache=$(cd "$2" && pwd)
port=${NPM_PORT:-15001}
url=http://127.0.0.1:$port
fail() { printf 'npm registry: %s\n' "$*" >&2; exit 12; }

# Verdaccio 6.10 needs Node 22 in front of its own requests; 6.8 with node-fetch 2 runs on every Node that swefarm supports.
if [ ! -x "$cache/node_modules/.bin/verdaccio" ]; then
  echo '{"private": true, "overrides": {"node-fetch": "2.7.0"}}' >"$cache/package.json"
  (cd "$cache" && npm install --no-audit --no-fund --ignore-scripts --loglevel=error verdaccio@6.8.0 >&2) || fail 'Verdaccio could not be installed'
fi
cat >"$folder/config.yaml" <<YAML
storage: $folder/storage
auth: {htpasswd: {file: $folder/htpasswd, max_users: 10}}
uplinks: {npmjs: {url: '$(npm config get registry)', timeout: 180s}}
packages:
  'swefarm': {access: \$all, publish: \$authenticated}
  '@swefarm/*': {access: \$all, publish: \$authenticated}
  '**': {access: \$all, proxy: npmjs}
max_body_size: 500mb
log: {type: file, path: $folder/log, level: warn}
YAML
if curl -s -o /dev/null "$url"; then fail "port $port is taken"; fi
setsid node "$cache/node_modules/.bin/verdaccio" --config "$folder/config.yaml" --listen "127.0.0.1:$port" >"$folder/output" 2>&1 </dev/null &
echo $! >"$folder/pid"
for _ in {1..1200}; do
  if curl -s -o /dev/null "$url/-/ping"; then break; fi
  kill -0 "$(cat "$folder/pid")" 2>/dev/null || { cat "$folder/output" >&2; fail 'Verdaccio did not start'; }
  sleep 0.1
done
token=$(curl -sS -X PUT -H 'content-type: application/json' -d '{"name": "release", "password": "release-test"}' \
  "$url/-/user/org.couchdb.user:release" | sed -n 's/.*"token": *"\([^"]*\)".*/\1/p')
[ -n "$token" ] || fail 'Verdaccio gave no token'
printf '//127.0.0.1:%s/:_authToken=%s\n' "$port" "$token" >"$folder/npmrc"
echo "$url"
