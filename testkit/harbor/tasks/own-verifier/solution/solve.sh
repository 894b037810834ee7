#!/bin/bash
printf '3\n1\n2\n' >/app/out/numbers.txt
echo temporary >/app/out/cache.tmp
mkdir -p /app/out/deep/empty
printf '#!/bin/sh\necho ran\n' >/app/out/deep/run.sh
chmod 755 /app/out/deep/run.sh
ln -s ../numbers.txt /app/out/deep/inside
ln -s /tests/test.sh /app/out/outside
mkfifo /app/out/pipe
echo noted >/app/note.txt
echo private >/app/private.txt
