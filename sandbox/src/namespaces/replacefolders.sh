# Replaces folders of a sandbox. Runs outside of the sandbox, with programs of the host. The arguments are path and mode of each
# folder. If a folder or its parent is a link, the script removes the link and does not follow it.
while [ $# -gt 0 ]; do
  parent=${1%/*}
  if [ -L "$parent" ] || ! [ -d "$parent" ]; then rm -rf -- "$parent" && mkdir -m 755 -- "$parent" || exit 1; fi
  rm -rf -- "$1" && mkdir -m "$2" -- "$1" || exit 1
  shift 2
done
