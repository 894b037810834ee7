# Runs on the host for each process that is let into a sandbox: joins its control groups and hands two files to bubblewrap,
# 7 the process namespace and 8 the system call filter. Arguments: files to join, the two, most processes, then the command.
for file in $1; do
  echo $$ >"$file" || exit 3
done
# When memory ends the kernel takes a sandbox before its worker: a pod's own score may be above 500, and nobody may lower it.
read -r score </proc/self/oom_score_adj
[ "$score" -lt 500 ] && score=500 || score=1000
echo $score >/proc/self/oom_score_adj
exec 7<"$2" 8<"$3"
# dash has another letter for it than bash.
[ -z "$4" ] || ulimit -u "$4" 2>/dev/null || ulimit -p "$4" || exit 3
shift 4
ulimit -c 0
exec "$@"
