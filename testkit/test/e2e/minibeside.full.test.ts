/** Compares mini-swe-agent on the recording endpoint with our agent `mini`: one instance, one script, equal prompts. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { buildExamples } from '../../src/examples/build.ts';
import { startRedis } from '../../src/launchers/redis.ts';
import { conversation, type TurnInput } from '../../src/policy/script.ts';
import { startScriptedPolicy } from '../../src/policy/server.ts';
import { temporaryFolder } from '../temporaryfolder.ts';
import {
  AGENTS_DIR,
  digestsOf,
  installAgents,
  type ShownTrajectory,
  sentDigests,
  solvingTurns,
} from './realagents.ts';
import { type Line, openScene } from './scene.ts';
import { EXAMPLE_ID, withoutInstall } from './scripts.ts';

const SYSTEM =
  'You work on one repository through a Linux shell. Answer with a thought and then one command, in one block:\n\n```bash\ncommand\n```';
const TASK = (statement: string): string =>
  `Solve this issue in /testbed:\n\n<issue>\n${statement}\n</issue>\n\nThe last command is: echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT`;
/** The prompts of `mini`: those of the run, and its own observation and elision. */
const OURS = { system: SYSTEM, instance: TASK('{{problem_statement}}'), task: '{{problem_statement}}' };
/** The configuration of mini-swe-agent that gives the same texts. */
const THEIRS = {
  agent: { system_template: SYSTEM, instance_template: TASK('{{task}}') },
  model: {
    action_regex: '```bash\\s*\\n(.*?)\\n```',
    observation_template: `{%- set text = output.output[:-1] if output.output.endswith("\\n") else output.output -%}
<returncode>{{ output.returncode }}</returncode>
<output>
{% if output.output | length > 10000 -%}
{{ output.output[:5000] }}
[... {{ output.output | length - 10000 }} characters left out here; print a smaller part to see them ...]
{{ text[text | length - (5000 - (output.output | length - text | length)):] }}
{%- else -%}
{{ text }}
{%- endif %}
</output>`,
    model_kwargs: { drop_params: true },
  },
};

/** Turns that resolve the example, with cases that agents handle differently: no output, an error, long output, an answer without a thought. */
function turns(): TurnInput[] {
  const [look, change] = solvingTurns();
  if (!look || !change) throw new Error('examples.yaml has no turns for parse');
  const quiet = "python -c \"import parse; assert parse.Parser('{a-b}').named_fields == ['a_b']\"";
  const commands = ['ls /missing', 'seq 1 3000', 'git status --short; git diff', quiet];
  return [look, change, ...commands.map((command) => ({ command })), { submit: true }];
}

type Played = { line: Line; trajectory: ShownTrajectory; patch: string; sent: string[] };

/** Plays `mini` and mini-swe-agent on one worker. @param model class of the model of mini-swe-agent */
async function play(action: 'fenced' | 'tool', model: string): Promise<[Played, Played]> {
  const built = await buildExamples({ ids: [EXAMPLE_ID], for: 'rootfs', out: temporaryFolder('mini') });
  await using redis = await startRedis();
  await using policy = await startScriptedPolicy({ script: conversation(turns()), record: true });
  const scene = openScene({
    ...{ SWEFARM_REDIS_URL: redis.url, SWEFARM_RUNTIME: 'rootfs', SWEFARM_AGENTS_DIR: AGENTS_DIR },
    SWEFARM_CONCURRENCY: '2',
  });
  const write = async (name: string, text: string): Promise<string> => {
    await writeFile(join(scene.folder, name), text);
    return join(scene.folder, name);
  };
  const config = { ...THEIRS, model: { ...THEIRS.model, model_class: model } };
  const theirs = ['--agent-file', `config=${await write('own.yaml', JSON.stringify(config))}`];
  const ours = ['--action', action];
  const prompts: string[] = [];
  for (const [name, text] of Object.entries(OURS))
    prompts.push('--prompt', `${name}=${await write(name, text)}`);
  const dataset = await withoutInstall(built.files.rootfs);
  const submit = (agent: string, flags: string[]): Promise<string> =>
    scene.submit`--dataset ${dataset} --agent ${agent} ${flags} ${prompts} --policy-url ${policy.url} --model scripted
      --token-mode token-in --require-tokens --step-limit 20`;
  const runs = [await submit('mini', ours), await submit('mini-swe-agent', theirs)];
  const worker = await scene.worker``;
  onTestFinished(() => worker.kill('SIGKILL'));
  const played = [];
  for (const run of runs) {
    const { code, stderr, lines } = await scene.collect(run);
    expect(code, stderr).toBe(0);
    const line = lines[0] as Line;
    const shown = await scene.show(join(scene.folder, `${run}.jsonl#${line.instance_id}.0`));
    const { trajectory, patch } = shown as unknown as Pick<Played, 'trajectory' | 'patch'>;
    played.push({ line, trajectory, patch, sent: sentDigests(policy, line) });
  }
  expect(await worker.stop()).toBe(0);
  return played as [Played, Played];
}

const skipWithout = async (skip: (why: string) => void): Promise<void> => {
  const { missing } = await installAgents(['mini-swe-agent']);
  if (missing.length > 0) skip(missing.join('; '));
};

function expectResolvedAlike(ours: Played, theirs: Played): void {
  for (const { line, trajectory, sent } of [ours, theirs]) {
    expect(line).toMatchObject({ outcome: 'judged', resolved: true, reward: 1, exit_status: 'submitted' });
    expect(line.turns).toBe(7);
    expect(digestsOf(trajectory)).toEqual(sent);
  }
  expect(theirs.line.agent).toMatchObject({ lines: 1, masked: {}, whole: 0, repeated: 0, repaired: 0 });
  expect(theirs.patch).toBe(ours.patch);
}

test('with commands in texts, mini-swe-agent and mini exchange equal token ids', async ({ skip }) => {
  await skipWithout(skip);
  const [ours, theirs] = await play('fenced', 'litellm_textbased');
  expectResolvedAlike(ours, theirs);
  expect(theirs.trajectory.messages).toEqual(ours.trajectory.messages);
  expect(theirs.sent).toEqual(ours.sent);
  expect(theirs.line.tokens).toEqual(ours.line.tokens);
});

test('with tool calls, mini-swe-agent and mini differ in tools and submit', async ({ skip }) => {
  await skipWithout(skip);
  const [ours, theirs] = await play('tool', 'litellm');
  expectResolvedAlike(ours, theirs);
  expect([ours, theirs].map(({ trajectory }) => trajectory.tools?.map((tool) => tool.function.name))).toEqual(
    [['bash', 'submit_solution'], ['bash']],
  );
  const before = ({ trajectory }: Played) => trajectory.messages.slice(0, -1);
  expect(before(theirs)).toEqual(before(ours));
  // The first prompt has the tools, and the last answer submits.
  const partsOf = ({ trajectory: { turns } }: Played) =>
    turns.map(({ tokens }, at) => [
      at === 0 ? null : tokens?.prompt_suffix,
      at === turns.length - 1 ? null : tokens?.generation,
    ]);
  expect(partsOf(theirs)).toEqual(partsOf(ours));
});
