#!/bin/sh
# packages.sh PACKAGE...: installs the packages that the image lacks, by apt, and removes caches and logs, which differ between builds.
set -e
missing=
for package in "$@"; do
  dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"
done
if [ -n "$missing" ]; then
  apt-get update
  # shellcheck disable=SC2086 # one argument for each package
  DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing
fi
rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/ldconfig/* /var/cache/debconf/*-old /var/log/* /var/lib/dpkg/*-old
