# Removes what answers the task: the files, folders and links at the given paths, and what those links point to.
# Arguments: work tree, `pruned` or `replaced` history, the paths, one a line. Exit code 7 when one cannot be removed, or when the
# repository's history would still tell it: one line then says which, and why.
work=$1 history=$2
printf '%s\n' "$3" | while IFS= read -r path; do
  [ -n "$path" ] || continue
  case $path in
  "$work"/*)
    # What was ever committed stays in a history that is only pruned.
    if [ "$history" = pruned ] && [ -e "$work/.git" ] && command -v git >/dev/null 2>&1; then
      told=$(cd "$work" && GIT_DIR="$work/.git" git rev-list -1 HEAD -- ":(top,literal)${path#"$work"/}" 2>/dev/null)
      [ -z "$told" ] || { printf '%s is in the history of the repository, which has to be replaced' "$path"; exit 7; }
    fi
    ;;
  esac
  real=$(readlink -f -- "$path" 2>/dev/null)
  for each in "$path" "$real"; do
    [ -n "$each" ] || continue
    case $work/ in "${each%/}"/*) printf '%s holds the work tree' "$path"; exit 7 ;; esac
    said=$(rm -rf -- "$each" 2>&1)
    if [ -e "$each" ] || [ -L "$each" ]; then
      printf '%s cannot be removed: %s' "$path" "$said"
      exit 7
    fi
  done
done
