#!/usr/bin/env bash
# pypi.sh FOLDER CACHE: a private index of Python packages (pypiserver) on loopback, with the user release. Prints its URL.
# Stop it with: kill $(cat FOLDER/pid)      Environment: PYPI_PORT (15002).
set -euo pipefail
mkdir -p "$1" "$2"
folder=$(cd "$1" && pwd) cache=$(cd "$2" && pwd)
port=${PYPI_PORT:-15002}
url=http://127.0.0.1:$port
fail() { printf 'Python index: %s\n' "$*" >&2; exit 12; }

if [ ! -x "$cache/bin/pypi-server" ]; then
  python3 -m venv "$cache" && "$cache/bin/pip" install -q pypiserver==2.4.2 'passlib==1.7.4' >&2 || fail 'pypiserver could not be installed'
fi
mkdir -p "$folder/packages"
printf 'release:%s\n' "$(openssl passwd -apr1 release-test)" >"$folder/htpasswd"
if curl -s -o /dev/null "$url"; then fail "port $port is taken"; fi
setsid "$cache/bin/pypi-server" run --interface 127.0.0.1 --port "$port" --authenticate update --passwords "$folder/htpasswd" \
  --disable-fallback "$folder/packages" >"$folder/output" 2>&1 </dev/null &
echo $! >"$folder/pid"
for _ in {1..600}; do
  if curl -s -o /dev/null "$url"; then echo "$url" && exit; fi
  kill -0 "$(cat "$folder/pid")" 2>/dev/null || { cat "$folder/output" >&2; fail 'pypiserver did not start'; }
  sleep 0.1
done
fail 'pypiserver does not answer'
