/**
 * Tests faults of a policy with each real agent: no agent sees a fault, and each turn is sampled once. Also tests answers that agents handle
 * differently, and the ends that only the endpoint can decide. One rollout has a different fault in each turn.
 */
import { freePort } from '@swefarm/shared';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type BuiltExamples, buildExamples } from '../../src/examples/build.ts';
import type { FaultRuleInput } from '../../src/policy/faults.ts';
import { conversation, type TurnInput } from '../../src/policy/script.ts';
import { temporaryFolder } from '../temporaryfolder.ts';
import { type AgentRun, expectEachAnswerOnce, type PlayedRun, playRuns } from './realagentruns.ts';
import { installAgents, linesOf, solvingTurns } from './realagents.ts';
import { EXAMPLE_ID, withoutInstall } from './scripts.ts';

/** Name of a fault, what it is, and how many further requests it needs. */
const FAULTS: [string, FaultRuleInput, number][] = [
  ['429', { kind: 'rate_limited', times: 2 }, 2],
  ['429+after', { kind: 'rate_limited', times: 1, retry_after: 2 }, 1],
  ['500', { kind: 'server_error', times: 2 }, 2],
  ['503', { kind: 'unavailable', times: 2 }, 2],
  ['503+after', { kind: 'unavailable', times: 1, retry_after: 1 }, 1],
  ['closed', { kind: 'reset', times: 1 }, 1],
  ['stump', { kind: 'cut', times: 1 }, 1],
  ['slow', { kind: 'slow_body', times: 1, ms: 3000 }, 0],
  ['no JSON', { kind: 'garbage', times: 1 }, 1],
  ['no choice', { kind: 'no_choices', times: 1 }, 1],
  ['aborted', { kind: 'aborted', times: 1 }, 1],
  ['silence', { kind: 'silence', times: 1 }, 1],
];
const FURTHER = FAULTS.reduce((sum, [, , requests]) => sum + requests, 0);
/** Number of answers that arrive in part (cut, aborted). The policy samples the rest later. */
const PARTS = 2;
/** Longer than the time of an answer on a busy machine. */
const SILENCE_SECONDS = '25';
const PATIENT = ['--request-timeout', SILENCE_SECONDS, '--patience', '120', '--step-limit', '40'];
const REFUSED_TURN = 3;

let built: BuiltExamples;
let agents: string[] = [];
let missing: string[] = [];
const rows: string[] = [];

beforeAll(async () => {
  ({ installed: agents, missing } = await installAgents());
  built = await buildExamples({ ids: [EXAMPLE_ID], for: 'both', out: temporaryFolder('faults') });
}, 1_800_000);
afterAll(() => {
  if (rows.length > 0) process.stdout.write(`\n${rows.join('\n')}\n`);
});

const steps = (count: number): TurnInput[] =>
  Array.from({ length: count }, (_, index) => ({ command: `echo step ${index}`, thought: `Step ${index}.` }));
/** The turns of a solution without the last turn. */
const solved = (): TurnInput[] => solvingTurns().filter(({ submit }) => submit === undefined);
const script = (...turns: TurnInput[]): AgentRun['policy'] => ({ script: conversation(turns) });

async function play(runs: [string, AgentRun][]): Promise<Map<string, PlayedRun>> {
  const runtime = built.files.docker === null ? 'rootfs' : 'docker';
  return await playRuns(await withoutInstall(built.files.default), runtime, new Map(runs));
}

const playEach = (of: (agent: string) => Omit<AgentRun, 'agent'>): Promise<Map<string, PlayedRun>> =>
  play(agents.map((agent) => [agent, { ...of(agent), agent }]));

test('no agent sees a fault of its policy, and each turn is sampled once', async ({ skip }) => {
  if (agents.length === 0) skip(missing.join('; '));
  const faults = FAULTS.map(([, fault], turn) => ({ ...fault, turn }));
  const policy = script(...steps(FAULTS.length), ...solvingTurns());
  rows.push(`fault: ${FAULTS.map(([name]) => name).join(', ')}`);
  for (const [agent, run] of await playEach(() => ({ policy, faults, flags: PATIENT }))) {
    const { line, seen, policy: server } = run;
    expect(line, agent).toMatchObject({
      ...{ outcome: 'judged', resolved: true, attempt: 1, exit_status: 'submitted' },
      agent: { exit_code: 0, lines: 1, masked: {}, whole: 0, repeated: 0, repaired: 0, refused: 0 },
    });
    const strikes = Object.values(server.stats().faults).reduce((sum, count) => sum + count, 0);
    expect([strikes, seen?.requests], agent).toEqual([FURTHER + 1, line.turns + FURTHER]);
    expectEachAnswerOnce(run, agent, PARTS);
    rows.push(`${agent}: ${strikes} strikes, ${line.turns} turns, ${seen?.requests} requests to the policy`);
  }
});

test('an answer that agents treat differently costs no token and no verdict', async ({ skip }) => {
  if (agents.length === 0) skip(missing.join('; '));
  const turns: TurnInput[] = [
    ...solved(),
    { commands: ['echo one', 'echo two'], thought: 'Both.' },
    { tool_calls: [{ name: 'no_such_tool', arguments: {} }] },
    { command: 'echo after' },
    // No parser reads this call, so the answer is a text, which is the final answer for many agents.
    { command: 'echo broken', tool_json: 'invalid' },
    { command: 'echo after both' },
    { command: 'echo a long command that is cut in its middle', finish_reason: 'length' },
    { submit: true },
  ];
  // An agent that drops an answer asks with the same history again.
  const policy = { script: { conversations: [{ number: 'requests' as const, variants: [turns] }] } };
  for (const [agent, run] of await playEach(() => ({ policy, flags: ['--step-limit', '40'] }))) {
    const { line } = run;
    expect(line, agent).toMatchObject({ outcome: 'judged', resolved: true, attempt: 1 });
    expect(line.exit_status, agent).toMatch(/^(submitted|agent_error)$/);
    expectEachAnswerOnce(run, agent);
    const masked = JSON.stringify(line.agent?.masked);
    const kinds = run.trajectory ? linesOf(run.trajectory).map(({ kind }) => kind) : [];
    rows.push(`${agent}: odd answers: ${line.exit_status}, lines ${kinds}, masked ${masked}`);
  }
});

test('a policy that refuses the key ends every agent, without a verdict', async ({ skip }) => {
  if (agents.length === 0) skip(missing.join('; '));
  const faults: FaultRuleInput[] = [{ kind: 'unauthorized', turn: REFUSED_TURN }];
  const policy = script(...solved(), ...steps(30), { submit: true });
  for (const [agent, { line, seen }] of await playEach(() => ({ policy, faults, flags: PATIENT }))) {
    expect(line, agent).toMatchObject({
      ...{ outcome: 'failed', reward: null, attempt: 1 },
      failure: { class: 'policy_unauthorized' },
    });
    expect(seen, agent).toMatchObject({ requests: REFUSED_TURN + 1, answered: REFUSED_TURN });
  }
});

test('a full context ends every agent that does not condense, and its tree is graded', async ({ skip }) => {
  if (agents.length === 0) skip(missing.join('; '));
  const turn = solved().length + 1;
  const faults: FaultRuleInput[] = [{ kind: 'context_overflow', turn }];
  const policy = script(...solved(), ...steps(30), { submit: true });
  for (const [agent, run] of await playEach(() => ({ policy, faults, flags: PATIENT }))) {
    const { line, seen } = run;
    expect(line, agent).toMatchObject({ outcome: 'judged', resolved: true, exit_status: 'context_limit' });
    expect([line.turns, seen?.answered], agent).toEqual([turn, turn]);
    expectEachAnswerOnce(run, agent);
  }
});

test('the endpoint ends an agent that repeats one command for ever', async ({ skip }) => {
  if (agents.length === 0) skip(missing.join('; '));
  const limit = 15;
  const policy = script(...solved(), { command: 'ls', thought: 'Again.' });
  for (const [agent, run] of await playEach(() => ({ policy, flags: ['--step-limit', String(limit)] }))) {
    const { line } = run;
    expect(line, agent).toMatchObject({ outcome: 'judged', resolved: true });
    expect(line.turns, agent).toBeLessThanOrEqual(limit);
    expectEachAnswerOnce(run, agent);
    rows.push(`${agent}: one command for ever: ${line.exit_status} after ${line.turns} turns`);
  }
});

const FLOOD = 1000;
/** Asks the endpoint with the key of another rollout, on an unknown path, and other hosts; `port`: of the policy. */
const attack = (port: number): string => `python - <<'PY'
import collections, socket, urllib.error, urllib.request
listening = [line.split()[1] for line in open('/proc/net/tcp').readlines()[1:] if line.split()[3] == '0A']
[endpoint] = {int(address.split(':')[1], 16) for address in listening}
seen = collections.Counter()
def ask(path):
    body = b'{"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}'
    head = {'authorization': 'Bearer k0123456789abcdef', 'content-type': 'application/json'}
    try:
        urllib.request.urlopen(urllib.request.Request('http://127.0.0.1:%d/v1%s' % (endpoint, path), body, head))
        seen['answered'] += 1
    except urllib.error.HTTPError as error:
        seen[str(error.code)] += 1
for path in ['/messages', '/chat/completions', '/responses'] + ['/messages'] * ${FLOOD} + ['/secrets']:
    ask(path)
for host in ['127.0.0.1', '172.17.0.1', '1.1.1.1']:
    try:
        socket.create_connection((host, ${port}), 5)
        seen['reached'] += 1
    except OSError:
        seen['closed'] += 1
print('SEEN', sorted(seen.items()))
PY`;

test("another rollout's key, another host and a flood get nothing, and the rollout resolves", async ({
  skip,
}) => {
  const [agent] = agents;
  if (agent === undefined) return skip(missing.join('; '));
  const port = await freePort();
  const turns = [{ command: attack(port), thought: 'Attack.' }, ...solvingTurns()];
  const policy = { port, script: conversation(turns) };
  const { line, seen, trajectory } = (await play([[agent, { agent, policy }]])).get(agent) ?? {};
  expect(line).toMatchObject({ outcome: 'judged', resolved: true, agent: { lines: 1, masked: {} } });
  const observed = trajectory?.messages.map(({ content }) => content).join();
  expect(observed).toContain(`SEEN [('401', ${FLOOD + 3}), ('404', 1), ('closed', 3)]`);
  expect([seen?.requests, line?.agent?.refused]).toEqual([line?.turns, FLOOD + 4]);
  rows.push(`${agent}: ${FLOOD + 4} foreign requests refused`);
});
