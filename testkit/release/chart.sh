#!/usr/bin/env bash
# Pulls the chart from the registry, and renders it with the images of the registry. Environment: work, oci_registry, version of install.sh.
set -euo pipefail
cd "$work"
helm pull "oci://$oci_registry/farm/charts/swefarm" --version "$version" --plain-http
chart=swefarm-$version.tgz
cmp "$chart" "$artefacts/chart/$chart"
helm template farm "$chart" --kube-version 1.33.0 --set image.registry="$oci_registry/farm" >rendered.yaml
grep -Fq "$oci_registry/farm/swefarm-worker:$version" rendered.yaml
grep -Fq "$oci_registry/farm/swefarm-gateway:$version" rendered.yaml
printf 'helm: pulled %s bytes; the chart names the images of the registry\n' "$(stat -c %s "$chart")"
