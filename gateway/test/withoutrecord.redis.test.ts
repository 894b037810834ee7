/** Tests callers that do not read Gym's record of the conversation. */

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { testFolder } from '@swefarm/runs/test/farm.ts';
import { expect, test } from 'vitest';
import { bearer, testGateway } from './gateway.ts';
import { finish, post, type Reply, row, untilQueued } from './gym.ts';

const caller = (tokenFile: string) => `callers:
  - name: loop
    token_file: ${tokenFile}
    failures: collector
    ng_trajectory: false
    run: {kind: training, policy: {token_mode: token-in, require_tokens: true}}
`;

test('an answer without the record contains its conversation once', async () => {
  const path = join(await testFolder(), 'callers.yaml');
  await writeFile(`${path}.token`, 'token-of-loop');
  await writeFile(path, caller(`${path}.token`));
  const { url, farm } = await testGateway({ gateway_callers: path });
  const asked = post(url, row({ _ng_rollout_id: 'loop-1' }), { headers: bearer('token-of-loop') });
  await untilQueued(farm, 1);
  const [run] = await farm.runs.list();
  expect(run).toMatchObject({ kind: 'training', policy: { token_mode: 'token-in', require_tokens: true } });
  await finish(farm);
  const answer = (await (await asked).json()) as Reply;
  expect(answer).toMatchObject({ reward: 1, response: { output: [] } });
  expect(answer).not.toHaveProperty('ng_trajectory');
});
