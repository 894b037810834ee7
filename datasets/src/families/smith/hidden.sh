# Defines hidden_files: prints the test files that are hidden from the agent (none for Rust): files with tests that the bug breaks, and
# files that the branch of the instance removed, except files that the patch changes. Requires $id and files.sh.
removed_by_branch() {
  tip=$(git rev-parse -q --verify "refs/heads/$id^{commit}" 2>/dev/null) \
    || tip=$(git rev-parse -q --verify "refs/remotes/origin/$id^{commit}" 2>/dev/null) || return 0
  case $(git log -1 --format=%s "$tip") in
    *'Remove F2P Tests'*) git -c core.quotePath=false diff --name-only --no-renames --diff-filter=D HEAD "$tip" ;;
  esac
}
hidden_files() {
  [ "$rule" = rust ] || { test_files; removed_by_branch; } | sort -u | while IFS= read -r file; do
    changed | grep -Fxq -e "$file" || printf '%s\n' "$file"
  done
}
