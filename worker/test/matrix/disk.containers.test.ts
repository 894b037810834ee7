/** A sandbox that fills the disk and frees it again is judged, and is not retried. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Machine, openMachine, openRollouts, patchOf } from './scene.ts';
import { guarded } from './voids.ts';

const DISK_BYTES = 96 * 1024 ** 2;
const CODE = {
  'a file without a name, open for a while': `python3 - <<'PY'
import os, time
f = os.open("/tmp/x", os.O_CREAT | os.O_WRONLY); os.unlink("/tmp/x")
try:
    while True: os.write(f, b"x" * 65536)
except OSError: pass
time.sleep(1.5)
PY`,
  'files that are removed as soon as there is no room':
    'for i in $(seq 40); do head -c 200000000 /dev/zero >/tmp/x; rm -f /tmp/x; done 2>/dev/null; true',
};
let machine: Machine;
beforeAll(async () => {
  machine = await openMachine('rootfs', DISK_BYTES);
});
afterAll(() => machine[Symbol.asyncDispose]());

test.each(Object.entries(CODE))('%s: reward 0', async (_name, code) => {
  const command = guarded(code);
  const plain = { memory_bytes: 512 * 1024 ** 2 };
  await using agents = await openRollouts(machine, { agents: [[command, 'true']], sandbox: plain });
  await agents.attempt(0);
  const loss = { outcome: 'judged', reward: 0, attempt: 1 };
  expect((await agents.resultOf(0)) ?? (await agents.journal(0))).toMatchObject(loss);
  await using patches = await openRollouts(machine, {
    patches: [patchOf(`${command}\nexit 1`)],
    sandbox: plain,
  });
  await patches.attempt(0);
  expect((await patches.resultOf(0)) ?? (await patches.journal(0))).toMatchObject(loss);
});
