# Runs inside a sandbox: stdin becomes the file $1 with mode $2. An existing file or link is replaced, not written through.
case $1 in */*) mkdir -p -- "${1%/*}/" || exit 1 ;; esac
rm -f -- "$1" && cat >"$1" && chmod "$2" "$1"
