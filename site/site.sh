#!/usr/bin/env bash
# Builds the documentation site into site/dist, serves it, or checks the accessibility of its pages or of other pages with Lighthouse.
# The first call installs the generator into site/node_modules, and the first `check` installs Lighthouse.
# usage: npm run site [-- build|serve|dev] [OPTIONS of vitepress, such as --base /PATH/ or --port N]
#        npm run site -- check [--token TOKEN] [URL...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

command=${1-build}
case $command in
  build | serve | dev | check) shift || true ;;
  -*) command=build ;;
  *) echo "site: unknown command $command: use build, serve, dev or check" >&2 && exit 2 ;;
esac

install() { npm ci --ignore-scripts --no-audit --no-fund --loglevel=error "$@" >&2; }
if [ "$command" = check ] && [ ! -e node_modules/lighthouse ]; then
  install
elif [ ! node_modules/.package-lock.json -nt package-lock.json ]; then
  install --omit=dev
fi
if [[ "$command $#" =~ ^(serve|check 0) ]] && [ ! -e dist/index.html ]; then node_modules/.bin/vitepress build . >&2; fi

case $command in
  check) exec node accessibility.mjs "$@" ;;
  serve) exec node_modules/.bin/vitepress preview . "$@" ;;
  *) exec node_modules/.bin/vitepress "$command" . "$@" ;;
esac
