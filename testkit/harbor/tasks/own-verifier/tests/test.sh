#!/bin/bash
# Each value is 1 if the files of the verifier's container are as expected.
is() { "$@" && echo 1 || echo 0; }
solved() { [ "$(wc -l </logs/artifacts/sorted.txt)" = "$WANT" ]; }
cat >/logs/verifier/reward.json <<END
{"reward": $(is solved 2>/dev/null), "workdir": $(is [ "$PWD" = /grade ]), "env": $(is [ "$GRADER" = own ]),
 "excluded": $(is [ ! -e /app/out/cache.tmp ]), "undeclared": $(is [ ! -e /app/private.txt ]), "stale": $(is [ ! -e /app/out/stale.txt ]),
 "note": $(is [ -f /app/note.txt ]), "empty": $(is [ -d /app/out/deep/empty ]), "mode": $(is [ -x /app/out/deep/run.sh ]),
 "inside": $(is [ -L /app/out/deep/inside ]), "outside": $(is [ ! -e /app/out/outside ]), "old": $(is [ -f /app/out/old.txt ])}
END
