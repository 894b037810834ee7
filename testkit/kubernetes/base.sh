#!/usr/bin/env bash
# Makes a Debian root for the images of the tests from Debian's packages, without a registry of images, with the packages that the
# images and Redis need. Imports the root into the engine, and caches it outside the repository.
# usage: base.sh ENGINE NAME:TAG [PACKAGE,...]      ENGINE: docker or podman; PACKAGE: additional Debian packages
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
engine=${1:?docker or podman} name=${2:?the name of the image}
packages=bubblewrap,ca-certificates,mount,redis-server,tini,util-linux${3:+,$3}
cache=${SWEFARM_KUBERNETES_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/swefarm/kubernetes}
root=$cache/base-bookworm-$(printf %s "$packages" | sha256sum | cut -c 1-12).tar

if ! "$engine" image inspect "$name" >/dev/null 2>&1; then
  mkdir -p "$cache"
  exec 5>"$cache/base.lock"
  flock 5
  if [ ! -s "$root" ]; then
    draft=$(mktemp -d "$cache/base.XXXXXX")
    trap 'rm -rf --one-file-system "$draft"' EXIT
    mirror=$(node testkit/ci/fresh/sources.ts bookworm --mirror)
    unshare --mount --pid --fork --kill-child -- \
      debootstrap --variant=minbase --include="$packages" bookworm "$draft/root" ${mirror:+"$mirror"} >"$draft/log" 2>&1 </dev/null || {
      tail -n 5 "$draft/log" >&2
      echo "base.sh: debootstrap failed" >&2
      exit 12
    }
    rm -rf "$draft"/root/var/cache/apt/* "$draft"/root/var/lib/apt/lists/* "$draft"/root/var/log/* \
      "$draft"/root/usr/share/{doc,man,locale} "$draft"/root/etc/apt/sources.list "$draft"/root/dev
    mkdir "$draft/root/dev"
    tar -C "$draft/root" --numeric-owner --sort=name -cf "$draft/root.tar" .
    mv "$draft/root.tar" "$root"
  fi
  "$engine" import "$root" "$name" >/dev/null
fi
"$engine" image inspect "$name" --format '{{.Id}}'
