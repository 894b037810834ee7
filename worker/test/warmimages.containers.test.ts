/** What a worker asks a registry for, ahead of the rollouts that need it. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { dockerRuntime } from '@swefarm/sandbox';
import { ensureDocker, until } from '@swefarm/testkit';
import { expect, onTestFinished, test } from 'vitest';
import { openWarmScene, SOCKET } from './warmscene.ts';

test('an image that cannot be fetched is not asked for again and again while its rollouts wait', async () => {
  await ensureDocker({ socketPath: SOCKET });
  let asked = 0;
  const registry = createServer(({ url = '' }, response) => {
    if (url.includes('/manifests/')) asked++;
    response.writeHead(url === '/v2/' ? 200 : 404).end('{}');
  });
  await new Promise<void>((resolve) => registry.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void registry.close());
  const { port } = registry.address() as AddressInfo;
  await using runtime = await dockerRuntime({ socketPath: SOCKET });
  const image = `127.0.0.1:${port}/swefarm-test/absent:1`;
  const at = await openWarmScene({ runtime, image, policyUrl: 'http://127.0.0.1:9/v1', most: 1 });
  await at.submit({ rollouts: 2 });
  await until(() => asked > 0, { what: 'the registry was asked' });
  const once = asked;
  // Some looks at the queue.
  await sleep(3_000);
  expect(asked).toBeLessThanOrEqual(once + 1);
  await at.warming.end();
});
