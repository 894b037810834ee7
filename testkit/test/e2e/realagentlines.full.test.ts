/** Real agents that condense their history or start a sub-agent: each answer is in the line that the script says, exactly once. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type BuiltExamples, buildExamples } from '../../src/examples/build.ts';
import type { ScriptInput, TurnInput } from '../../src/policy/script.ts';
import { temporaryFolder } from '../temporaryfolder.ts';
import { type AgentRun, expectEachAnswerOnce, type PlayedRun, playRuns } from './realagentruns.ts';
import { installAgents, linesOf, type ShownLine, solvingTurns } from './realagents.ts';
import { EXAMPLE_ID, withoutInstall } from './scripts.ts';

let built: BuiltExamples;
let installed: string[] = [];
const rows: string[] = [];

beforeAll(async () => {
  ({ installed } = await installAgents());
  built = await buildExamples({ ids: [EXAMPLE_ID], for: 'both', out: temporaryFolder('lines') });
}, 1_800_000);
afterAll(() => {
  if (rows.length > 0) process.stdout.write(`\n${rows.join('\n')}\n`);
});

async function play(
  table: Record<string, object>,
  of: (agent: string) => Omit<AgentRun, 'agent'>,
): Promise<Map<string, PlayedRun>> {
  const runtime = built.files.docker === null ? 'rootfs' : 'docker';
  const agents = installed.filter((agent) => agent in table);
  const runs = new Map(agents.map((agent) => [agent, { ...of(agent), agent }]));
  return await playRuns(await withoutInstall(built.files.default), runtime, runs);
}

const options = (given: Record<string, unknown>): string[] =>
  Object.entries(given).flatMap(([key, value]) => ['--agent-option', `${key}=${value}`]);

const shownOf = (lines: readonly ShownLine[]): string =>
  lines
    .map(
      ({ kind, turns, from }) => `${kind} ${turns.length}${from ? ` after ${from.line}+${from.turns}` : ''}`,
    )
    .join(', ');

const rowsOf = (played: ReadonlyMap<string, PlayedRun>): string[] =>
  [...played].map(([agent, { line, trajectory }]) =>
    [agent, line.exit_status ?? line.failure?.message, trajectory && shownOf(linesOf(trajectory))].join(': '),
  );

const turnsOf = (lines: readonly ShownLine[], kind: string): number =>
  lines.filter((line) => line.kind === kind).reduce((sum, { turns }) => sum + turns.length, 0);

/** A text of about this many tokens, which differs for each number. */
const longText = (tokens: number, number: number): string =>
  `Part ${number}. ${Array.from({ length: tokens / 4 }, (_, word) => `the value ${(word * 7919 + number) % 997}`).join(' ')}`;

/** Claude Code asks for a summary again if the tags are missing. */
const SUMMARY =
  '<summary>The parser was read completely, and its search for fields has to be mended; its tests ran.</summary>';

/** For each agent: its request for a summary, its window in tokens, and tokens of an answer that fill the window in a few turns. */
const CONDENSING: Record<string, { asks: string; window: number; tokens: number; option: object }> = {
  'claude-code': {
    ...{ asks: 'Your task is to create a detailed summary', window: 64_000 },
    ...{ tokens: 6000, option: { compact: true } },
  },
  codex: {
    ...{ asks: 'CONTEXT CHECKPOINT COMPACTION', window: 32_000 },
    ...{ tokens: 3000, option: { compact: true } },
  },
  opencode: {
    ...{ asks: '/summar/i', window: 48_000 },
    ...{ tokens: 3000, option: { compact: true, output_tokens: 8000 } },
  },
  openhands: {
    ...{ asks: 'Now summarize the events', window: 48_000 },
    ...{ tokens: 4000, option: { condense: true } },
  },
};
const FILLING = 10;

test('an agent that condenses its history continues in another line', async ({ skip }) => {
  if (installed.length === 0) skip('no agent is installed');
  const filling = (tokens: number): TurnInput[] =>
    Array.from({ length: FILLING }, (_, index) => ({
      ...{ command: `echo part ${index}`, thought: longText(tokens, index) },
    }));
  const scriptFor = (agent: string): ScriptInput => {
    const { asks = '', tokens = 0 } = CONDENSING[agent] ?? {};
    const turns = [...filling(tokens), ...solvingTurns()];
    return {
      conversations: [
        { last: asks, variants: [[{ text: SUMMARY }]] },
        { number: 'requests', variants: [turns] },
      ],
    };
  };
  const played = await play(CONDENSING, (agent) => {
    const { window = 0, option = {} } = CONDENSING[agent] ?? {};
    const flags = [...options({ ...option }), '--context-limit', String(window), '--step-limit', '40'];
    return { policy: { script: scriptFor(agent) }, flags };
  });
  rows.push(...rowsOf(played));
  for (const [agent, run] of played) {
    const lines = run.trajectory ? linesOf(run.trajectory) : [];
    expect(run.line, agent).toMatchObject({ outcome: 'judged', resolved: true, exit_status: 'submitted' });
    expect(turnsOf(lines, 'summary'), agent).toBeGreaterThan(0);
    expect(turnsOf(lines, 'main'), agent).toBe(FILLING + solvingTurns().length);
    expect(run.line.agent?.masked, agent).toEqual({});
    expectEachAnswerOnce(run, agent);
  }
});

const SUBTASK = 'SUBTASK-17: create the file that the main task waits for.';
const FILE = '/tmp/subtask-is-done';

/** The call by which each agent starts a sub-agent, and the option that offers it. */
const STARTING: Record<
  string,
  { call: { name: string; arguments: Record<string, string> }; option: object }
> = {
  'claude-code': {
    call: {
      name: 'Agent',
      arguments: { prompt: SUBTASK, description: 'a part', subagent_type: 'general-purpose' },
    },
    option: { subagents: true },
  },
  codex: {
    call: { name: 'multi_agent_v1__spawn_agent', arguments: { message: SUBTASK } },
    option: { subagents: true },
  },
  opencode: {
    call: { name: 'task', arguments: { prompt: SUBTASK, description: 'a part', subagent_type: 'general' } },
    option: { subagents: 'allow' },
  },
  openhands: {
    call: { name: 'task', arguments: { prompt: SUBTASK, subagent_type: 'general-purpose' } },
    option: { subagents: true },
  },
  'qwen-code': {
    call: {
      name: 'agent',
      arguments: { prompt: SUBTASK, description: 'a part', subagent_type: 'general-purpose' },
    },
    option: { subagents: true },
  },
};

test('a sub-agent has its own line with the turns of its script', async ({ skip }) => {
  if (installed.length === 0) skip('no agent is installed');
  const sub: TurnInput[] = [{ command: `touch ${FILE}` }, { submit: 'The file exists.' }];
  const scriptFor = (agent: string): ScriptInput => {
    const { call } = STARTING[agent] ?? {};
    const waits = { command: `until [ -e ${FILE} ]; do sleep 0.2; done; echo it is there` };
    const main: TurnInput[] = [...(call ? [{ tool_calls: [call] }] : []), waits, ...solvingTurns()];
    return { conversations: [{ opening: 'SUBTASK-17', variants: [sub] }, { variants: [main] }] };
  };
  const played = await play(STARTING, (agent) => ({
    policy: { script: scriptFor(agent) },
    flags: [...options({ ...STARTING[agent]?.option }), '--step-limit', '40'],
  }));
  rows.push(...rowsOf(played));
  for (const [agent, run] of played) {
    const lines = run.trajectory ? linesOf(run.trajectory) : [];
    expect(run.line, agent).toMatchObject({ outcome: 'judged', resolved: true, exit_status: 'submitted' });
    expect(lines.map(({ kind }) => kind).toSorted(), agent).toEqual(['main', 'subagent']);
    // A sub-agent beside the main line may be ended with it.
    expect(turnsOf(lines, 'subagent'), agent).toBeGreaterThan(0);
    expect(run.line.agent?.masked, agent).toEqual({});
    expectEachAnswerOnce(run, agent);
  }
});
