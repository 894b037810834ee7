/** A Docker engine that is restarted without ending its containers (`live-restore`): the node, not the code, lost their commands. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { isCausedByCode } from '../src/attribution.ts';
import { dockerRuntime } from '../src/docker/runtime.ts';
import type { Container, Runtime } from '../src/runtime.ts';
import { describeUnless, errorOf, importImage, NEVER, OPTIONS, spec } from './subject.ts';

const folder = temporaryFolder('liverestore');
const socketPath = join(folder, 'docker.sock');
/**
 * $1: the engine's folder. RESTART ends the engine of this folder, if any, starts it, and waits for its answer. An engine
 * without a bridge removes the bridges of other engines, hence its own network.
 */
const STOP = `
if [ -s "$1/pid" ]; then
  old=$(cat "$1/pid"); kill -TERM "$old"
  while grep -qs '(dockerd) [^Z]' "/proc/$old/stat"; do sleep 0.1; done
fi`;
const RESTART = `${STOP}
setsid unshare --net dockerd --live-restore --data-root "$1/data" --exec-root "$1/exec" --pidfile "$1/pid" -H "unix://$1/docker.sock" --bridge=none --iptables=false >>"$1/log" 2>&1 </dev/null &
for _ in $(seq 600); do
  curl -sf --max-time 2 --unix-socket "$1/docker.sock" http://engine/_ping >/dev/null && exit 0
  sleep 0.1
done
tail -5 "$1/log" >&2; exit 1`;
/** Blocks this process, so that it sees only the state after the restart. */
const restart = (): void => void execFileSync('/bin/sh', ['-c', RESTART, 'sh', folder]);

/** Starts a second engine. Returns null, or the reason why the engine does not start here. */
function started(): string | null {
  try {
    restart();
    return null;
  } catch (error) {
    return `no second engine of Docker starts here: ${(error as Error).message.slice(-300)}`;
  }
}

const missing = started();
let runtime: Runtime | null = null;
let image: string;
beforeAll(async () => {
  if (missing !== null) return;
  image = await importImage(socketPath);
  runtime = await dockerRuntime({ socketPath });
});
afterAll(async () => {
  await runtime?.[Symbol.asyncDispose]();
  // With live-restore the engine leaves its mounts.
  const unmount = 'grep -o " $1/[^ ]*" /proc/mounts | sort -r | xargs -r umount -l';
  execFileSync('/bin/sh', ['-c', `${STOP}\n${unmount}`, 'sh', folder]);
});

describeUnless(missing, 'an engine that keeps its containers', () => {
  it('a command lost by a restarted engine is not attributed to the code', async () => {
    const engine = runtime as Runtime;
    const start = async (): Promise<Container> =>
      engine.start(spec(await engine.ensureImage(image, NEVER)), NEVER);
    await using container = await start();
    const command = errorOf(container.exec(['/bin/sh', '-c', 'sleep 600'], OPTIONS));
    await sleep(1_500);
    restart();
    // Earlier connections may be used once more.
    await expect.poll(() => container.state().catch(() => null)).toBe('running');
    const error = await command;
    expect(error).toMatchObject({ failureClass: 'engine_unreachable' });
    const suspect = { container, runtime: engine, fresh: start, diskBytes: null, signal: NEVER };
    expect(await isCausedByCode(error, suspect)).toBe(false);
  });
});
