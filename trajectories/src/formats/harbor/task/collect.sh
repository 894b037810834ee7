set -e
cd "$workdir"
export GIT_DIR=$start GIT_WORK_TREE=$workdir GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
git -c core.hooksPath=/dev/null -c core.fsmonitor=false add -A .
git diff --cached --binary --no-color --no-ext-diff --no-renames HEAD >/tmp/patch.diff
mv /tmp/patch.diff /logs/artifacts/patch.diff
