#!/usr/bin/env bash
# Pulls the chart from the registry, and renders it with the images of the registry. Environment: work, oci_registry, version of install.sh.
set -euo pipefail
cd "$work"
helm pull "oci://$oci_registry/farm/charts/swefarm" --version "$version" --plain-http
chart=swefarm-$version.tgz
cmp "$chart" "$artefacts/chart/$chart"
helm lint --quiet "$chart"
helm template farm "$chart" --set image.registry="$oci_registry/farm" | grep -F "image: \"$oci_registry/farm/swefarm-worker:$version\"" ||
  helm template farm "$chart" --set image.registry="$oci_registry/farm" | grep -F "$oci_registry/farm/swefarm-worker:$version"
printf 'helm: %s bytes\n' "$(stat -c %s "$chart")"
