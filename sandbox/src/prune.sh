# Removes later history from a repository. Run in a clean environment; exit codes as in snapshot.sh.
#   refs WORKDIR                 removes refs outside the history of HEAD, all remotes, stashes, notes, reflogs and heads left by
#                                fetch and merge. HEAD, its branch and the objects that they reach stay.
#   objects WORKDIR NAME TREE ISOLATED   removes unreachable objects and the links to borrowed ones; prints `clean` when there
#                                were none. NAME and TREE: our snapshot's folder and tree, whose objects stay. The lender's
#                                objects are removed only if ISOLATED is yes: in the host dry run they are another repository.
mode=$1 work=$2
command -v git >/dev/null 2>&1 || exit 4
cd "$work" 2>/dev/null || exit 3
[ -e .git ] || exit 0
export GIT_DIR="$work/.git" GIT_WORK_TREE="$work"
found=$(git rev-parse --absolute-git-dir --git-common-dir HEAD 2>/dev/null) || {
  git rev-parse -q --verify HEAD >/dev/null || exit 0
  exit 5
}
own=${found%%
*} common=${found#*
} head=${found##*
}
common=${common%%
*}
case $common in /*) ;; *) common=$work/$common ;; esac
hookless='-c core.hooksPath=/dev/null'

drop() { # deletes refs outside the history of HEAD, and all remote, stash, note and similar refs; the current branch stays
  {
    git for-each-ref --format='%(refname)' --merged HEAD
    printf '%s\n' "$all"
  } | sort | uniq -u >"$own/swefarm-refs"
  git for-each-ref --format='%(refname)' refs/remotes refs/stash refs/notes refs/pull refs/original refs/replace \
    refs/bisect refs/prefetch refs/changes >>"$own/swefarm-refs"
  sort -u "$own/swefarm-refs" | while read -r ref; do
    [ "$ref" != "$current" ] && printf 'delete %s\n' "$ref"
  done | git $hookless update-ref --no-deref --stdin || exit 5
}

branch() { # sets current to the branch of HEAD; `read` is faster than git
  current=
  [ -L "$own/HEAD" ] || read -r current <"$own/HEAD"
  case $current in
  'ref: refs/heads/.invalid' | '') current=$(git symbolic-ref -q HEAD) ;;
  'ref: refs/'*) current=${current#ref: } ;;
  ref:*) current=$(git symbolic-ref -q HEAD) ;;
  *) current= ;;
  esac
}

names_remotes() { # whether the configuration, or an included file, may name remotes
  while read -r line || [ "$line" ]; do
    case $line in
    *[Rr][Ee][Mm][Oo][Tt][Ee]* | *[Ii][Nn][Cc][Ll][Uu][Dd][Ee]*) return 0 ;;
    esac
  done <"$common/config"
  return 1
}

refs() {
  branch
  all=$(git for-each-ref --format='%(refname)') || exit 5
  [ "$all" = "$current" ] || drop
  # The heads of other linked work trees are roots too.
  set --
  if [ "$own" != "$common" ]; then
    for other in "$common"/worktrees/*; do [ "$other" = "$own" ] || set -- "$@" "$other"; done
    printf '%s\n' "$head" >"$common/HEAD"
  else
    set -- "$common/worktrees"
  fi
  for dir in "$own" "$common"; do
    [ "$dir" = "$last" ] && continue
    last=$dir
    for name in swefarm-refs logs refs/remotes refs/stash ORIG_HEAD FETCH_HEAD MERGE_HEAD CHERRY_PICK_HEAD \
      REVERT_HEAD REBASE_HEAD AUTO_MERGE BISECT_LOG BISECT_START rebase-apply rebase-merge sequencer rr-cache; do
      set -- "$@" "$dir/$name"
    done
  done
  # One `rm`, or none: starting a program costs as much as a command of the model.
  set -- "$@" "$common/objects/info/commit-graph" "$common/objects/info/commit-graphs" "$common/info/grafts"
  for path in "$@"; do
    shift
    if [ -e "$path" ] || [ -L "$path" ]; then set -- "$@" "$path"; fi
  done
  [ $# = 0 ] || rm -rf -- "$@"
  if names_remotes; then
    git remote | while read -r remote; do git config --remove-section "remote.$remote"; done
  fi
  # Only `drop` changes branches.
  case $current in refs/heads/*) [ "$all" = "$current" ] && return ;; esac
  [ "$(git rev-parse -q --verify HEAD)" = "$head" ] || exit 5
}

objects() {
  reached=$(git rev-list --objects --all --indexed-objects HEAD | wc -l) || exit 5
  stored=$(git cat-file --batch-all-objects --batch-check='%(objectname)' | wc -l) || exit 5
  [ "$stored" -le "$reached" ] && [ ! -s "$common/objects/info/alternates" ] && echo clean && return
  for base in "$(dirname "$work")" /var/tmp /tmp; do
    snapshot=${base%/}/$1
    [ -d "$snapshot/objects" ] && break
  done
  # Unreachable objects may belong to the snapshot: a temporary ref protects them.
  export GIT_ALTERNATE_OBJECT_DIRECTORIES="$snapshot/objects"
  git $hookless update-ref refs/swefarm/keep "$2" || exit 5
  rm -f "$common"/objects/pack/*.keep "$common"/objects/pack/*.bitmap "$common"/objects/pack/multi-pack-index*
  # No search for new deltas: packed objects are copied.
  git $hookless -c pack.window=0 -c pack.threads=1 -c pack.writeReverseIndex=false -c repack.writeBitmaps=false \
    -c gc.writeCommitGraph=false repack -q -a -d 2>&1 || exit 5
  if [ -f "$common/objects/info/alternates" ]; then
    while read -r borrowed; do
      case $borrowed in /*) ;; *) borrowed=$common/objects/$borrowed ;; esac
      [ "$3" = yes ] && [ "$borrowed" != "$snapshot/objects" ] && rm -rf "$borrowed"
    done <"$common/objects/info/alternates"
    rm -f "$common/objects/info/alternates"
  fi
  git $hookless prune --expire=now 2>&1 || exit 5
  git $hookless update-ref -d refs/swefarm/keep || exit 5
  rm -rf "$common/refs/swefarm" "$common/logs"
  git rev-list --objects HEAD >/dev/null 2>&1 || exit 5
  echo pruned
}

shift 2
case $mode in
refs) refs ;;
objects) objects "$@" ;;
esac
exit 0
