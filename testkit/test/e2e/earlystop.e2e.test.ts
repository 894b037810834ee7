/** A scheduler may end a service that it has just started. */
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

test.each(SERVICES)('%s ends at SIGTERM however soon after its start', async (name, args) => {
  for (const afterMs of [0, 10, 50, 100, 200]) {
    const service = begin(name, args);
    await sleep(afterMs);
    service.kill('SIGTERM');
    // Before its first line of code the kernel ends a process by the signal itself, and nothing has begun.
    expect(await service.exit).toBeOneOf([0, 'SIGTERM']);
  }
});
