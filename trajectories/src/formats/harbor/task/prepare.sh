# Prepares the tree of the agent when the image is built: runs the setup, removes data that reveals the solution, and records the tree.
# collect.sh takes the patch against the recorded tree. plan.sh in this folder sets the variables and the function of the task.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/plan.sh"
cd "$workdir"
setup

# The configuration of the image's user, such as core.autocrlf, would change the recorded files.
export HOME=/nonexistent XDG_CONFIG_HOME=/nonexistent GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
git() { command git -c core.hooksPath=/dev/null -c user.name=swefarm -c user.email=swefarm@localhost "$@"; }
refuse() {
  echo "$1" >&2
  exit 1
}
hide() {
  while IFS= read -r path; do
    [ -n "$path" ] || continue
    case $path in "$workdir"/*)
      if [ "$history" = prune ] && [ -n "$(git rev-list -1 HEAD -- ":(top,literal)${path#"$workdir"/}" 2>/dev/null)" ]; then
        refuse "$path is in the history of the repository"
      fi
      ;;
    esac
    real=$(readlink -f -- "$path" 2>/dev/null) || real=
    for each in "$path" ${real:+"$real"}; do
      case $workdir/ in "${each%/}"/*) refuse "$path holds the work tree" ;; esac
    done
    rm -rf -- "$path" ${real:+"$real"}
  done <"$here/hidden"
}
prune() { # removes all commits that HEAD does not reach
  local ref
  local -A kept=()
  while IFS= read -r ref; do kept[$ref]=1; done < <(git for-each-ref --format='%(refname)' --merged HEAD refs/heads refs/tags)
  ref=$(git symbolic-ref -q HEAD) && kept[$ref]=1
  git for-each-ref --format='%(refname)' | while IFS= read -r ref; do
    [ -n "${kept[$ref]:-}" ] || git update-ref --no-deref -d "$ref"
  done
  git remote | while IFS= read -r ref; do git remote remove "$ref"; done
  rm -rf .git/logs .git/*_HEAD .git/rebase-apply .git/rebase-merge .git/sequencer .git/worktrees .git/info/grafts
  rm -f .git/objects/pack/*.keep
  git -c pack.threads=1 repack -q -a -d
  rm -f .git/objects/info/alternates
  git prune --expire=now
  rm -rf .git/logs
  [ -z "$(git rev-list --all --not HEAD)" ] || { echo 'the repository still has commits that HEAD does not reach' >&2; exit 1; }
}
replace() { # replaces the history by one commit of the present tree
  git ls-files -z >/tmp/swefarm-tracked
  rm -rf .git
  git init -q .
  mkdir -p .git/info
  cp "$here/local" .git/info/exclude
  git symbolic-ref HEAD refs/heads/main
  git add -A --ignore-errors . || true
  while IFS= read -r -d '' ref; do
    if [ -e "$ref" ] || [ -L "$ref" ]; then printf '%s\0' "$ref"; fi
  done </tmp/swefarm-tracked | xargs -0 -r git add -f --
  git commit -q --no-verify --date=2000-01-01T00:00:00Z -m 'Initial commit'
  rm -rf .git/logs /tmp/swefarm-tracked
}
record() {
  local tracked
  tracked=$(mktemp)
  git ls-files -z -c -i --exclude-standard --exclude-from="$here/exclude" >"$tracked" 2>/dev/null || true
  mkdir -p "$(dirname "$start")"
  export GIT_DIR=$start GIT_WORK_TREE=$workdir
  git init -q
  # git creates the folder `info` only if git finds its templates.
  mkdir -p "$start/info"
  cat "$here/exclude" "$here/local" >"$start/info/exclude"
  echo '* -text -eol -crlf -ident -filter -working-tree-encoding !diff !merge' >"$start/info/attributes"
  git add -A --ignore-errors . || true
  while IFS= read -r -d '' ref; do
    if [ -e "$ref" ] || [ -L "$ref" ]; then printf '%s\0' "$ref"; fi
  done <"$tracked" | xargs -0 -r git add -f --
  git commit -q --no-verify --allow-empty --date=2000-01-01T00:00:00Z -m start
  # The patch omits the files of a repository in the tree, even if the agent removes the `.git` of this repository.
  git ls-files -s -z | sed -zn 's/^160000 [^\t]*\t//; T; s/[][\\*? ]/\\&/g; s/\n/?/g; s|.*|/&/|p' | tr '\0' '\n' >>"$start/info/exclude"
  # The patch omits ignored files even if the agent changes the ignore rules, because the clean tree already has these files.
  git ls-files -z -o -i --exclude-standard >"$start/ignored"
  rm -rf "$start/logs" "$tracked"
}
# With GIT_DIR set, git does not check the owner of the work tree.
export GIT_DIR=$workdir/.git GIT_WORK_TREE=$workdir
# The last pattern decides, so the patterns of the repository follow the patterns of the farm.
cat "$(git rev-parse --git-path info/exclude)" >"$here/local" 2>/dev/null || true
hide
"$history"
record
