/**
 * Tests patches that break the build or the import, or loop forever, through `/run` of a real farm and by NeMo RL's rules for failures:
 * each is a sample with reward 0, and no prompt is dropped. The instances have no health findings.
 */

import { join } from 'node:path';
import {
  asyncCollector,
  type Breakage,
  compilerMissing,
  LANGUAGES,
  type Language,
  makeLanguageTree,
  type Post,
  running,
  type ScriptInput,
  singleController,
  startScriptedPolicy,
} from '@swefarm/testkit';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type GatewayFarm, startGatewayFarm } from './gatewayfarm.ts';

/** Limit of the tests in seconds. Gold takes seconds on a busy machine, and must take less than half of the limit. */
const TIMEOUT_S = 60;
const CALLERS = JSON.stringify({
  callers: ['nemo-rl', 'nemo-rl-sync'].map((failures) => ({
    ...{ name: failures, entry: failures, token_env: 'T', failures },
    run: { policy: { model: 'm', token_mode: 'echo' }, evaluation: { timeout: TIMEOUT_S } },
  })),
});
const BREAKAGES: readonly Breakage[] = ['compile error', 'import error', 'endless loop'];
const HERE = Object.entries(LANGUAGES).filter(([, language]) => compilerMissing(language) === null);

const stack = new AsyncDisposableStack();
const rows: Record<string, unknown>[] = [];
let farm: GatewayFarm;

const write = (files: Language['files']): string =>
  Object.entries(files)
    .map(([path, text]) => `cat >${path} <<'END'\n${text}END`)
    .join('\n');

beforeAll(async () => {
  farm = await startGatewayFarm(stack, CALLERS);
  const conversations: ScriptInput['conversations'] = [];
  for (const [name, language] of HERE) {
    const image = join(farm.folder, name);
    const { columns } = await makeLanguageTree(join(image, 'testbed'), language);
    const id = `acme__${name.toLowerCase()}-1`;
    rows.push({
      ...{ instance_id: id, repo: 'acme/calc', problem_statement: 'There is no sum.', version: '1' },
      ...{ ...columns, image: `host+dir:${image}`, environment: { workdir: '/testbed', activate: '' } },
    });
    const deeds = [...BREAKAGES.map((breakage) => language.broken[breakage]), language.gold];
    conversations.push({ instance: id, variants: deeds.map((files) => running(write(files))) });
  }
  const policy = stack.use(await startScriptedPolicy({ script: { conversations } }));
  for (const row of rows) row.policy_base_url = policy.url;
});
afterAll(() => stack.disposeAsync());

/** Returns a function that sends rows to the entry, and the status of each answer. */
function sender(entry: string): { send: Post; statuses: string[] } {
  const statuses: string[] = [];
  const send: Post = async (row) => {
    const answer = await farm.run(entry, row);
    statuses.push(answer.status === 200 ? '200' : `${answer.status} ${answer.text.slice(0, 300)}`);
    return answer;
  };
  return { send, statuses };
}

type Sample = Awaited<ReturnType<typeof asyncCollector>>[number][number];

/** Fails unless every answer is a sample that is trained on, with these rewards for each instance. */
function expectTrained(
  groups: readonly (readonly Sample[])[],
  statuses: readonly string[],
  rewards: readonly number[],
): void {
  expect(statuses).toEqual(Array(HERE.length * rewards.length).fill('200'));
  const sorted = groups.map((group) => group.toSorted((a, b) => (a.reward ?? 0) - (b.reward ?? 0)));
  const sample = { masked: false, failureClass: null, trainedTurns: 2 };
  const trained = rewards.map((reward) => expect.objectContaining({ ...sample, reward }));
  expect(sorted).toEqual(HERE.map(() => trained));
}

test.for(Object.entries(LANGUAGES))('this machine compiles %s', ([, language], { skip }) => {
  const missing = compilerMissing(language);
  if (missing) skip(missing);
});

test('SingleController commits every prompt at its first attempt: all breakages earn 0', async () => {
  const { send, statuses } = sender('nemo-rl');
  const once = { rowAttempts: 1, infraAttempts: 1, dataAttempts: 1 };
  const groups = await Promise.all(rows.map((row) => singleController(row, 4, send, once)));
  const samples = groups.map((group) => {
    if (group.end !== 'committed') throw new Error(JSON.stringify(group));
    return group.samples;
  });
  expectTrained(samples, statuses, [0, 0, 0, 1]);
});

test('the asynchronous collector completes its batch: compiler and import errors earn 0', async () => {
  const { send, statuses } = sender('nemo-rl-sync');
  expectTrained(await asyncCollector(rows, 2, send, 0), statuses, [0, 0]);
});
