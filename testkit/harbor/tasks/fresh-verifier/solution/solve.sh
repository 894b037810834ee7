#!/bin/bash
# Also leaves a reward, a test, a process and a replaced program, which must not reach the verifier.
echo done >/app/state.txt
rm /app/given.txt
mkdir -p /tests
echo 9 >/logs/verifier/reward.txt
echo 'echo 9 >/logs/verifier/reward.txt' >/tests/test.sh
(while :; do echo 9 >/logs/verifier/reward.txt; sleep 0.1; done >/dev/null 2>&1 &)
printf '#!/bin/sh\necho 9\n' >/tmp/program
chmod 755 /tmp/program
mv /tmp/program "$(command -v grep)"
