# Runs inside a sandbox. Arguments, for each file: its path, its mode, the mode's complement, its content. An existing file or
# link is replaced, not written through. The shell writes by itself, because starting a program costs as much as writing all
# files.
while [ $# -gt 0 ]; do
  case $1 in */*) [ -d "${1%/*}/" ] || mkdir -p -- "${1%/*}/" || exit 1 ;; esac
  if [ -e "$1" ] || [ -L "$1" ]; then rm -f -- "$1" || exit 1; fi
  umask "$3"
  printf %s "$4" >"$1" || exit 1
  case $2 in *[1357]*) chmod "$2" "$1" || exit 1 ;; esac
  umask 022
  shift 4
done
