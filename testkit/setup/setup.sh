#!/usr/bin/env bash
# Installs what a fresh Debian machine lacks: our npm dependencies (with their own Node 24), and the parts that the caller
# names (`all`: every part). Prints nothing when nothing is missing. Prints which parts could not be installed, and why.
# usage: setup.sh [--report FILE] [--prove] PART...
#   --report FILE   writes a line for each part that is missing at the end: PART<tab>why
#   --prove         prints the answer of each program of the parts (of all parts when none is named)
# Exits with 3 when a part is missing; the caller may continue without it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

# A line for each program: part | command that proves that it runs | Debian packages that contain it, or `run` and a command.
# Every program that a script or a test starts needs a line, because a bare machine lacks even common programs.
parts=$(
  cat <<'TABLE'
tools      | curl --version                           | curl ca-certificates
tools      | git --version                            | git
tools      | ps --version                             | procps
tools      | patch --version                          | patch
tools      | openssl version                          | openssl
tools      | python3 --version                        | python3
redis      | redis-server --version \|\| valkey-server --version | redis-server
redis      | redis-cli --version \|\| valkey-cli --version       | redis-tools
rootfs     | bwrap --version                          | bubblewrap
prometheus | prometheus --version                     | prometheus
prometheus | promtool --version                       | prometheus
prometheus | prometheus-alertmanager --version        | prometheus-alertmanager
examples   | python3 -c 'import sys, venv, ensurepip; print(sys.version)' | python3 python3-venv
examples   | python3 -m pip --version                 | python3-pip
examples   | git --version                            | git
examples   | patch --version                          | patch
examples   | gcc -fsyntax-only -include Python.h $(python3-config --includes) -x c /dev/null && gcc --version | gcc libc6-dev python3-dev
examples   | debootstrap --version                    | debootstrap
docker     | dockerd --version                        | docker.io
docker     | iptables --version                       | iptables
docker     | curl --version                           | curl
docker     | docker version --format '{{.Server.Version}}' | run bash testkit/ci/dockerd.sh
podman     | podman --version                         | podman
podman     | runc --version                           | runc
podman     | type -P newuidmap newgidmap              | uidmap
podman     | slirp4netns --version                    | slirp4netns
podman     | fuse-overlayfs --version \| grep overlay   | fuse-overlayfs
apptainer  | bwrap --version                          | bubblewrap
apptainer  | unsquashfs -version \| grep version         | squashfs-tools
apptainer  | apptainer --version \|\| singularity --version | run bash testkit/setup/apptainer.sh
slurm      | slurmctld -V                             | slurmctld
slurm      | slurmd -V                                | slurmd
slurm      | type -P sbatch squeue scancel sinfo      | slurm-client
slurm      | munged --version                         | munge
slurm      | python3 --version                        | python3
registry   | docker-registry --version                | docker-registry
registry   | skopeo --version                         | skopeo
registry   | perl --version                           | perl
registry   | curl --version                           | curl
chromium   | chromium --version                       | chromium fonts-dejavu-core
faketime   | faketime --version                       | faketime
golang     | /usr/lib/go/bin/go version               | golang-go
golang     | find /usr/share/gocode/src/github.com/go-chi -name url_format_test.go \| grep . | golang-github-go-chi-chi-dev
compilers  | /usr/bin/cargo --version                 | cargo
compilers  | /usr/bin/javac -version                  | default-jdk-headless
shells     | zsh --version                            | zsh
shells     | fish --version                           | fish
shells     | man --version                            | man-db
shells     | type -P mandoc                          | mandoc
release    | docker compose version \|\| docker-compose version | docker-compose
release    | openssl version                          | openssl
shellcheck | shellcheck --version                     | shellcheck
page       | test -s gateway/page/dist/index.html && echo built | run flock gateway/page/dist.lock node gateway/page/build.ts --if-needed
fresh      | debootstrap --version                    | debootstrap
fresh      | slirp4netns --version                    | slirp4netns
fresh      | unshare --version && setpriv --version && flock --version | util-linux
TABLE
)

say() { printf 'setup: %s\n' "$*" >&2; }
log=$(mktemp)
trap 'rm -f "$log" "$log.err"' EXIT

npm_dependencies() { # one call at a time, because concurrent calls would remove each other's files
  mkdir -p .swefarm
  (
    flock 8
    if [ ! -e node_modules/.package-lock.json ] || [ ! node_modules/.package-lock.json -nt package-lock.json ]; then
      say 'npm ci'
      # Errors only: npm would warn about the version of its own Node, but our code runs with the Node of the dependencies.
      npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2
    fi
    # npm 10, which comes with Node 20, removes this link together with the package for the other architecture.
    for packaged in node_modules/node-linux-*/bin/node; do
      if [ ! -e node_modules/.bin/node ] && "$packaged" --version >/dev/null 2>&1; then
        ln -s "../${packaged#node_modules/}" node_modules/.bin/node
      fi
    done
    # Compiled commands start faster. If the compilation fails, the commands run from their sources.
    node_modules/.bin/node compile/checkout.mjs --if-needed || say 'the commands are not compiled: they start slower'
  ) 8>.swefarm/setup.lock
}

table() { # table PART...: prints the lines of these parts: part<tab>check<tab>packages or command
  local part
  for part in "$@"; do
    awk -v part="$part" '{
      gsub(/\\\|/, "\001")
      if (split($0, field, /[ \t]*[|][ \t]*/) != 3 || field[2] == "" || field[3] == "") { print "setup: a line without its proof: " $0 > "/dev/stderr"; exit 1 }
      if (field[1] == part) { line = field[1] "\t" field[2] "\t" field[3]; gsub(/\001/, "|", line); print line }
    }' <<<"$parts"
  done
}

proven() { bash -c "$1" >"$log" 2>"$log.err" </dev/null; }
last_words() { cat "$log" "$log.err" 2>/dev/null | tail -n 1; }

# Why the machine's package manager installed nothing; empty without a reason.
why=
debian() { # debian PACKAGE...: installs all at once and, if this fails, one by one, so that a missing package does not affect others
  local package try
  [ $# -gt 0 ] || return 0
  if [ "$(id -u)" != 0 ]; then why='only root can install it' && return; fi
  if ! type -P apt-get >/dev/null; then why='this is no Debian: there is no apt-get' && return; fi
  # Another apt may lock the lists for some time.
  for try in 1 2 3 4 5 6; do
    if apt_get update; then break; fi
    if [ "$try" = 6 ] || ! grep -q 'Could not get lock' "$log"; then break; fi
    sleep 10
  done
  say "apt-get install $*"
  apt_get install "$@" && return
  for package in "$@"; do
    if ! apt_get install "$package"; then
      failed[$package]=$(grep -m 1 '^E: ' "$log" || tail -n 1 "$log")
      say "apt-get install $package: ${failed[$package]}"
    fi
  done
}
declare -A failed=()

apt_get() { # stores the output for the message of a failure
  DEBIAN_FRONTEND=noninteractive apt-get -y -q -o DPkg::Lock::Timeout=300 -o APT::Install-Recommends=false "$@" >"$log" 2>&1 </dev/null
}

bring() { # bring PART...
  local part proof how package wanted=()
  while IFS=$'\t' read -r part proof how; do
    if [[ $how = run\ * ]] || proven "$proof"; then continue; fi
    for package in $how; do
      [[ " ${wanted[*]-} " = *" $package "* ]] || wanted+=("$package")
    done
  done < <(table "$@")
  debian "${wanted[@]}"
}

missing=0
check() { # check PART...: runs the commands of the parts, and prints what is still missing
  local part proof how reason package
  while IFS=$'\t' read -r part proof how; do
    reason=
    if [[ $how = run\ * ]]; then
      PATH="$PWD/node_modules/.bin:$PATH" bash -c "${how#run }" >"$log" 2>&1 </dev/null || reason=$(grep '#####' "$log" | head -n 1 || true)
      [ -z "$reason" ] && [ -s "$log" ] && reason=$(tail -n 1 "$log")
    fi
    if proven "$proof"; then
      if [ -n "$prove" ]; then printf '%-10s %s: %s\n' "$part" "$how" "$(grep -m 1 . "$log" || true)"; fi
      continue
    fi
    if [[ $how != run\ * ]]; then
      for package in $how; do reason=${reason:-${failed[$package]:-}}; done
      reason=${reason:-${why:-$(last_words)}}" (apt-get install $how)"
    fi
    missing=$((missing + 1))
    reason="\`$proof\` does not run: ${reason:-it said nothing}"
    say "######## $part is missing: $reason"
    [ -z "$report" ] || printf '%s\t%s\n' "$part" "$reason" >>"$report"
  done < <(table "$@")
}

report='' prove='' asked=()
known=$(awk '!seen[$1]++ {print $1}' <<<"$parts")
while [ $# -gt 0 ]; do
  case $1 in
    --report) report=${2:?a file for what is missing} && shift ;;
    --prove) prove=1 ;;
    all) mapfile -t asked <<<"$known" ;;
    *)
      if ! grep -qx -- "$1" <<<"$known"; then
        say "unknown part: $1; the parts are: ${known//$'\n'/ }"
        exit 2
      fi
      asked+=("$1")
      ;;
  esac
  shift
done
if [ -n "$prove" ] && [ ${#asked[@]} = 0 ]; then mapfile -t asked <<<"$known"; fi

[ -z "$report" ] || : >"$report"
npm_dependencies
bring "${asked[@]}"
check "${asked[@]}"
[ "$missing" = 0 ] || exit 3
