# Prints the regular files below a folder, without following links: for each file its path, and its content in base64, both ended
# by NUL. A file that is too large has `-` in place of its content. The last path is `.`, with `-` if there are more files.
# Arguments: the folder, the maximum number of files, the maximum bytes of all files together. bash.
exec 2>/dev/null
[[ -d $1 && ! -L $1 ]] && cd -- "$1" || exit 40
files=$2 bytes=$3 left=
while IFS= read -r -d '' path; do
  if ((files-- == 0)); then
    printf '%s\0' . -
    exit 0
  fi
  size=$(wc -c <"$path") || continue
  printf '%s\0' "$path"
  if ((size > bytes)); then
    printf '%s\0' -
    left=-
    continue
  fi
  head -c "$size" -- "$path" | base64
  printf '\0'
  ((bytes -= size))
done < <(find . -xdev -type f -print0)
printf '%s\0' . "$left"
