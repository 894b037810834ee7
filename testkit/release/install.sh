#!/usr/bin/env bash
# Publishes a release of HEAD to private registries on the loopback, and installs every artefact from them without a clone: npm packages in a
# bare Debian root on Node 20, 22 and 24, the Python package, the chart, the Compose file. Prints seconds and bytes up to the first reward of each.
# usage: install.sh [FOLDER]      needs root and Docker, network access to npm, PyPI, Debian and the Go proxy; about 15 minutes on two cores
# Exit codes: 0; 1 a step failed; 12 a registry or the release could not be made.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 12
bash testkit/setup/setup.sh tools docker registry release examples || exit 12
export PATH="$PWD/node_modules/.bin:$PATH"
. testkit/ci/steps.sh
root=$PWD here=$PWD/testkit/release cache=$PWD/.swefarm/cache/release
work=$(mktemp -d "${TMPDIR:-/var/tmp}/swefarm-release.XXXXXX")
export version base=swefarm.test/release:1 images=swefarm-release-test
version=$(node -p 'require("./package.json").version')
fail() { printf 'install.sh: ######## %s\n' "$*" >&2; exit 12; }
end() {
  for file in "$work"/*/pid; do [ ! -s "$file" ] || kill "$(<"$file")" 2>/dev/null; done
  [ ! -e "$work/compose/compose.yaml" ] || compose down --volumes --timeout 5 >/dev/null 2>&1
  rm -rf --one-file-system "$work"
}
trap end EXIT
trap 'exit 130' INT TERM HUP
compose() { # runs Compose 2 where it is installed, else Debian's version 1
  if docker compose version >/dev/null 2>&1; then set -- docker compose "$@"; else set -- docker-compose "$@"; fi
  (cd "$work/compose" && "$1" "${@:2}")
}

bash testkit/kubernetes/base.sh docker "$base" >/dev/null || fail 'no Debian root for the images'
bash testkit/kubernetes/base.sh docker swefarm.test/prometheus:1 prometheus >/dev/null || fail 'no image with Prometheus'
tools=$(bash testkit/kubernetes/tools.sh helm) || fail 'helm could not be built'
export PATH="$tools:$PATH"
npm_registry=$(bash "$here/npm.sh" "$work/npm" "$cache/verdaccio") || fail 'no npm registry'
oci_registry=$(PORT=${OCI_PORT:-15010} bash testkit/clients/registry/up.sh "$work/oci") || fail 'no registry of images'
pypi_registry=$(bash "$here/pypi.sh" "$work/pypi" "$cache/pypi") || fail 'no Python index'
export work cache root npm_registry oci_registry pypi_registry

bash "$here/clone.sh" "$work/clone" || fail 'no clone'
release() { # builds and publishes
  (cd "$work/clone" && NPM_CONFIG_USERCONFIG=$work/npm/npmrc TWINE_USERNAME=release TWINE_PASSWORD=release-test \
    node release/main.mjs --base "$base" --publish --npm "$npm_registry" --oci "$oci_registry/farm" --pypi "$pypi_registry/")
}
step 'npm run release -- --publish' release
export artefacts="$work/clone/dist/release/$version"
[ -s "$artefacts/assets/SHA256SUMS" ] || fail 'there is no release'
sums() { (cd "$artefacts/assets" && sha256sum --check --quiet SHA256SUMS); }
step 'the checksums fit the files' sums
node testkit/src/examples/build.ts --for both --out "$work/dataset" --ids cpburnz__pathspec-0.10.2 || fail 'no example'

for major in 20 22 24; do
  step "npx swefarm rollout on Node $major, in a bare Debian root" bash "$here/npx.sh" "$major"
done
step 'the libraries in a strict TypeScript project' bash "$here/libraries.sh"
step 'pip install swefarm' bash "$here/pip.sh"
step 'the chart by helm pull, lint and template' bash "$here/chart.sh"
. "$here/compose.sh"
step 'compose up with images of the registry' composed
echo '######## not run: Grafana (its image is in no registry that this test reaches); helm install in a cluster (npm run ci:kubernetes does it)'
summary
