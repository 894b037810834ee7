/** Tests optional contents of answers: masks of overlong rollouts, and experts. */
import { type Farm, type Result, Secret, type Trajectory } from '@swefarm/shared';
import { madeTrajectory } from '@swefarm/testkit';
import { commitRollout } from '@swefarm/trajectories/test/commitrollout.ts';
import { expect, test } from 'vitest';
import { ask, callersFile, testGateway } from './gateway.ts';
import { post, queued, type Reply, row, untilQueued } from './gym.ts';

/** A trajectory whose server returned an expert for each token but the last. */
function withExperts(): Trajectory {
  const made = madeTrajectory(2, 0);
  let start = 0;
  for (const { tokens } of made.turns) {
    if (!tokens) throw new Error('every turn has tokens');
    const { prefix_length, prompt_suffix, generation } = tokens;
    const rows = prefix_length + prompt_suffix.length + generation.length - 1 - start;
    tokens.routed_experts = { dtype: 'int8', layers: 1, top_k: 1, start, rows: new Int8Array(rows).fill(3) };
    start += rows;
  }
  return made;
}

async function commitNext(farm: Farm, over: Partial<Result> = {}): Promise<void> {
  await untilQueued(farm, 1);
  const [id = ''] = await queued(farm);
  const run = await farm.runs.get(id.slice(0, id.indexOf('.')));
  if (run) await commitRollout(farm, run, id, over, null, withExperts());
  await (await farm.queue().getJob(id))?.remove();
}

const answerTo = async (farm: Farm, asked: Promise<Response>, over: Partial<Result> = {}): Promise<Reply> => {
  await commitNext(farm, over);
  return (await (await asked).json()) as Reply;
};

test('an overlong rollout is judged, and masked if the row or entry asks for it', async () => {
  const gateway_callers = await callersFile({ masking: 'mask_overlong: true' });
  const { url, farm } = await testGateway({ gateway_callers, gateway_token: new Secret('own') });
  const masks = async (token: string, over: object, exit_status: Result['exit_status']) => {
    const headers = { authorization: `Bearer ${token}` };
    const answer = await answerTo(farm, post(url, row({ _rowidx: 0, ...over }), { headers }), {
      exit_status,
    });
    expect(answer).toMatchObject({
      reward: 1,
      judged: true,
      truncated: exit_status === 'context_limit',
      mask_sample: false,
    });
    return answer.instance_config.mask_sample;
  };
  expect(await masks('own', {}, 'context_limit')).toBe(false);
  expect(await masks('own', { mask_overlong: true }, 'context_limit')).toBe(true);
  expect(await masks('own', { mask_overlong: true }, 'turn_limit')).toBe(false);
  expect(await masks('token-of-masking', {}, 'context_limit')).toBe(true);
  expect(await masks('token-of-masking', { mask_overlong: false }, 'context_limit')).toBe(false);
});

test('answers contain experts if the request or the run asks for them', async () => {
  const { url, farm } = await testGateway();
  const hasExperts = ({ response }: Reply) => response.output.filter((item) => item.routed_experts).length;
  const unasked = await answerTo(farm, post(url, row({ _rowidx: 0 })));
  expect(hasExperts(unasked)).toBe(0);
  expect(hasExperts(await answerTo(farm, post(url, row({ _rowidx: 1, routed_experts: true }))))).toBe(2);
  const read = async (query: string) =>
    JSON.stringify((await ask(`${url}/v1/rollouts/${unasked.rollout_id}/${query}`, 'GET')).body);
  for (const what of ['trajectory', 'artifact']) {
    expect(await read(what)).not.toContain('routed_experts');
    expect(await read(`${what}?routed_experts=true`)).toContain('"routed_experts":{"dtype":"int8"');
  }
  const requiring = await testGateway({}, { policy: { routed_experts: 'require' } });
  const asked = post(requiring.url, row({ _rowidx: 0 }));
  expect(hasExperts(await answerTo(requiring.farm, asked))).toBe(2);
});
