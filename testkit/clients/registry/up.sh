#!/usr/bin/env bash
# up.sh FOLDER: a real registry (CNCF distribution) on loopback, with its data in FOLDER/data. Prints HOST:PORT; stop it with: kill $(cat FOLDER/pid)
# Uses Debian's docker-registry, or builds v3.1.2 from the Go proxy once (Go 1.25 or later), in .swefarm/cache/registry. Needs curl and perl.
# Environment: PORT (15000). LOGIN=USER:PASSWORD: requires basic authentication. TLS_CERT and TLS_KEY: files in PEM, for HTTPS.
# TOKEN_REALM, TOKEN_SERVICE, TOKEN_ISSUER and TOKEN_ROOTS: URL, names and certificates of a server of tokens. BUILD=1: ignores Debian's program.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
port=${PORT:-15000}
version=v3.1.2
cache=$root/.swefarm/cache/registry
scheme=http
[ -z "${TLS_CERT:-}" ] || scheme=https

say() { printf 'registry: %s\n' "$*" >&2; }

program() { # prints the path of the registry's program
  if [ "${BUILD:-}" != 1 ] && type -P docker-registry; then return; fi
  if [ ! -x "$cache/registry-$version" ]; then
    say "building distribution $version (minutes)"
    mkdir -p "$cache"
    (cd "$cache" && GOBIN=$cache/build CGO_ENABLED=0 go install -trimpath -ldflags '-s -w' \
      "github.com/distribution/distribution/v3/cmd/registry@$version" >&2)
    mv "$cache/build/registry" "$cache/registry-$version"
  fi
  echo "$cache/registry-$version"
}

configure() { # writes FOLDER/config.yml
  cat <<YAML
version: 0.1
log: {level: warn}
storage:
  filesystem: {rootdirectory: $folder/data}
  delete: {enabled: true}
http:
  addr: 127.0.0.1:$port
YAML
  [ "$scheme" = http ] || printf '  tls: {certificate: %s, key: %s}\n' "$TLS_CERT" "$TLS_KEY"
  if [ -n "${LOGIN:-}" ]; then
    # perl hashes by bcrypt, the only hash that the registry accepts.
    printf '%s:%s\n' "${LOGIN%%:*}" "$(PASSWORD=${LOGIN#*:} perl -e 'print crypt($ENV{PASSWORD}, q($2y$05$registryregistryregist))')" >"$folder/htpasswd"
    printf 'auth:\n  htpasswd: {realm: registry, path: %s}\n' "$folder/htpasswd"
  elif [ -n "${TOKEN_REALM:-}" ]; then
    printf 'auth:\n  token: {realm: "%s", service: "%s", issuer: "%s", rootcertbundle: %s}\n' \
      "$TOKEN_REALM" "${TOKEN_SERVICE:-registry}" "${TOKEN_ISSUER:-issuer}" "$TOKEN_ROOTS"
  fi
}

answers() { curl -sk -o /dev/null "$scheme://127.0.0.1:$port/v2/"; }

if answers; then
  say "port $port is taken"
  exit 1
fi
registry=$(program)
configure >"$folder/config.yml"
setsid "$registry" serve "$folder/config.yml" >"$folder/log" 2>&1 </dev/null &
echo $! >"$folder/pid"
from=$SECONDS
until answers; do
  if ! kill -0 "$(cat "$folder/pid")" 2>/dev/null || [ $((SECONDS - from)) -gt 60 ]; then
    say "the server did not start; the end of $folder/log:"
    tail -5 "$folder/log" >&2
    exit 1
  fi
  sleep 0.1
done
echo "127.0.0.1:$port"
