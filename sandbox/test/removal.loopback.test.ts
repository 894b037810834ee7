/** Removals by an engine that accepts requests and does not answer. */
import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { listening } from '@swefarm/testkit/test/listening.ts';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { expect, test } from 'vitest';
import { dockerRuntime } from '../src/docker/runtime.ts';

async function silentEngine() {
  const folder = temporaryFolder('silent');
  /** Ids of the containers whose removal was requested. */
  const requested: string[] = [];
  const waiting: ServerResponse[] = [];
  let stalled = true;
  const socketPath = await listening(
    (request, answer) => {
      const id = /\/containers\/(\w+)\?/.exec(request.url ?? '')?.[1];
      if (request.method !== 'DELETE' || !id) answer.writeHead(500).end('{}');
      else if (!stalled) answer.writeHead(404).end('{"message":"no such container"}');
      else {
        requested.push(id);
        waiting.push(answer);
      }
    },
    join(folder, 'engine.sock'),
  );
  return {
    socketPath,
    requested,
    /** Answers all open and later requests. */
    letGo() {
      stalled = false;
      for (const answer of waiting) answer.writeHead(204).end();
    },
  };
}

test('a late removal is requested once, takes no slot, and ends when the engine answers', async () => {
  const engine = await silentEngine();
  await using runtime = await dockerRuntime({ socketPath: engine.socketPath, answerMs: 50 });
  // Complete ids without containers, because a late container is killed by its id.
  const ids = Array.from({ length: 20 }, () => randomBytes(32).toString('hex'));
  const errorOf = (id: string) => runtime.remove(id).catch((error: unknown) => error);
  for (const _sweep of [1, 2]) {
    for (const error of await Promise.all(ids.map(errorOf)))
      expect(error).toMatchObject({
        failureClass: 'engine_unreachable',
        message: expect.stringContaining('did not answer in 0.05 s'),
      });
  }
  expect([...engine.requested].sort()).toEqual([...ids].sort());

  engine.letGo();
  await expect
    .poll(() => Promise.all(ids.map(errorOf)), { timeout: 100_000 })
    .toEqual(ids.map(() => undefined));
});
