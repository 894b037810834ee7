import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Instance } from '@swefarm/shared';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { expect, test } from 'vitest';
import { newRunRecord, recordDifferences, requireCountableCost, requireSameSettings } from './record.ts';

const dataset = { path: '/d.jsonl', sha256: 'aa', instances: [{ instance_id: 'a__b-1' }] as Instance[] };
const policy = { policyUrl: ['http://h:1/v1'], model: 'm' };
const make = (flags: Record<string, unknown>, configFile?: string, key = false) =>
  newRunRecord({ dataset, flags, configFile }, key);

function config(text: string): string {
  const folder = temporaryFolder('record');
  writeFileSync(join(folder, 'run.yaml'), text);
  return join(folder, 'run.yaml');
}

test('flags set the fields of the record', () => {
  const record = make({
    ...policy,
    groupSize: '8',
    stepLimit: '30',
    temperature: '0.7',
    extraBody: '{"min_p": 0.1}',
    requireTokens: true,
    memory: '2g',
    eval: false,
    rewardOverride: ['on_limit=zero', 'timeout=none'],
    allowHostReward: true,
    kind: 'training',
  });
  expect(record).toMatchObject({
    kind: 'training',
    group_size: 8,
    agent: { type: 'mini', step_limit: 30 },
    policy: {
      urls: ['http://h:1/v1'],
      model: 'm',
      api_key_ref: null,
      sampling: { temperature: 0.7 },
      extra_body: { min_p: 0.1 },
      require_tokens: true,
    },
    sandbox: { memory_bytes: 2 * 1024 ** 3 },
    evaluation: { enabled: false },
    reward: { overrides: { on_limit: 'zero', timeout: 'none' }, host: true },
  });
  expect(make({ ...policy, eval: true }).evaluation.enabled).toBe(true);
});

const CARD = {
  ...{ card: 1, name: 'toy', version: '1', description: 'a toy', bundle: { name: 'toy' } },
  ...{ needs: { libc: 'none' }, api: { dialects: ['chat'] }, command: ['toy'] },
  ends: [{ exit: 'any', status: 'submitted' }],
};

test('only workers of level 2 run agents that come as programs, or limits of answers and cost', () => {
  const level = (flags: object, agent: object = {}) =>
    make({ ...policy, ...flags }, config(JSON.stringify({ agent }))).needs;
  expect([level({}), level({ answerLimit: '5' }), level({ costLimit: '0.5' })]).toEqual([1, 2, 2]);
  expect(level({}, { type: 'installed', card: CARD })).toBe(2);
  expect(() => level({}, { type: 'installed' })).toThrow(/needs a card.*--agent-card/);
  expect(level({}, { card: CARD })).toBe(2);
});

test('weights of the reward come from the flag or the file, and need workers of level 3', () => {
  const weights = 'resolved=1,length=soft:24k:32k:-1';
  const file = config(JSON.stringify({ reward: { weights } }));
  for (const record of [make({ ...policy, reward: weights }), make(policy, file)])
    expect(record).toMatchObject({ needs: 3, reward: { weights } });
  expect(make(policy)).toMatchObject({ needs: 1, reward: { weights: null } });
  expect(make({ ...policy, reward: 'f2p=1' }, file).reward.weights).toBe('f2p=1');
});

test('headers of the policy need workers of level 4, and carry no credentials', () => {
  const record = make({ ...policy, policyHeader: ['X-Session-ID=a b'] });
  expect(record).toMatchObject({ needs: 4, policy: { headers: { 'X-Session-ID': 'a b' } } });
  for (const header of ['authorization=x', 'Cookie=x', 'x-api-key=x', 'x-auth-token=x', 'host=h', 'a=b\nc'])
    expect(() => make({ ...policy, policyHeader: [header] })).toThrow(/--policy-header/);
});

test('a limit of cost needs the price of the model', () => {
  const record = make({ ...policy, costLimit: '2' });
  expect(() => requireCountableCost(record)).toThrow(/--cost-limit .* price of the model m/);
  const price = { prompt: 1, completion: 2 };
  requireCountableCost({ ...record, policy: record.policy && { ...record.policy, price } });
  requireCountableCost(make(policy));
});

test('a configuration file sets fields, and flags override it', () => {
  const file = config(
    'group_size: 4\nagent: {step_limit: 10, time_limit: 60}\npolicy: {urls: ["http://h/v1"], model: m}\n',
  );
  const record = make({ stepLimit: '20' }, file);
  expect(record).toMatchObject({
    group_size: 4,
    agent: { step_limit: 20, time_limit: 60 },
    policy: { model: 'm' },
  });
});

test('the record has the name of the key, not the key', () => {
  const record = make(policy, undefined, true);
  expect(record.policy?.api_key_ref).toBe(`policy-${record.run_id}`);
});

test('the record of an agent without a policy has none', () => {
  expect(make({ agent: 'golden', ...policy }).policy).toBeNull();
});

test.each<[string, Record<string, unknown>, string | undefined, RegExp]>([
  ['no policy', {}, undefined, /add --policy-url URL/],
  ['no model', { policyUrl: ['http://h/v1'] }, undefined, /add --model NAME/],
  [
    'a key in the URL',
    { ...policy, policyUrl: ['http://me:key@h/v1'] },
    undefined,
    /without user and password; the key goes into SWEFARM_POLICY_API_KEY/,
  ],
  ['a bad URL', { ...policy, policyUrl: ['nope'] }, undefined, /--policy-url \(policy\.urls\.0\)/],
  [
    'a bad number',
    { ...policy, stepLimit: 'many' },
    undefined,
    /--step-limit: expected a number, got "many"/,
  ],
  ['a fraction', { ...policy, groupSize: '1.5' }, undefined, /--group-size \(group_size\)/],
  ['bad JSON', { ...policy, extraBody: '{' }, undefined, /--extra-body: expected JSON/],
  [
    'a bad override',
    { ...policy, rewardOverride: ['nope=zero'] },
    undefined,
    /reward override "nope": no such row/,
  ],
  [
    'a bad choice',
    { ...policy, rewardOverride: ['timeout=maybe'] },
    undefined,
    /--reward-override \(reward\.overrides\.timeout\)/,
  ],
  [
    'a bad weight',
    { ...policy, reward: 'resolved=one' },
    undefined,
    /--reward \(reward\.weights\): expected resolved=WEIGHT with a number/,
  ],
  ['no text of weights', policy, 'reward: {weights: {f2p: 1}}', /--reward \(reward\.weights\): .*string/],
  ['no pair', { ...policy, rewardOverride: ['timeout'] }, undefined, /expected key=value, got "timeout"/],
  ['a bad size', { ...policy, memory: 'lots' }, undefined, /--memory: expected a size such as 4g/],
  ['an unknown key', policy, 'agent: {step_limits: 1}', /unknown key agent\.step_limits; known here: type, /],
  ['a list', policy, '- a', /expected a mapping/],
  ['a missing file', policy, undefined, /.^|no such file/],
])('%s is refused', (name, flags, text, message) => {
  const file = name === 'a missing file' ? '/nowhere.yaml' : text === undefined ? undefined : config(text);
  expect(() => make(flags, file)).toThrow(message);
});

test('a resumed run must have the same settings where they affect its rollouts', () => {
  const stored = make({ ...policy, temperature: '1' }, undefined, true);
  expect(
    recordDifferences(stored, { ...make({ ...policy, temperature: '1', kind: 'training' }), ttl: 5 }),
  ).toEqual([]);
  const other = newRunRecord(
    {
      dataset: { ...dataset, sha256: 'bb' },
      flags: { ...policy, model: 'n', stepLimit: '5', grader: 'swegym', policyVersion: 'v2' },
    },
    false,
  );
  expect(recordDifferences(stored, other)).toEqual([
    'agent.step_limit: 250 → 5',
    'dataset.sha256: "aa" → "bb"',
    'evaluation.grader: "auto" → "swegym"',
    'policy.model: "m" → "n"',
    'policy.sampling.temperature: 1 → unset',
    'policy.version: null → "v2"',
  ]);
  expect(() => requireSameSettings(stored, other)).toThrow(
    /submitted with other settings[\s\S]*step_limit: 250 → 5/,
  );
});
