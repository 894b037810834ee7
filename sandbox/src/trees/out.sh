# Prints a tar archive of the file or folder $1, and at most $2 bytes of the archive. Further arguments are options of tar. Exits with 40
# if nothing has this path, and with 41 if the sandbox has no tar. A folder may be a link; links below the folder are archived as links.
exec 2>/dev/null
path=$1 most=$2
shift 2
command -v tar >/dev/null || exit 41
if [ -d "$path" ]; then
  tar -cf - "$@" -C "$path" . | head -c "$most"
elif [ -e "$path" ] || [ -L "$path" ]; then
  tar -cf - -C "${path%/*}/" "./${path##*/}" | head -c "$most"
else
  exit 40
fi
