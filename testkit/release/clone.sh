#!/usr/bin/env bash
# clone.sh FOLDER: a clone of HEAD with the section of CHANGELOG.md that a release needs, and the dependencies of this checkout.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
to=$1
git clone --quiet --no-local "$root" "$to"
git -C "$to" checkout --quiet --detach "$(git -C "$root" rev-parse HEAD)"
for modules in node_modules $(cd "$root" && node -p 'require("./package.json").workspaces.map((name) => name + "/node_modules").join(" ")'); do
  # Hard links are copies that need no space; npm and the tests never write into an existing file of a package.
  if [ -d "$root/$modules" ]; then cp -al "$root/$modules" "$to/$modules" 2>/dev/null || cp -a "$root/$modules" "$to/$modules"; fi
done
rm -rf "$to/node_modules/.cache"
version=$(cd "$to" && node -p 'require("./package.json").version')
sed -i "s/^## \[Unreleased\]$/## [Unreleased]\n\n## [$version] - 2000-01-01/" "$to/CHANGELOG.md"
git -C "$to" -c user.name=test -c user.email=test@localhost commit --quiet --all --message 'Release for a test'
