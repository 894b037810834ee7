# Makes the place $1 for a copied tree. If $2 is `folder`, replaces everything at $1 by a new folder, and makes the folders and links that
# stdin names: path and target, each ended by NUL; the target of a folder is empty. Otherwise makes the folder that will contain the file
# $1. Every user may write to the new folder, or to the folder of the file.
set -e
if [ "$2" != folder ]; then
  parent=${1%/*}/
  mkdir -p -- "$parent"
  [ "$parent" = / ] || chmod 777 -- "$parent"
  rm -rf -- "$1"
  exit
fi
rm -rf -- "$1"
mkdir -p -- "$1"
chmod 777 -- "$1"
cd -- "$1"
while IFS= read -r -d '' path && IFS= read -r -d '' target; do
  if [ -z "$target" ]; then
    mkdir -p -- "./$path"
  else
    mkdir -p -- "$(dirname -- "./$path")"
    ln -s -- "$target" "./$path"
  fi
done
