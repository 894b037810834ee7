#!/bin/bash
is() { [ "$1" = "$2" ] && echo 1 || echo 0; }
printf '{"reward": %d, "judge": %d, "workdir": %d, "env": %d, "stdin": %d}\n' "$(is "$(cat user.txt)" "worker /app /home/worker task solution")" \
  "$(is "$(id -un) $HOME" "judge /home/judge")" "$(is "$PWD" /app)" "$(is "$TWICE $DEFAULT" "verifier default")" "$(is "$(timeout 1 cat)" "")" >/logs/verifier/reward.json
