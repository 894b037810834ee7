/** Tests odd settings of runs from callers and command lines: each is refused with its cause or accepted, and no process ends. */
import { writeFile } from 'node:fs/promises';
import { testGateway } from '@swefarm/gateway/test/gateway.ts';
import { post, row } from '@swefarm/gateway/test/gym.ts';
import { testConfig, testFarm } from '@swefarm/runs/test/farm.ts';
import { newId, PolicyConfig, RunRecord } from '@swefarm/shared';
import { bareRun, oddJson, oddTree, rawRedis, words } from '@swefarm/testkit';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { stringify } from 'yaml';
import { exited, run } from './cli.ts';
import { farmVariables, flaskRows } from './scene.ts';

const CASES = 50;
const CLI_CASES = 3;
const seed = Number(process.env.SWEFARM_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));

const oddness = fc.record({ at: fc.nat({ max: 10_000 }), what: fc.nat({ max: 10_000 }) });
const changes = fc.array(oddness, { minLength: 1, maxLength: 2 });

/** Returns all settings of a run that a submitter may set. */
function settings(): object {
  const policy = PolicyConfig.parse({ urls: ['http://127.0.0.1:9/v1'], model: 'm', sampling: { seed: 1 } });
  const { api_key_ref: _, ...asked } = policy;
  const whole = RunRecord.parse({ ...bareRun(), refills: 1, max_staleness: 2 });
  const { kind, oversample, refills, max_staleness, infra_pause_share, ttl } = whole;
  const { agent, sandbox, evaluation, reward } = whole;
  return {
    ...{ kind, oversample, refills, max_staleness, infra_pause_share, ttl, min_group: 1 },
    ...{ agent, policy: asked, sandbox, evaluation },
    reward: { overrides: { ...reward.overrides }, host: false },
  };
}

test(`odd settings of a caller (SWEFARM_TEST_SEED=${seed})`, { timeout: 120_000 }, async () => {
  const { url, farm, config } = await testGateway();
  const ask = async (body: object): Promise<{ status: number; error: { code: string; message: string } }> => {
    const reply = await post(url, oddJson(body), { path: '/v1/runs' });
    return {
      status: reply.status,
      ...((await reply.json()) as { error: { code: string; message: string } }),
    };
  };
  let made = 0;
  for (const one of fc.sample(changes, { seed, numRuns: CASES })) {
    const { tree, description } = oddTree({ group_size: 2, run: settings() }, one);
    const answer = await ask({ instances: [row()], ...tree });
    if (answer.status === 201) made += 1;
    else {
      expect(answer, description).toMatchObject({
        status: expect.toSatisfy((status) => status >= 400 && status < 500),
      });
      expect(answer.error.message.length, description).toBeGreaterThan(10);
      expect(answer.error.message, description).not.toContain('ZodError');
    }
    // A refused request leaves no run, and an accepted run is complete.
    expect((await farm.runs.list()).length, description).toBe(made);
    expect(await farm.runs.unreadable(), description).toEqual([]);
  }
  expect(made).toBeLessThan(CASES);
  const before = await rawRedis(farm)('KEYS', `{${config.redis_prefix}}*`);
  const poison = await ask({
    instances: [row()],
    run: { oversample: 200_000_000, policy: { urls: ['http://x/v1'], model: 'm' } },
  });
  expect(poison).toMatchObject({ status: 422, error: { code: 'bad_settings', field: 'run.oversample' } });
  const many = Array.from({ length: 200 }, (_, at) => row({ instance_id: `a__b-${at}` }));
  const product = await ask({ instances: many, group_size: 10_000, run: { agent: { type: 'noop' } } });
  expect(product).toMatchObject({
    status: 422,
    error: { message: expect.stringContaining('200 instances x') },
  });
  expect(await rawRedis(farm)('KEYS', `{${config.redis_prefix}}*`)).toEqual(before);
});

test(`odd run configurations on the command line (SWEFARM_TEST_SEED=${seed})`, {
  timeout: 120_000,
}, async () => {
  const config = testConfig(undefined, `t${newId()}`);
  const farm = await testFarm(config);
  const { at, dataset } = await flaskRows(1);
  const submit = async (name: string, tree: object, ...flags: string[]) => {
    await writeFile(at(name), stringify(tree));
    const args = words`submit --no-probe --dataset ${dataset} --run-config ${at(name)} ${flags}`;
    return await run(args, farmVariables(config));
  };
  const cases = fc.sample(changes, { seed, numRuns: CLI_CASES }).map(async (one, index) => {
    const { tree, description } = oddTree(settings(), one);
    const { code, stderr } = await submit(`${index}.yaml`, tree);
    expect([0, 2], `${description}: ${stderr}`).toContain(code);
    expect(stderr, description).not.toMatch(/\n\s+at /);
    return code === 0 ? 1 : 0;
  });
  const made = (await Promise.all(cases)).reduce((sum: number, one) => sum + one, 0);
  expect((await farm.runs.list()).length).toBe(made);
  const typo = await submit('plain.yaml', { agent: { type: 'noop' } }, '--oversample', '200000000');
  expect(typo).toMatchObject(exited(2, '--oversample (oversample)'));
  const nan = await submit('nan.yaml', { agent: { type: 'noop' }, ttl: Number.NaN });
  expect(nan).toMatchObject(exited(2, /\(ttl\): /));
  expect((await farm.runs.list()).length).toBe(made);
});
