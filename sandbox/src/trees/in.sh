# Prepares the path $1 for `copyIn`. If $2 is `folder`, replaces everything at $1 by a new folder, and makes the folders and links that
# stdin names: path and target, each ended by NUL; the target of a folder is empty. If $2 is `file`, makes the folder that will contain the
# file $1. Every user may write to the new folder, or to the folder of the file. If $2 is `modes`, stdin names paths of folders, and modes
# in place of targets.
set -e
umask 022
# Arguments of one command. The kernel limits the bytes of all arguments.
most=500
if [ "$2" = modes ]; then
  cd -- "$1"
  paths=() last=
  set_modes() {
    [ ${#paths[@]} = 0 ] || chmod "$last" -- "${paths[@]}"
    paths=()
  }
  while IFS= read -r -d '' path && IFS= read -r -d '' mode; do
    if [ "$mode" != "$last" ] || [ ${#paths[@]} = "$most" ]; then set_modes; fi
    paths+=("./$path") last=$mode
  done
  set_modes
  exit
fi
if [ "$2" = file ]; then
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
folders=() links=() targets=()
make_folders() {
  [ ${#folders[@]} = 0 ] || mkdir -p -- "${folders[@]}"
  folders=()
}
while IFS= read -r -d '' path && IFS= read -r -d '' target; do
  if [ -n "$target" ]; then
    links+=("./$path") targets+=("$target")
    continue
  fi
  folders+=("./$path")
  [ ${#folders[@]} -lt "$most" ] || make_folders
done
make_folders
for at in "${!links[@]}"; do
  ln -s -- "${targets[at]}" "${links[at]}"
done
