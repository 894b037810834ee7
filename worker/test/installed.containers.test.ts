/** Rollouts of an agent that comes as a program, on real sandboxes without a network. */
import { cumulative } from '@swefarm/policy';
import type { Container } from '@swefarm/sandbox';
import type { AgentConfig, ArtifactContent, Turn } from '@swefarm/shared';
import { until } from '@swefarm/testkit';
import { describe, expect, test, vi } from 'vitest';
import { answered, call, FINISH, rollOut, SOLVES, useMachine } from './installedscene.ts';
import { RUNTIMES } from './matrix/runtimes.ts';

vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 });

const never = new AbortController().signal;
const SOLVE = call('echo 42 >answer.txt');

/** Objects that the agent wrote, one for each line. */
function written(stored: ArtifactContent | null | undefined, name: string): Record<string, number>[] {
  const content = stored?.outputs?.find((output) => output.name === `out/${name}.jsonl`)?.content;
  if (typeof content !== 'string') return [];
  return content
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}

const observed = (stored: ArtifactContent | null | undefined): (string | null)[] =>
  stored?.trajectory?.messages.filter(({ role }) => role === 'tool').map(({ content }) => content) ?? [];

describe.each(RUNTIMES)('on %s', (runtime) => {
  const machine = useMachine(runtime);

  test('the agent resolves its instance, and the farm has the exact ids', async () => {
    const trial = await rollOut(await machine());
    await trial.attempt();
    const result = await trial.result();
    expect([result?.failure, await trial.ends()]).toEqual([null, ['done']]);
    expect(result).toMatchObject({ outcome: 'judged', resolved: true, reward: 1, turns: 3 });
    expect(result?.agent).toMatchObject({ name: 'toy', exit_code: 0, lines: 1, requests: 3, whole: 0 });
    const stored = await trial.stored();
    const { turns = [], contiguous } = stored?.trajectory ?? {};
    const tokens = [...cumulative(turns.map((turn) => turn.tokens))];
    expect(tokens.map(({ prompt, generation }) => [prompt.length, generation.length])).toEqual(
      written(stored, 'answers').map((usage) => [usage.prompt_tokens, usage.completion_tokens]),
    );
    expect([contiguous, answered(trial.server), await trial.left()]).toEqual([true, 3, 0]);
    expect(stored?.outputs?.[0]).toMatchObject({ name: 'output', content: 'done 7\n' });
  });

  test('commands run in the activated environment, and nothing of the agent is in the repository', async () => {
    const shows = `echo "$HOME $PWD $ACTIVATED"; bash -lc 'echo "\${PATH%%:*}"'; env | grep -i -c http.*proxy; touch "$HOME/x" "$TMPDIR/y"`;
    const trial = await rollOut(await machine(), { turns: [call(shows), SOLVE, FINISH] });
    await trial.attempt();
    const stored = await trial.stored();
    expect(observed(stored)[0]).toBe('/tmp/swefarm-agent/home /testbed 1\n/activated\n0');
    expect(stored?.patch?.match(/^diff --git.*$/gm)).toEqual(['diff --git a/answer.txt b/answer.txt']);
  });

  test.each<[string, Partial<AgentConfig>, string[], string, number]>([
    ['turns', { step_limit: 2 }, [], 'turn_limit', 2],
    ['turns of an agent that asks for ever', { step_limit: 2 }, ['stubborn'], 'turn_limit', 2],
    ['answer tokens', { answer_limit: 50 }, [], 'turn_limit', 2],
    ['time of an agent that never ends', { time_limit: 8 }, ['endless'], 'time_limit', 3],
  ])('a limit of %s ends the agent, and its tree is graded', async (_what, agent, words, status, most) => {
    const turns = 'answer_limit' in agent ? [SOLVE, FINISH] : SOLVES;
    const trial = await rollOut(await machine(), { turns, words, agent });
    await trial.attempt();
    const result = await trial.result();
    expect(result).toMatchObject({ outcome: 'judged', exit_status: status });
    expect(result?.turns).toBeLessThanOrEqual(most);
    expect(result?.resolved).toBe(true);
    expect(await trial.left()).toBe(0);
  });

  test('a limit of whole prompts ends an agent that asks for a title first', async () => {
    const agent = { whole_prompt_limit: 1 };
    const trial = await rollOut(await machine(), { words: ['title'], agent });
    await trial.attempt();
    expect(await trial.result()).toMatchObject({ outcome: 'judged', exit_status: 'turn_limit', turns: 1 });
  });

  test('all processes of an agent are killed before its patch is taken', async () => {
    const opened = await machine();
    const seen: string[] = [];
    /** Lists the processes before the end file is read, which is after the agent has ended. */
    const looking = (container: Container): Container => {
      const getFile = container.getFile.bind(container);
      return Object.assign(container, {
        async getFile(...given: Parameters<typeof getFile>) {
          const options = { timeoutMs: 20_000, maxOutputBytes: 10_000, signal: never };
          seen.push((await container.exec(['ps', '-eo', 'args'], options)).output.toString('utf8'));
          return await getFile(...given);
        },
      });
    };
    const { runtime: own } = opened;
    const start: typeof own.start = async (...given) => looking(await own.start(...given));
    const watched = { ...own, start };
    const trial = await rollOut({ ...opened, runtime: watched }, { words: ['background'] });
    await trial.attempt();
    expect([await trial.ends(), (await trial.result())?.failure]).toEqual([['done'], null]);
    expect(await trial.result()).toMatchObject({ resolved: true, exit_status: 'submitted' });
    expect(seen.length).toBeGreaterThan(0);
    for (const processes of seen) expect(processes).not.toMatch(/toy\.py|sleep 3600|testbed\.log/);
  });

  test('an agent that ends by an error after its first answer is judged', async () => {
    const trial = await rollOut(await machine(), { turns: [SOLVE, call('kill -9 $PPID')] });
    await trial.attempt();
    const result = await trial.result();
    expect(result).toMatchObject({ exit_status: 'agent_error', resolved: true, turns: 2 });
    expect(result?.agent?.exit_code).toBe(137);
  });

  test('errors of the policy do not reach the agent', async () => {
    const faults = [{ kind: 'server_error' as const, turn: 2, times: 2 }];
    const trial = await rollOut(await machine(), { server: { faults } });
    await trial.attempt();
    const stored = await trial.stored();
    expect(await trial.result()).toMatchObject({ resolved: true, turns: 3 });
    expect([written(stored, 'refusals'), written(stored, 'answers').length]).toEqual([[], 3]);
    expect(trial.server.stats().faults).toEqual({ server_error: 2 });
  });

  test('a policy that fails ends the agent at once, and the attempt fails as that', async () => {
    const faults = [{ kind: 'unauthorized' as const, turn: 2 }];
    const trial = await rollOut(await machine(), { words: ['stubborn'], server: { faults } });
    await trial.attempt();
    expect(await trial.ends()).toEqual(['policy_unauthorized']);
    expect(await trial.result()).toMatchObject({ outcome: 'failed', reward: null });
    expect(await trial.left()).toBe(0);
  });

  test.each<[string, Parameters<typeof rollOut>[1], string, RegExp]>([
    ['ends before it asks', { words: ['silent'] }, 'agent_start', /exit code 3 before .* no settings/],
    ['has no bundle here', { flags: { agents_dir: '/nowhere' } }, 'no_agent', /swefarm agents install toy/],
    [
      'needs a program that the image lacks',
      { card: { needs: { libc: 'none', commands: ['bash', 'no-such'] } } },
      ...(['agent_unfit', /lacks no-such/] as const),
    ],
    [
      'needs a newer C library',
      { card: { needs: { libc: 'glibc 9.99' } } },
      ...(['agent_unfit', /glibc 9\.99/] as const),
    ],
  ])('an agent that %s fails its attempt with the reason', async (_what, given, failure, why) => {
    const trial = await rollOut(await machine(), given);
    await trial.attempt();
    expect(await trial.ends()).toEqual([failure]);
    const [entry] = await trial.farm.journal.read(trial.id);
    expect(entry?.end?.cause).toMatch(why);
  });

  test('a request without the tools is a side line, which is not trained on', async () => {
    const trial = await rollOut(await machine(), { words: ['title'] });
    await trial.attempt();
    const result = await trial.result();
    expect(result).toMatchObject({ resolved: true, turns: 4 });
    expect(result?.agent).toMatchObject({ lines: 2, masked: { side: 1 } });
    expect((await trial.stored())?.trajectory?.lines?.map(({ kind }) => kind)).toEqual(['side']);
  });

  test('the agent of the farm and the toy have the same turns and the same ids', async () => {
    const texts = {
      system: 'You solve issues.',
      instance: '{{problem_statement}}',
      observation: '{{output}}',
    };
    const prompts = { action: 'tool' as const, prompt_overrides: { ...texts, task: texts.instance } };
    const policy = { sampling: { seed: 7 } };
    const ours = await rollOut(await machine(), { mini: true, agent: prompts, policy });
    await ours.attempt();
    const own = (await ours.stored())?.trajectory;
    const card = {
      files: { '{home}/tools.json': JSON.stringify(own?.tools) },
      env: { TOY_TOOLS: '{home}/tools.json' },
    };
    const theirs = await rollOut(await machine(), { card, agent: prompts, policy });
    await theirs.attempt();
    const other = await theirs.stored();
    const idsIn = (turns: Turn[] = []) =>
      [...cumulative(turns.map(({ tokens }) => tokens))].map((turn) => [
        Array.from(turn.prompt),
        Array.from(turn.generation),
      ]);
    expect((await theirs.result())?.failure).toBeNull();
    expect(idsIn(other?.trajectory?.turns)).toEqual(idsIn(own?.turns));
    expect(other?.trajectory?.turns.map(({ asked }) => asked)).toEqual(own?.turns.map(({ asked }) => asked));
    expect([own?.turns.length, other?.patch]).toEqual([3, (await ours.stored())?.patch]);
  });

  test('a cancelled rollout ends without grace', async () => {
    const trial = await rollOut(await machine(), { turns: [call('sleep 300')] });
    const running = trial.attempt();
    await until(async () => answered(trial.server) > 0, { what: 'an answer' });
    const cancelled = performance.now();
    trial.node.active.abort(trial.id, 'cancelled', 'cancelled');
    await running;
    expect(performance.now() - cancelled).toBeLessThan(9_000);
    expect(await trial.result()).toMatchObject({ outcome: 'cancelled' });
    expect(await trial.left()).toBe(0);
  });
});
