/** The gateway with the caller of docs/verl.md for the agent loop `swefarm`. */

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { testFolder } from '@swefarm/runs/test/farm.ts';
import { expect, test } from 'vitest';
import { bearer, testGateway } from './gateway.ts';
import { finish, post, type Reply, row, untilQueued } from './gym.ts';

const PAGE = new URL('../../docs/verl.md', import.meta.url);

test('an answer to the documented caller contains its conversation once', async () => {
  const path = join(await testFolder(), 'callers.yaml');
  const [, callers = ''] = /```yaml\n(callers:[\s\S]*?)```/.exec(await readFile(PAGE, 'utf8')) ?? [];
  await writeFile(`${path}.token`, 'token-of-verl');
  await writeFile(path, callers.replace('token_env: VERL_TOKEN', `token_file: ${path}.token`));
  const { url, farm } = await testGateway({ gateway_callers: path });
  const asked = post(url, row({ _ng_rollout_id: 'verl-1' }), { headers: bearer('token-of-verl') });
  await untilQueued(farm, 1);
  const [run] = await farm.runs.list();
  expect(run).toMatchObject({ kind: 'training', policy: { token_mode: 'token-in', require_tokens: true } });
  await finish(farm);
  const answer = (await (await asked).json()) as Reply;
  expect(answer).toMatchObject({ reward: 1, response: { output: [] } });
  expect(answer).not.toHaveProperty('ng_trajectory');
});
