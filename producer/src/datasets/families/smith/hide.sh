# Removes from the agent's tree the tests that the bug fails, as SWE-smith's commit "Remove F2P Tests" does, and what Python compiled.
# Expects $id, $folder and files.sh.
set -u
cd "$folder" || exit 1
removed_by_branch() {
  tip=$(git rev-parse -q --verify "refs/heads/$id^{commit}" 2>/dev/null) \
    || tip=$(git rev-parse -q --verify "refs/remotes/origin/$id^{commit}" 2>/dev/null) || return 0
  case $(git log -1 --format=%s "$tip") in
    *'Remove F2P Tests'*) git -c core.quotePath=false diff --name-only --no-renames --diff-filter=D HEAD "$tip" ;;
  esac
}
[ "$rule" = rust ] || { test_files; removed_by_branch; } | sort -u | while IFS= read -r file; do
  changed | grep -Fxq -e "$file" && continue
  rm -f -- "./$file" || exit 1
done || exit 1
# Compiled files tell the code that was fixed, and the tests.
find . -name __pycache__ -type d -prune -exec rm -rf {} +
rm -rf .pytest_cache
