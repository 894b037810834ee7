#!/usr/bin/env bash
# Installs Harbor 0.25.0 from PyPI in FOLDER/venv. If the engine has no `docker compose` or no buildx, the script puts Debian's plugins in
# FOLDER/docker, which is a folder for DOCKER_CONFIG. Nothing outside of FOLDER changes.
# usage: setup.sh FOLDER
set -euo pipefail
folder=$1
mkdir -p "$folder/docker/cli-plugins"
[ -e "$folder/complete" ] && exit
newer=$(find "${PYENV_ROOT:-$HOME/.pyenv}/versions" -path '*/3.1[23]*/bin/python' 2>/dev/null | sort | head -1)
python=${SWEFARM_HARBOR_PYTHON:-${newer:-python3.12}}
command -v "$python" >/dev/null || { echo 'setup: harbor needs Python 3.12 (SWEFARM_HARBOR_PYTHON=…)' >&2; exit 1; }
rm -rf "$folder/venv"
"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --no-deps harbor==0.25.0
# Some package indexes lack the newest certifi, which Harbor requires.
"$folder/venv/bin/python" - >"$folder/requirements.txt" <<'END'
import importlib.metadata, re
for one in importlib.metadata.requires("harbor"):
    if "extra ==" not in one:
        print("certifi" if one.startswith("certifi") else one)
END
"$folder/venv/bin/pip" install -q -r "$folder/requirements.txt"

plugin() { # plugin NAME: takes a plugin of the Docker command from a package of Debian trixie
  local mirror path
  mirror=${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(SITE)' | head -n 1)}
  [ -f "$folder/Packages.xz" ] || curl -fsS "$mirror/dists/trixie/main/binary-$(dpkg --print-architecture)/Packages.xz" -o "$folder/Packages.xz"
  path=$(xz -dc "$folder/Packages.xz" | awk -v p="$1" '$1 == "Package:" { on = $2 == p } on && $1 == "Filename:" { print $2 }')
  curl -fsS "$mirror/$path" -o "$folder/$1.deb"
  dpkg-deb -x "$folder/$1.deb" "$folder/$1"
  cp "$(find "$folder/$1" -type f -name "$1" -path '*cli-plugins*')" "$folder/docker/cli-plugins/"
}
docker compose version >/dev/null 2>&1 || plugin docker-compose
docker buildx version >/dev/null 2>&1 || plugin docker-buildx
touch "$folder/complete"
