#!/usr/bin/env bash
# Builds the documentation site into site/dist, or serves it. The generator is installed into site/node_modules at the first call.
# usage: npm run site [-- build|serve|dev] [OPTIONS of vitepress, such as --base /PATH/ or --port N]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

case ${1-build} in
  build | dev) command=${1-build} ;;
  serve) command=preview ;;
  -*) command=build && set -- build "$@" ;;
  *) echo "site: unknown command $1: use build, serve or dev" >&2 && exit 2 ;;
esac
if [ ! node_modules/.package-lock.json -nt package-lock.json ]; then
  npm ci --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error >&2
fi
if [ "$command" = preview ] && [ ! -e dist/index.html ]; then node_modules/.bin/vitepress build .; fi
exec node_modules/.bin/vitepress "$command" . "${@:2}"
