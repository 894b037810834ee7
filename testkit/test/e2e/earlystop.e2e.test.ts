/** Tests SIGTERM soon after the start of a service, as a scheduler may send it. */
import { sleep } from '@swefarm/shared';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { type CommandName, startCommand } from '../../src/launchers/commands.ts';
import { TELLS_LISTENING, untilListens } from '../../src/launchers/listens.ts';
import { startRedis } from '../../src/launchers/redis.ts';

const redis = await startRedis();
afterAll(() => redis[Symbol.asyncDispose]());

const SERVICES: readonly (readonly [CommandName, string[]])[] = [
  ['swefarm', ['serve', '--port', '0']],
  ['swefarm-worker', ['run', '--runtime', 'host']],
];

const begin = (name: CommandName, args: string[]) => {
  const started = startCommand(name, args, { SWEFARM_REDIS_URL: redis.url, ...TELLS_LISTENING });
  onTestFinished(() => started.kill('SIGKILL'));
  return started;
};

test.each(SERVICES)('%s ends with 0 at SIGTERM from its first line of code on', async (name, args) => {
  for (const afterMs of [0, 1, 5, 20, 60]) {
    const service = begin(name, args);
    await untilListens(service);
    await sleep(afterMs);
    service.kill('SIGTERM');
    expect([afterMs, await service.exit]).toEqual([afterMs, 0]);
  }
});

test.each(SERVICES)('%s ends at a SIGTERM immediately after its start', async (name, args) => {
  for (const afterMs of [0, 10, 50, 100, 200]) {
    const service = begin(name, args);
    await sleep(afterMs);
    service.kill('SIGTERM');
    // Before the first line of its code, the signal ends the process, which has not begun anything.
    expect(await service.exit).toBeOneOf([0, 'SIGTERM']);
  }
});
