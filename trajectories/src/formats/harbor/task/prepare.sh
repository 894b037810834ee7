# Prepares the tree of the agent when the image is built: runs the setup, removes what reveals the solution, and records the tree, from
# which collect.sh takes the patch. plan.sh beside this file sets the variables and the function of the task.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
step() { # step must|may SECONDS NAME FILE
  timeout -s KILL "$2" bash "$4" </dev/null || [ "$1" = may ] || { echo "setup step failed: $3" >&2; exit 1; }
}
. "$here/plan.sh"
cd "$workdir"
setup

git() { command git -c core.hooksPath=/dev/null -c user.name=swefarm -c user.email=swefarm@localhost "$@"; }
hide() {
  while IFS= read -r path; do
    [ -n "$path" ] || continue
    if [ "$history" = prune ] && [ -n "$(git rev-list -1 HEAD -- "$path" 2>/dev/null)" ]; then
      echo "$path is in the history of the repository" >&2
      exit 1
    fi
    real=$(readlink -f -- "$path" 2>/dev/null) || real=
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
  [ -z "$(git rev-list --all --not HEAD)" ] || { echo 'later history is still there' >&2; exit 1; }
}
replace() { # one commit of the tree as it is
  git ls-files -z >/tmp/swefarm-tracked
  rm -rf .git
  git init -q .
  git symbolic-ref HEAD refs/heads/main
  git add -A .
  while IFS= read -r -d '' ref; do
    if [ -e "$ref" ] || [ -L "$ref" ]; then printf '%s\0' "$ref"; fi
  done </tmp/swefarm-tracked | xargs -0 -r git add -f --
  git commit -q --no-verify --date=2000-01-01T00:00:00Z -m 'Initial commit'
  rm -rf .git/logs /tmp/swefarm-tracked
}
record() {
  local tracked
  tracked=$(mktemp)
  git ls-files -z -c -i --exclude-standard >"$tracked" 2>/dev/null || true
  mkdir -p "$(dirname "$start")"
  export GIT_DIR=$start GIT_WORK_TREE=$workdir
  git init -q
  # git creates the folder only if it finds its templates.
  mkdir -p "$start/info"
  cp "$here/exclude" "$start/info/exclude"
  git add -A .
  while IFS= read -r -d '' ref; do
    if [ -e "$ref" ] || [ -L "$ref" ]; then printf '%s\0' "$ref"; fi
  done <"$tracked" | xargs -0 -r git add -f --
  git commit -q --no-verify --allow-empty --date=2000-01-01T00:00:00Z -m start
  rm -rf "$start/logs" "$tracked"
}
# With a folder of its own in the environment, git does not ask who owns the tree.
export GIT_DIR=$workdir/.git GIT_WORK_TREE=$workdir
hide
"$history"
record
