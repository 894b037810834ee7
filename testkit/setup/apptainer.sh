#!/usr/bin/env bash
# Brings Apptainer to a Debian machine whose own release has none: the package of Debian's moving suite, unpacked where it
# expects to be, its two programs pointed at that suite's C library in a folder of its own. Nothing installed is replaced.
# Quiet and 0 when one is there; otherwise says loudly what was not possible and ends with 1.
set -euo pipefail

suite=sid
libraries=/opt/apptainer-libs
state=${SWEFARM_APPTAINER_STATE:-/var/tmp/swefarm-apptainer}

say() { printf 'setup: %s\n' "$*" >&2; }
# What apt-get said last, for the case that it was the reason.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
cannot() {
  local said
  said=$(grep -m 1 '^E: ' "$log" || true)
  say "######## no Apptainer: $*${said:+ ($said)}"
  say '######## what needs it is left out; install it from https://apptainer.org to have it run'
  exit 1
}

works() { apptainer --version >/dev/null 2>&1 || singularity --version >/dev/null 2>&1; }

# Debian's mirror that this machine's apt uses already, in either form of its lists.
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
# Set for the libraries' own libraries too, which the newer form of the path would not be.
for program in "$tree/apptainer/usr/bin/apptainer" "$starter"; do
  patchelf --force-rpath --set-interpreter "$loader" --set-rpath "$libraries" "$program" || cannot "$program is not what it was"
done
cp -a "$tree/apptainer/etc/apptainer" /etc/
cp -a "$tree/apptainer/usr/lib/." /usr/lib/
cp -a "$tree/apptainer/usr/bin/." /usr/bin/
ln -sfn apptainer /usr/bin/singularity
mkdir -p /var/lib/apptainer/mnt/session
# A root that lacks a capability, as in many virtual machines, cannot ask for all of them.
sed -i 's/^root default capabilities = full/root default capabilities = file/' /etc/apptainer/apptainer.conf
works || cannot 'what was installed does not run'
