#!/usr/bin/env bash
# Builds the programs that the tests of the Helm chart need and Debian lacks, from the Go module proxy, once for each version and outside
# the repository. Prints the folder of the programs, which is the same for all parts.
# usage: tools.sh [--cached] PART...
#   helm          helm and kubeconform: six minutes of one core
#   control       kube-apiserver, kube-controller-manager, kube-scheduler, kubelet, kubectl if none is 1.30: ten minutes of one core
#   containerd    containerd, its shim and ctr, and runc, all below containerd/ of the folder: for user namespaces of pods, which Debian's
#                 versions do not support; five minutes of one core. runc is built with gcc and Debian's libseccomp-dev
#   kwok          simulates the kubelets of fake nodes: three minutes of one core
#   schemas       JSON schemas of the resources of three Kubernetes versions, for kubeconform
#   --cached      builds nothing, and fails if a part is missing
# Exit codes: 0; 2 usage; 12 a part could not be built, or is not there.
set -euo pipefail

helm=v3.22.0
kubeconform=v0.8.0
kwok=v0.8.0
containerd=v2.2.9
runc=v1.4.3
control=v1.33.13
schemas=(v1.31.14 v1.33.13 v1.34.2)

cache=${SWEFARM_KUBERNETES_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/swefarm/kubernetes}
bin=$cache/bin-$helm-$kubeconform-$control
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

fail() { printf 'tools.sh: %s\n' "$*" >&2; exit 12; }
say() { printf 'tools.sh: %s\n' "$*" >&2; }

# Downloads a release of a module and prints a field of `go mod download -json`, such as its folder in Go's cache.
module() { # module PATH VERSION FIELD
  go mod download -json "$1@$2" 2>/dev/null | sed -n "s/^[[:space:]]*\"$3\": \"\(.*\)\",*$/\1/p"
}

installed() { # installed NAME PACKAGE [CGO [TAGS]]: builds a command of a module, under its name when it is whole
  [ ! -x "$bin/$1" ] || return 0
  [ -z "$cached" ] || fail "$1 is not there: bash testkit/kubernetes/tools.sh $part builds it"
  command -v go >/dev/null || fail "$1 is built with Go, which is not there"
  local draft
  draft=$(mktemp -d "$bin/draft.XXXXXX")
  say "building $1 ($2)"
  GOBIN=$draft CGO_ENABLED=${3:-0} go install -trimpath -tags "${4:-}" -ldflags '-s -w' "$2" || fail "$1 could not be built"
  mv "$draft/${1##*/}" "$bin/$1"
  rmdir "$draft"
}

# Builds into a folder for each pair of versions. The link `containerd` names the folder of the versions above.
build_containerd() {
  local name folder=containerd-$containerd-runc-$runc
  mkdir -p "$bin/$folder"
  for name in containerd containerd-shim-runc-v2 ctr; do
    installed "$folder/$name" "github.com/containerd/containerd/v2/cmd/$name@$containerd"
  done
  # Without the tag seccomp, runc refuses every pod with a seccomp profile.
  installed "$folder/runc" "github.com/opencontainers/runc@$runc" 1 seccomp
  [ -n "$cached" ] || ln -sfn "$folder" "$bin/containerd"
  [ "$(readlink "$bin/containerd")" = "$folder" ] || fail 'another version of containerd is there: bash testkit/kubernetes/tools.sh containerd'
}

# go.mod of Kubernetes replaces its parts with folders of its repository, which are separate modules on the proxy.
build_control() {
  local name folder minor=${control#v1.} gomod
  local missing=()
  local names='kube-apiserver kube-controller-manager kube-scheduler kubelet'
  # Debian's kubectl is too old for strict validation.
  case $(kubectl version --client 2>/dev/null || true) in *v1.3*) ;; *) names="$names kubectl" ;; esac
  for name in $names; do
    if [ ! -x "$bin/$name" ]; then missing+=("$name"); fi
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  [ -z "$cached" ] || fail "${missing[*]}: not there; bash testkit/kubernetes/tools.sh control builds them"
  command -v go >/dev/null || fail 'Kubernetes is built with Go, which is not there'
  folder=$(mktemp -d "$bin/draft.XXXXXX")
  gomod=$(module k8s.io/kubernetes "$control" GoMod)
  [ -r "$gomod" ] || fail "the module k8s.io/kubernetes $control cannot be fetched"
  {
    echo 'module swefarm.test/kubernetes'
    grep -E '^go [0-9]' "$gomod"
    grep -E '^godebug [a-z]' "$gomod" || true
    echo "require k8s.io/kubernetes $control"
    sed -nE "s#^[[:space:]]*(k8s[.]io/[a-z0-9-]+) => [.]/staging/.*#replace \1 => \1 v0.$minor#p" "$gomod" | sort -u
  } >"$folder/go.mod"
  {
    echo 'package swefarm'
    for name in "${missing[@]}"; do echo "import _ \"k8s.io/kubernetes/cmd/$name\""; done
  } | sed '1i //go:build tools' >"$folder/tools.go"
  local stamp=k8s.io/component-base/version
  (
    cd "$folder"
    go mod tidy -e >tidy.log 2>&1 || { tail -n 3 tidy.log >&2; exit 12; }
    for name in "${missing[@]}"; do
      say "building $name $control"
      CGO_ENABLED=0 go build -trimpath -o "$folder/" \
        -ldflags "-s -w -X $stamp.gitVersion=$control -X $stamp.gitMajor=1 -X $stamp.gitMinor=${minor%%.*} -X $stamp.gitTreeState=clean" \
        "k8s.io/kubernetes/cmd/$name"
      mv "$folder/$name" "$bin/$name"
    done
  ) || fail 'Kubernetes could not be built'
  rm -rf "$folder"
}

build_schemas() {
  local version api
  for version in "${schemas[@]}"; do
    [ ! -e "$cache/schemas/$version/done" ] || continue
    [ -z "$cached" ] || fail "the schemas of $version are not there: bash testkit/kubernetes/tools.sh schemas"
    api=$(module k8s.io/kubernetes "$version" Dir)/api/openapi-spec/swagger.json
    [ -r "$api" ] || fail "the module k8s.io/kubernetes $version cannot be fetched"
    python3 "$here/schemas.py" "$api" "$cache/schemas/$version" || fail "no schemas could be made of $api"
    touch "$cache/schemas/$version/done"
  done
}

cached=
[ "${1:-}" != --cached ] || { cached=1; shift; }
[ $# -gt 0 ] || { sed -n '2,13s/^# //p' "$0" >&2; exit 2; }
mkdir -p "$bin"
if [ -z "$cached" ]; then
  exec 5>"$cache/lock"
  flock 5
fi
for part in "$@"; do
  case $part in
    helm)
      installed kubeconform "github.com/yannh/kubeconform/cmd/kubeconform@$kubeconform"
      installed helm "helm.sh/helm/v3/cmd/helm@$helm"
      ;;
    control) build_control ;;
    containerd) build_containerd ;;
    kwok)
      installed kwok "sigs.k8s.io/kwok/cmd/kwok@$kwok"
      # The stages of fake pods and nodes are not part of the program.
      if [ ! -d "$bin/kwok-stages" ]; then
        [ -z "$cached" ] || fail 'the stages of kwok are not there: bash testkit/kubernetes/tools.sh kwok'
        stages=$(module sigs.k8s.io/kwok "$kwok" Dir)/kustomize/stage
        [ -d "$stages" ] || fail "the module sigs.k8s.io/kwok $kwok cannot be fetched"
        mkdir "$bin/kwok-draft"
        for kind in pod node; do
          for stage in "$stages/$kind"/fast/*.yaml; do
            case $stage in */kustomization.yaml) ;; *) cp "$stage" "$bin/kwok-draft/" ;; esac
          done
        done
        chmod -R u+w "$bin/kwok-draft"
        mv "$bin/kwok-draft" "$bin/kwok-stages"
      fi
      ;;
    schemas) build_schemas ;;
    *) say "unknown part: $part"; exit 2 ;;
  esac
done
echo "$bin"
