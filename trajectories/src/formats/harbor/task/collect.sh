# Writes the changes since the start of the agent as a patch. If git fails, the patch is empty and gets the reward 0. Without a patch,
# there would be no verdict.
patch=/logs/artifacts/patch.diff
rm -rf "$patch"
mkdir -p "${patch%/*}"
: >"$patch"
export GIT_DIR=$start GIT_WORK_TREE=$workdir HOME=/nonexistent XDG_CONFIG_HOME=/nonexistent GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
ours() { timeout -s KILL 130 git -c core.hooksPath=/dev/null -c core.fsmonitor=false "$@"; }
cd "$workdir" || exit 0
rm -f "$start/index.lock"
ours add -A --ignore-errors .
[ ! -s "$start/ignored" ] || ours update-index -z --force-remove --stdin <"$start/ignored"
ours diff --cached --binary --no-color --no-ext-diff --no-textconv --no-renames --ignore-submodules=all HEAD >"$start/patch" &&
  cp "$start/patch" "$patch"
exit 0
