#!/usr/bin/env bash
# Installs Apptainer on a Debian machine whose release lacks it: unpacks the package of Debian sid to its usual paths and lets
# its two programs use sid's C library in a separate folder. Replaces no installed package.
# Prints nothing and exits with 0 when Apptainer exists; if it cannot be installed, prints why and exits with 1.
set -euo pipefail

suite=sid
libraries=/opt/apptainer-libs
state=${SWEFARM_APPTAINER_STATE:-/var/tmp/swefarm-apptainer}

say() { printf 'setup: %s\n' "$*" >&2; }
# Output of the last apt-get, for the error message.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
cannot() {
  local said
  said=$(grep -m 1 '^E: ' "$log" || true)
  say "######## no Apptainer: $*${said:+ ($said)}"
  say '######## tests that need it are skipped; install it from https://apptainer.org'
  exit 1
}

works() { apptainer --version >/dev/null 2>&1 || singularity --version >/dev/null 2>&1; }

# Prints the Debian mirror that this machine's apt uses, from lists of either format.
mirror() {
  {
    sed -n 's/^URIs:[[:space:]]*\([^[:space:]]*\).*/\1/p' /etc/apt/sources.list.d/*.sources 2>/dev/null
    sed -n 's/^deb[[:space:]]\{1,\}\(\[[^]]*\][[:space:]]*\)\{0,1\}\([^[:space:]]*\).*/\2/p' /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null
  } | sed 's,/*$,,' | grep '/debian$' | head -n 1
}

works && exit 0
[ "$(id -u)" = 0 ] || cannot 'only root can install it'
command -v apt-get >/dev/null || cannot 'this is no Debian'
from=$(mirror) || true
[ -n "${from:-}" ] || cannot 'the lists of apt name no Debian mirror'

say "apptainer of Debian $suite"
export DEBIAN_FRONTEND=noninteractive
wanted=()
for package in patchelf squashfs-tools uidmap fuse-overlayfs squashfuse fuse3 bubblewrap; do
  dpkg -s "$package" >/dev/null 2>&1 || wanted+=("$package")
done
if [ ${#wanted[@]} -gt 0 ]; then
  apt-get update -qq >"$log" 2>&1 || cannot 'apt-get update fails'
  apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=300 "${wanted[@]}" >"$log" 2>&1 ||
    cannot "apt-get install ${wanted[*]} fails"
fi

mkdir -p "$state"/{lists/partial,cache/archives/partial,packages}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb [signed-by=$keyring] $from $suite main" >"$state/sources.list"
moving() { # apt-get on the moving suite alone, with lists and cache of its own
  apt-get -o Dir::Etc::sourcelist="$state/sources.list" -o Dir::Etc::sourceparts=/nonexistent \
    -o Dir::State::lists="$state/lists" -o Dir::Cache="$state/cache" -o APT::Sandbox::User=root "$@" >"$log" 2>&1
}
moving update -q || cannot "$suite does not answer at the mirror"
(cd "$state/packages" && rm -f ./*.deb && moving download -q "apptainer/$suite" "libc6/$suite" "libseccomp2/$suite" "libsqlite3-0/$suite") ||
  cannot "$suite has no apptainer, or not its libraries"

tree=$(mktemp -d "$state/tree.XXXXXX")
trap 'rm -rf "$tree" "$log"' EXIT
for package in "$state"/packages/*.deb; do dpkg-deb -x "$package" "$tree/$(basename "${package%%_*}")"; done
mkdir -p "$libraries"
for name in libc6 libseccomp2 libsqlite3-0; do
  find "$tree/$name" -name '*.so*' ! -path '*/gconv/*' ! -path '*/lib64/*' \( -type f -o -type l \) -exec cp -a -t "$libraries" {} +
done
loader=$(find "$libraries" -name 'ld-linux*.so.*' | head -n 1)
[ -n "$loader" ] || cannot "libc6 of $suite has no loader where it was looked for"
starter=$(find "$tree/apptainer/usr/lib" -path '*/apptainer/bin/starter' | head -n 1)
# --force-rpath sets DT_RPATH, which also applies to the dependencies of libraries; DT_RUNPATH does not.
for program in "$tree/apptainer/usr/bin/apptainer" "$starter"; do
  patchelf --force-rpath --set-interpreter "$loader" --set-rpath "$libraries" "$program" || cannot "$program is not what it was"
done
cp -a "$tree/apptainer/etc/apptainer" /etc/
cp -a "$tree/apptainer/usr/lib/." /usr/lib/
cp -a "$tree/apptainer/usr/bin/." /usr/bin/
ln -sfn apptainer /usr/bin/singularity
mkdir -p /var/lib/apptainer/mnt/session
# A root user without all capabilities, as in many containers, cannot request the full set.
sed -i 's/^root default capabilities = full/root default capabilities = file/' /etc/apptainer/apptainer.conf
works || cannot 'what was installed does not run'
