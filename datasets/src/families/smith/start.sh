# Checks out or creates the commit "Bug Patch" with the bug and all tests, without network access.
# Requires $id, $folder, and the function bug, which prints the patch of the row.
set -u
cd "$folder" || exit 1
no() {
  echo "$1" >&2
  exit 1
}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
export GIT_AUTHOR_NAME=swesmith GIT_AUTHOR_EMAIL=swesmith@swesmith.ai
export GIT_COMMITTER_NAME=swesmith GIT_COMMITTER_EMAIL=swesmith@swesmith.ai

commit_of() {
  git rev-parse -q --verify "$1^{commit}" 2>/dev/null
}
from_branch() {
  tip=$(commit_of "refs/heads/$id") || tip=$(commit_of "refs/remotes/origin/$id") || return 1
  case $(git log -1 --format=%s "$tip") in
    # A shallow clone may lack the parent commit.
    *'Remove F2P Tests'*) tip=$(commit_of "$tip~1") || return 1 ;;
  esac
  git checkout -q --detach "$tip" || no "the branch $id cannot be checked out"
}
apply() {
  git apply --verbose "$1" && return
  git reset -q --hard
  git apply --verbose --reject "$1" && return
  git reset -q --hard
  patch --batch --fuzz=5 -p1 -i "$1" && return
  git reset -q --hard
  return 1
}
from_patch() {
  main=$(commit_of refs/heads/main) || main=$(commit_of refs/remotes/origin/main) \
    || no "the image has neither the branch $id nor main"
  git checkout -q --detach "$main" || no 'main cannot be checked out'
  bug >"$work/bug.diff" || no 'the patch cannot be written'
  apply "$work/bug.diff" >"$work/said" 2>&1 || {
    tail -n 5 "$work/said" >&2
    no 'the patch of the row does not make the bug on main'
  }
  # New files of the patch are untracked, and .gitignore may exclude them, so they are added by force.
  git add -u . && git apply --numstat "$work/bug.diff" 2>/dev/null | cut -f3- | while IFS= read -r file; do
    [ ! -e "$file" ] || git --literal-pathspecs add -f -- "$file"
  done
  git -c core.hooksPath=/dev/null -c commit.gpgsign=false commit -q --no-verify -m 'Bug Patch' \
    || no 'the bug cannot be committed'
}
from_branch || from_patch
