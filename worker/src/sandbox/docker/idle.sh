# Process 1 of an engine's container. Immune to signals from inside (`kill -9 -1` of the model's code), it reaps orphans, and ends
# everything else on USR1. It needs no program and no process to go on: whoever takes them away must not end the container by it.
#
# It also ends what an engine starts inside and cannot finish: before an exec, runc reads /etc/passwd and /etc/group in the container,
# which may be a named pipe or have no end. As long as it does, an engine neither kills nor removes the container. Processes from
# outside have the parent 0; that one has not yet become the command. Whoever waits at a pipe is let go by one that opens both its ends.
sleep 0 || exit 127
# Nothing is ever written to it: it is there to be waited on.
exec 9<> <(:)
# A shell that reads has handlers of its own for what would end it, and whoever handles a signal is not immune to it any more.
for signal in {1..64}; do
  [[ $signal == 17 ]] || trap '' "$signal"
done 2>/dev/null
trap 'kill -9 -1' USR1
while :; do
  read -r -t 3 -u 9
  for file in /etc/passwd /etc/group /etc/nsswitch.conf; do
    [[ ! -p $file ]] || { : <>"$file"; } 2>/dev/null
  done
  now=()
  for place in /proc/[0-9]*; do
    { read -r line <"$place/stat"; } 2>/dev/null || continue
    name=${line#*(} id=${place#/proc/}
    set -- ${line##*) }
    [[ $2 == 0 && $name == @(runc|crun)* ]] || continue
    now[id]=$((${seen[id]:-0} + 1))
    ((now[id] < 8)) || kill -9 "$id"
  done
  seen=()
  for id in "${!now[@]}"; do seen[id]=${now[id]}; done
done
