#!/usr/bin/env bash
# Brings what a fresh Debian machine lacks: our npm dependencies (with their own Node 24), and by name the Debian
# packages and the engine that the caller asks for. Quiet when there is nothing to do.
# usage: setup.sh [redis] [rootfs] [prometheus] [examples] [docker] [podman] [apptainer] [slurm] [chromium] [page] [faketime] [shellcheck]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

say() { printf 'setup: %s\n' "$*" >&2; }

npm_dependencies() {
  if [ -e node_modules/.package-lock.json ] && [ node_modules/.package-lock.json -nt package-lock.json ]; then return; fi
  say 'npm ci'
  # Engine warnings are about the Node that runs npm; what runs our code comes with the dependencies.
  npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2
}

apt_updated=
debian() { # debian COMMAND PACKAGE...: installs the packages when the command is missing
  local command=$1
  shift
  type -P "$command" >/dev/null || [ -x "/usr/sbin/$command" ] && return 0
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    say "missing: $command (apt-get install $*)"
    return 1
  fi
  say "apt-get install $*"
  if [ -z "$apt_updated" ]; then
    apt-get update -qq >&2
    apt_updated=1
  fi
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null 2>&1 ||
    { say "apt-get install $* failed; run it by hand to see why"; return 1; }
}

redis() { command -v valkey-server >/dev/null 2>&1 || debian redis-server redis-server || true; }
rootfs() { debian bwrap bubblewrap || true; }
prometheus() {
  debian prometheus prometheus || true
  debian prometheus-alertmanager prometheus-alertmanager || true
}
examples() {
  debian python3 python3 python3-venv || true
  debian git git || true
  debian patch patch || true
  debian gcc gcc libc6-dev python3-dev || true
  debian debootstrap debootstrap || true
}
shellcheck() { debian shellcheck shellcheck || true; }
faketime() { debian faketime faketime || true; }
chromium() { debian chromium chromium fonts-dejavu-core || true; }
# The page of the gateway, from its sources: only when they are newer than what is there.
page() { PATH="$PWD/node_modules/.bin:$PATH" node producer/page/build.ts --if-needed; }
slurm() { debian slurmctld slurmctld slurmd slurm-client munge || true; }
docker() { debian dockerd docker.io iptables && bash testkit/ci/dockerd.sh; }
podman() {
  debian podman podman || true
  debian runc runc || true
  debian newuidmap uidmap || true
  debian slirp4netns slirp4netns || true
  debian fuse-overlayfs fuse-overlayfs || true
}
apptainer() {
  debian bwrap bubblewrap || true
  debian unsquashfs squashfs-tools || true
  bash testkit/setup/apptainer.sh || true
}

npm_dependencies
for part in "$@"; do
  case $part in
    redis | rootfs | prometheus | examples | docker | podman | apptainer | slurm | chromium | page | faketime | shellcheck) "$part" ;;
    *) say "unknown part: $part"; exit 2 ;;
  esac
done
