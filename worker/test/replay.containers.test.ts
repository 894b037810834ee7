/** Rollouts that continue from their recorded turns after a drain or the loss of a sandbox, on real sandboxes. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Container, type Runtime, rootfsRuntime } from '@swefarm/sandbox';
import {
  BRANCHES,
  decodeTurns,
  linesOf,
  newId,
  PolicyConfig,
  type RunRecord,
  recordedTurns,
  textOfTurns,
} from '@swefarm/shared';
import {
  bareInstance,
  bareRun,
  minimalImage,
  printingScript,
  type ScriptedPolicy,
  startScriptedPolicy,
} from '@swefarm/testkit';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { startThreads, type Threads } from '../src/threads/pool.ts';
import { openNode, submitOne } from './attempts.ts';
import { scene } from './maintenance/farm.ts';

const TURNS = 40;
const AT = 20;

let runtime: Runtime;
let tree: string;
let threads: Threads;

beforeAll(async () => {
  const folder = temporaryFolder('replay');
  runtime = await rootfsRuntime({ imagesDir: `${folder}/images`, scratchDir: `${folder}/scratch` });
  tree = join(folder, 'tree');
  execFileSync('cp', ['-al', (await minimalImage()).tree, tree]);
  const git = (...line: string[]) => execFileSync('git', ['-C', join(tree, 'testbed'), ...line]);
  git('init', '-q');
  git('-c', 'user.name=t', '-c', 'user.email=t@t', 'commit', '-q', '--allow-empty', '-m', 'base');
  threads = startThreads(1);
});
afterAll(async () => {
  await threads[Symbol.asyncDispose]();
  await runtime[Symbol.asyncDispose]();
});

/** Turns whose state and output depend on all earlier commands; `at`: a command in place of that turn's. */
const commands = (at?: [turn: number, command: string]): { command: string; thought?: string }[] =>
  Array.from({ length: TURNS - 1 }, (_, index) => ({
    command: at?.[0] === index + 1 ? at[1] : 'echo line >>log; wc -l log; ls -l --full-time log; date',
  }));

async function rollout(at?: [turn: number, command: string], agent: object = {}, turns = commands(at)) {
  const policy = await startScriptedPolicy({
    script: { conversations: [{ variants: [[...turns, { submit: true }]] }] },
    delay: { event_ms: turns.some(({ thought }) => thought) ? 20 : 0 },
  });
  onTestFinished(() => policy[Symbol.asyncDispose]());
  const { farm } = await scene();
  const run: RunRecord = bareRun({
    group_size: 1,
    policy: PolicyConfig.parse({
      ...{ urls: [policy.url], model: 'scripted', token_mode: 'token-in', require_tokens: true },
    }),
    agent: { ...bareRun().agent, ...agent },
    sandbox: { ...bareRun().sandbox, activate: ':' },
    evaluation: { ...bareRun().evaluation, enabled: false },
  });
  const instance = bareInstance({
    ...{ image: `dir:${tree}`, base_commit: 'HEAD' },
    ...{ eval_script: printingScript("w('')"), log_parser: 'parse_log_pytest' },
  });
  const submitted = await submitOne(farm, run, instance);
  const play = async (until?: { answers?: number; streamed?: number; end: 'drain' | 'lost' }) => {
    let container: Container | null = null;
    const start: Runtime['start'] = async (spec, signal) => {
      container = await runtime.start(spec, signal);
      return container;
    };
    const node = openNode({
      farm,
      runtime: { ...runtime, start },
      threads,
      flags: { worker_id: `r-${newId()}` },
    });
    const playing = submitted.attempt(node);
    if (until) {
      const reached = async () => {
        const { answers = 0, streamed = 0 } = until;
        const isReached = (seen = policy.stats()) =>
          seen.answered >= answers && seen.streamed_tokens >= streamed;
        while (!isReached()) await sleep(5);
      };
      await Promise.race([
        reached(),
        playing.then((ended) => Promise.reject(new Error(JSON.stringify(ended)))),
      ]);
      if (until.end === 'drain') node.active.abort(submitted.id, 'drain');
      else await (container as Container | null)?.[Symbol.asyncDispose]();
    }
    const after = await playing;
    node.policies[Symbol.dispose]();
    await node.removals.finished();
    return after;
  };
  return {
    ...{ play, policy, farm, run, instance, id: submitted.id },
    journal: () => farm.journal.read(submitted.id),
    stored: async () => (await Array.fromAsync(farm.artifacts.runParts(run.run_id))).flat(),
    async result() {
      const [result] = await submitted.results();
      const content = await farm.artifacts.read(result?.artifact ?? null);
      return { result, trajectory: content?.trajectory };
    },
  };
}

const TREE =
  'find . -path ./.git -prune -o -type f -exec sha256sum {} + | sort | sha256sum; git status --short';

test('8 branches behind turn 10 share its ids and tree, but count only own tokens', async () => {
  const at = await rollout([11, TREE]);
  await at.play();
  const first = await at.result();
  const { trajectory } = first;
  if (!trajectory) throw new Error('no trajectory');
  const turn = 10;
  const branch_of = { rollout_id: at.id, turn };
  const run: RunRecord = { ...at.run, run_id: newId(), group_size: 8, needs: BRANCHES, branch_of };
  const text = textOfTurns(recordedTurns(trajectory, turn), { replay: null }).toString();
  const answered = at.policy.stats().answered;
  const branches = await submitOne(at.farm, run, at.instance, text);
  const ids = await at.farm.groups.rollouts(run.run_id);
  expect(ids).toHaveLength(8);
  const node = openNode({ farm: at.farm, runtime, threads, flags: { worker_id: `b-${newId()}` } });
  await Promise.all(ids.map((id) => branches.attempt(node, id)));
  node.policies[Symbol.dispose]();
  await node.removals.finished();
  const results = await branches.results();
  expect(results).toHaveLength(8);
  expect(at.policy.stats().answered).toBe(answered + 8 * (TURNS - turn));
  const prefix = trajectory.turns.slice(0, turn).map(({ tokens }) => tokens);
  const seen = trajectory.messages[(trajectory.turns[11]?.message ?? 0) - 1];
  for (const result of results) {
    expect(result).toMatchObject({ outcome: 'judged', turns: TURNS, branch_of, replay: { turns: turn } });
    expect(result.tokens.completion).toBeLessThan(first.result?.tokens.completion ?? 0);
    const branch = (await at.farm.artifacts.read(result.artifact))?.trajectory;
    expect(branch).toMatchObject({ branch_of, contiguous: true });
    expect(branch?.turns.slice(0, turn).map(({ tokens }) => tokens)).toEqual(prefix);
    expect(branch?.messages[(branch.turns[11]?.message ?? 0) - 1]).toEqual(seen);
    if (branch) expect(linesOf(branch)[0].shared.turns).toBe(turn);
  }
});

test('a branch whose turns cannot be repeated fails, and has no reward', async () => {
  const at = await rollout([5, 'head -c 8 /dev/urandom | od -An -tx1']);
  await at.play();
  const { trajectory } = await at.result();
  if (!trajectory) throw new Error('no trajectory');
  const branch_of = { rollout_id: at.id, turn: 10 };
  const run: RunRecord = { ...at.run, run_id: newId(), needs: BRANCHES, branch_of };
  const text = textOfTurns(recordedTurns(trajectory, 10), { replay: null }).toString();
  const branch = await submitOne(at.farm, run, at.instance, text);
  const node = openNode({ farm: at.farm, runtime, threads, flags: { worker_id: `b-${newId()}` } });
  expect(await branch.attempt(node)).toMatchObject({ next: 'later' });
  expect(await branch.attempt(node)).toEqual({ next: 'done' });
  node.policies[Symbol.dispose]();
  await node.removals.finished();
  expect(await branch.results()).toMatchObject([
    { outcome: 'failed', reward: null, branch_of, failure: { stage: 'instance', class: 'branch_differs' } },
  ]);
});

const lengths = (policy: ScriptedPolicy) => policy.stats().answered;

test('a drained rollout of 40 turns goes on elsewhere without asking for a turn that was there', async () => {
  const at = await rollout();
  expect(await at.play({ answers: AT, end: 'drain' })).toMatchObject({ next: 'hand_back' });
  const [entry] = await at.journal();
  expect(entry?.end).toMatchObject({ class: 'drained', turns: expect.any(Number) });
  expect(entry?.end?.turns).toBeGreaterThanOrEqual(AT - 1);
  const [record] = await at.stored();
  const { turns } = await decodeTurns(await at.farm.artifacts.get(record?.locator ?? ''));
  expect(turns).toHaveLength(entry?.end?.turns ?? 0);

  expect(await at.play()).toEqual({ next: 'done' });
  const { result, trajectory } = await at.result();
  expect(result).toMatchObject({
    ...{ outcome: 'judged', turns: TURNS, attempt: 2, exit_status: 'submitted' },
    replay: { turns: turns.length, differed_at: null },
  });
  // An answer that was on its way at the drain is sampled again.
  expect(lengths(at.policy)).toBeLessThanOrEqual(TURNS + 1);
  expect(trajectory).toMatchObject({ contiguous: true });
  expect(trajectory?.turns.slice(0, turns.length).map(({ tokens }) => tokens)).toEqual(
    turns.map(({ turn }) => turn.tokens),
  );
  // What the model saw stays, although the second sandbox printed other times.
  expect(trajectory?.messages[3]).toEqual(turns[1]?.observed[0]);
  expect(trajectory?.messages.at(-2)?.content).toContain(`${TURNS - 1} log`);
  expect((await at.stored()).map(({ attempt }) => attempt)).toEqual([2]);
});

test('an answer interrupted by two drains samples no token twice', async () => {
  const thought = Array.from({ length: 300 }, (_, n) => `Step ${n} of a long thought.`).join(' ');
  const turns = [
    { command: 'date; echo 1 >a' },
    { command: 'ls -l --full-time', thought },
    { command: 'ls' },
  ];
  const at = await rollout(undefined, {}, turns);
  const before = () => at.policy.stats();
  for (const end of ['drain', 'drain'] as const)
    expect(await at.play({ answers: 1, streamed: before().streamed_tokens + 400, end })).toMatchObject({
      next: 'hand_back',
    });
  expect(before().answered).toBe(1);
  const [record] = await at.stored();
  const { begun } = await decodeTurns(await at.farm.artifacts.get(record?.locator ?? ''));
  expect(begun?.text).toMatch(/^Step 0 of a long thought\./);
  const received = begun?.ids.length ?? 0;
  expect(received).toBeGreaterThan(700);
  expect(await at.play()).toEqual({ next: 'done' });

  const { result, trajectory } = await at.result();
  expect(result).toMatchObject({
    ...{ outcome: 'judged', turns: 4, attempt: 3, exit_status: 'submitted' },
    replay: { turns: 1, differed_at: null, tokens: received },
  });
  expect(trajectory).toMatchObject({ contiguous: true });
  const turn = trajectory?.turns[1];
  expect(turn?.tokens?.generation.subarray(0, received)).toEqual(begun?.ids);
  expect(turn?.tokens?.log_probs.subarray(0, received)).toEqual(begun?.log_probs);
  expect(turn?.spans?.reduce((sum, { tokens }) => sum + tokens, 0)).toBe(turn?.tokens?.generation.length);
  // The command ran once, after the complete answer. The answer's time includes all attempts.
  expect(trajectory?.messages[turn?.message ?? 0]?.content).toContain('Step 299');
  const { model = 0, agent = 0 } = result?.seconds ?? {};
  expect(turn?.model_seconds).toBeGreaterThan(2);
  expect(model).toBeGreaterThan(turn?.model_seconds ?? 0);
  expect(agent).toBeGreaterThanOrEqual(model);
  // At most the tokens that were in transit when a connection closed.
  const sampled = before().streamed_tokens - (result?.tokens.completion ?? 0);
  expect(sampled).toBeLessThan(100);
});

test('a rollout whose replay differs begins anew, and its result names the turn', async () => {
  const at = await rollout([5, 'head -c 8 /dev/urandom | od -An -tx1']);
  await at.play({ answers: AT, end: 'drain' });
  expect(await at.play()).toEqual({ next: 'done' });
  const { result, trajectory } = await at.result();
  expect(result).toMatchObject({
    ...{ outcome: 'judged', turns: TURNS, attempt: 2, replay: { turns: 0, differed_at: 5 } },
  });
  expect(trajectory?.turns).toHaveLength(TURNS);
  expect(trajectory?.contiguous).toBe(true);
  expect(lengths(at.policy)).toBeGreaterThanOrEqual(TURNS + AT);
  expect((await at.stored()).map(({ attempt }) => attempt)).toEqual([2]);
});

test('a rollout that loses its sandbox or its worker twice goes on each time', async () => {
  const at = await rollout();
  expect(await at.play({ answers: 10, end: 'lost' })).toMatchObject({ next: 'later' });
  expect((await at.journal()).at(-1)?.end).toMatchObject({ class: 'sandbox_lost' });
  await at.play({ answers: 25, end: 'drain' });
  expect(await at.play()).toEqual({ next: 'done' });
  const { result, trajectory } = await at.result();
  expect(result).toMatchObject({ turns: TURNS, attempt: 3, replay: { differed_at: null } });
  expect(result?.replay?.turns).toBeGreaterThanOrEqual(24);
  expect(trajectory?.contiguous).toBe(true);
  expect(lengths(at.policy)).toBeLessThanOrEqual(TURNS + 2);
});

test('the agent’s clock counts replayed turns once', async () => {
  const at = await rollout([3, 'sleep 2']);
  await at.play({ answers: AT, end: 'drain' });
  await at.play();
  const { result } = await at.result();
  expect(result?.replay?.turns).toBeGreaterThanOrEqual(AT - 1);
  const { agent = 0, model = 0, command = 0 } = result?.seconds ?? {};
  expect(agent).toBeGreaterThan(2);
  expect(agent).toBeLessThan(4 + model + command);
  expect(result?.facts?.policy_share).toBeLessThanOrEqual(1);
});

test('with --resume-turns off, nothing is recorded', async () => {
  const at = await rollout(undefined, { resume_turns: 'off' });
  await at.play({ answers: AT, end: 'drain' });
  expect(await at.stored()).toEqual([]);
  expect(await at.play()).toEqual({ next: 'done' });
  expect((await at.result()).result).not.toHaveProperty('replay');
  expect(lengths(at.policy)).toBeGreaterThanOrEqual(TURNS + AT);
});
