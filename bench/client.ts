/** Measures what the Python client adds to a training step: a real gateway answers with stored rollouts whose agents only wait. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { encodeArtifact } from '@swefarm/shared';
import { bareFacts, bareResult, madeTrajectory, run, startCommand, words } from '@swefarm/testkit';
import { encodeLine, type OutputLine, outputLine } from '@swefarm/trajectories';
import { processTimes } from './account.ts';
import { table } from './print.ts';
import { rounded } from './statistics.ts';

const ROOT = resolve(import.meta.dirname, '..');
const TOKEN = 'bench';
/** Tokens that a turn of a made trajectory adds. */
const TURN_TOKENS = 270;

/** `delay`: median seconds of a rollout. */
export type ClientSize = { groups: number; size: number; tokens: number; delay: number };

type Step = {
  rollouts: number;
  tokens: number;
  step_seconds: number;
  group_late_seconds: number;
  last_late_seconds: number;
  cpu_seconds: number;
  memory_mb: number;
};
export type ClientPart = { size: ClientSize; rounds: (Step & { gateway_cpu_seconds: number })[] };

export async function measureClient(size: ClientSize, reps: number): Promise<ClientPart> {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'swefarm-bench-client-'));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const stored = await storeRollouts(folder, size);
  const faults = join(folder, 'faults.yaml');
  await writeFile(faults, JSON.stringify({ concurrency: 4096, delay: { median: size.delay, sigma: 0.5 } }));
  const args = words`serve --host 127.0.0.1 --port 0 --state-dir ${join(folder, 'state')}
    --replay ${stored} --replay-any --faults ${faults}`;
  const gateway = stack.use(startCommand('swefarm', args, { SWEFARM_GATEWAY_TOKEN: TOKEN }));
  await gateway.until(/"url"/);
  const { url } = JSON.parse(gateway.stdout().split('\n')[0] ?? '') as { url: string };
  const env = {
    ...process.env,
    PYTHONPATH: join(ROOT, 'producer/python'),
    SWEFARM_GATEWAY_URL: url,
    SWEFARM_GATEWAY_TOKEN: TOKEN,
  };
  const step = [join(import.meta.dirname, 'client/step.py'), String(size.groups), String(size.size)];
  const rounds: ClientPart['rounds'] = [];
  for (let round = 0; round < reps; round++) {
    const before = processTimes(gateway.pid);
    const { stdout } = await run('python3', step, { env });
    const after = processTimes(gateway.pid);
    const gateway_cpu_seconds = rounded(after.main + after.threads - before.main - before.threads, 1);
    rounds.push({ ...(JSON.parse(stdout) as Step), gateway_cpu_seconds });
  }
  return { size, rounds };
}

/** Writes an output of one group with artifacts. Returns its path. */
async function storeRollouts(folder: string, { size, tokens }: ClientSize): Promise<string> {
  const lines: OutputLine[] = [];
  for (let at = 0; at < size; at++) {
    const facts = bareFacts({ resolved: at % 2 === 0 });
    const result = bareResult({ rollout_index: at, resolved: facts.resolved, facts });
    const { rollout_id, instance_id, attempt } = result;
    const trajectory = madeTrajectory(Math.round(tokens / TURN_TOKENS), at);
    const content = { format: 'swefarm-artifact-1' as const, rollout_id, attempt, instance_id, trajectory };
    const rest = { patch: '', report: null, test_log: null, eval_script: null, failure_detail: null };
    const artifact_file = join(folder, `${at}.json.gz`);
    await writeFile(artifact_file, await encodeArtifact({ ...content, ...rest }));
    lines.push(outputLine(result, { patch: '', report: null, artifact_file }));
  }
  const output = join(folder, 'stored.jsonl');
  await writeFile(output, lines.map((line) => `${encodeLine(line)}\n`).join(''));
  return output;
}

export const printClient = ({ rounds }: ClientPart): string =>
  [
    'A training step through the Python client; late: seconds from the last result of a group to the group in the trainer',
    table([
      ['rollouts', 'tokens', 'step s', 'last group late s', '% of the step', 'median late s'].concat([
        'client CPU s',
        'client MB',
        'gateway CPU s',
      ]),
      ...rounds.map((round) => [
        ...[
          round.rollouts,
          round.tokens,
          rounded(round.step_seconds, 1),
          rounded(round.last_late_seconds, 2),
        ],
        rounded((100 * round.last_late_seconds) / round.step_seconds, 1),
        ...[rounded(round.group_late_seconds, 2), rounded(round.cpu_seconds, 1)],
        ...[Math.round(round.memory_mb), round.gateway_cpu_seconds],
      ]),
    ]),
  ].join('\n');
