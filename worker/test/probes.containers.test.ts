/** The probes of a real worker on a real engine and a Redis of its own, during outages of both. */
import { rm } from 'node:fs/promises';
import { createConnection, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { ensureDocker, startCommand, startRedis, until } from '@swefarm/testkit';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { expect, onTestFinished, test } from 'vitest';

/** The machine's engine at a socket that can be closed and opened again. */
async function openEngine(path: string, engine: string): Promise<{ close(): Promise<void> }> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((from) => {
    const to = createConnection(engine);
    for (const socket of [from, to]) {
      sockets.add(socket);
      socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
    }
    from.pipe(to).pipe(from);
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return {
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
      await rm(path, { force: true });
    },
  };
}

test('readiness and liveness of a worker follow the outages of its Redis and its engine', async () => {
  const { socketPath } = await ensureDocker();
  const folder = temporaryFolder('probes');
  await using redis = await startRedis();
  const socket = join(folder, 'engine.sock');
  const port = 20_000 + Math.floor(Math.random() * 10_000);
  const flags = ['--runtime', 'docker', '--docker-socket', socket, '--concurrency', '1'];
  const worker = startCommand('swefarm-worker', ['run', ...flags, '--metrics-port', String(port)], {
    ...{ SWEFARM_REDIS_URL: redis.url, SWEFARM_STATE_DIR: join(folder, 'state') },
    ...{ SWEFARM_SCRATCH_DIR: join(folder, 'scratch'), SWEFARM_IMAGES_DIR: join(folder, 'images') },
  });
  onTestFinished(() => worker.kill('SIGKILL'));
  const ask = async (path: string): Promise<string> =>
    await fetch(`http://127.0.0.1:${port}${path}`).then(
      async (answer) => `${answer.status} ${(await answer.text()).trim()}`,
      () => 'nothing listens',
    );
  const becomes = (path: string, expected: RegExp) =>
    until(async () => expected.test(await ask(path)), { what: `${path} is ${expected}` });

  await worker.until(/runtime not usable yet: waiting/);
  expect(await ask('/livez')).toBe('nothing listens');
  const engine = await openEngine(socket, socketPath);
  await becomes('/readyz', /^200 ok$/);
  expect(await ask('/livez')).toBe('200 ok');

  await redis.kill();
  await becomes('/readyz', /^503 Redis took no heartbeat/);
  expect(await ask('/livez')).toBe('200 ok');
  await redis.restart();
  await becomes('/readyz', /^200 ok$/);

  await engine.close();
  await becomes('/readyz', /^503 runtime docker: no engine socket/);
  expect(await ask('/livez')).toBe('200 ok');
  const again = await openEngine(socket, socketPath);
  onTestFinished(() => again.close());
  await becomes('/readyz', /^200 ok$/);

  worker.kill('SIGTERM');
  expect(await worker.exit).toBe(0);
});
