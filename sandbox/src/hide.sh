# Removes the hidden paths: files, folders and links, and the targets of the links. Arguments: work tree, `pruned` or `replaced`
# history, the paths, one a line. Exit code 7 when a path cannot be removed, or is still in the repository's history; one line
# then names the path and the cause.
work=$1 history=$2
printf '%s\n' "$3" | while IFS= read -r path; do
  [ -n "$path" ] || continue
  case $path in
  "$work"/*)
    # A pruned history still contains all committed files.
    if [ "$history" = pruned ] && [ -e "$work/.git" ] && command -v git >/dev/null 2>&1; then
      commit=$(cd "$work" && GIT_DIR="$work/.git" git rev-list -1 HEAD -- ":(top,literal)${path#"$work"/}" 2>/dev/null)
      [ -z "$commit" ] || { printf '%s is in the history of the repository, which has to be replaced' "$path"; exit 7; }
    fi
    ;;
  esac
  real=$(readlink -f -- "$path" 2>/dev/null)
  for each in "$path" "$real"; do
    [ -n "$each" ] || continue
    case $work/ in "${each%/}"/*) printf '%s holds the work tree' "$path"; exit 7 ;; esac
    error=$(rm -rf -- "$each" 2>&1)
    if [ -e "$each" ] || [ -L "$each" ]; then
      printf '%s cannot be removed: %s' "$path" "$error"
      exit 7
    fi
  done
done
