#!/usr/bin/env bash
# Installs Apptainer on this node unless Apptainer is usable. With SWEFARM_RUNTIME=apptainer, node.sh runs this script before the worker.
# SWEFARM_SLURM_SETUP names another script. This script may run repeatedly and concurrently, and prints what is missing when it fails.
# SWEFARM_SLURM_APPTAINER: a .deb or .rpm on the shared file system, for nodes whose package sources do not have Apptainer.
set -uo pipefail

say() { printf 'setup-apptainer on %s: %s\n' "${SLURMD_NODENAME:-$(hostname)}" "$*" >&2; }
fail() { say "$*"; exit 12; }
has() { command -v "$1" >/dev/null 2>&1; }
root() { [ "$(id -u)" = 0 ]; }

program() {
  local name
  for name in apptainer singularity; do
    if has "$name" && "$name" --version >/dev/null 2>&1; then
      echo "$name"
      return 0
    fi
  done
  return 1
}

install() {
  local file=${SWEFARM_SLURM_APPTAINER:-}
  [ -z "$file" ] || [ -r "$file" ] || fail "$file cannot be read: SWEFARM_SLURM_APPTAINER names a package on the shared file system"
  if has apt-get; then
    apt-get update -qq >/dev/null 2>&1
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq -o DPkg::Lock::Timeout=300 "${file:-apptainer}" >/dev/null 2>&1
  elif has dnf; then
    # Enterprise Linux has Apptainer in EPEL only.
    [ -n "$file" ] || dnf install -y -q epel-release >/dev/null 2>&1
    dnf install -y -q "${file:-apptainer}" >/dev/null 2>&1
  elif has zypper; then
    zypper --non-interactive --quiet install "${file:-apptainer}" >/dev/null 2>&1
  else
    return 1
  fi
}

# Other jobs on this node may run this script at the same time. The lock ends with this process.
if root && has flock; then
  exec 9>/run/swefarm-setup-apptainer.lock && flock 9
fi

if ! program >/dev/null; then
  root || fail 'there is no apptainer or singularity, and only root can install it: ask for it on the nodes, or take SWEFARM_RUNTIME=rootfs'
  install
  program >/dev/null || fail 'apptainer could not be installed from the package sources of this node: set SWEFARM_SLURM_APPTAINER to its .deb or .rpm'
  say 'apptainer was installed'
fi
found=$(program)

# Without root, Apptainer needs user namespaces, unless its starter is setuid.
if ! unshare --user --map-root-user true 2>/dev/null; then
  if root; then
    for setting in kernel.unprivileged_userns_clone=1 user.max_user_namespaces=65536 kernel.apparmor_restrict_unprivileged_userns=0; do
      [ -e "/proc/sys/$(echo "${setting%=*}" | tr . /)" ] && sysctl -qw "$setting" 2>/dev/null
    done
  elif ! find "$(dirname -- "$(readlink -f -- "$(command -v "$found")")")/../libexec" /usr/libexec /usr/lib -name starter-suid -perm -4000 2>/dev/null | grep -q .; then
    fail "$found needs user namespaces, which are off here: ask for sysctl user.max_user_namespaces=65536 and kernel.unprivileged_userns_clone=1"
  fi
fi
exit 0
