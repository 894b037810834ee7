# Runs outside of a sandbox, with programs of the host. Arguments: for each folder its path and its mode. A link in the place of
# a folder or of its parent is removed, not followed.
while [ $# -gt 0 ]; do
  parent=${1%/*}
  if [ -L "$parent" ] || ! [ -d "$parent" ]; then rm -rf -- "$parent" && mkdir -m 755 -- "$parent" || exit 1; fi
  rm -rf -- "$1" && mkdir -m "$2" -- "$1" || exit 1
  shift 2
done
