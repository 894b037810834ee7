# Runs on the host in the sandbox's mount namespace: joins its control groups, mounts its tree, becomes its supervisor.
# Arguments: files to join, mount table, oom score, `stay` or nothing, then the command. POSIX sh.
for file in $1; do
  echo $$ >"$file" || exit 3
done
mount -a -T "$2" || exit 3
[ -z "$3" ] || echo "$3" >/proc/self/oom_score_adj
stay=$4
shift 4
ulimit -c 0
[ "$stay" = stay ] || exec "$@"
# Apptainer passes its signals to process 1, which ignores them. This shell dies of them, and the worker then ends the sandbox.
"$@"
exit $?
