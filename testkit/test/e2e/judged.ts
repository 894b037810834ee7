/** Runs `swefarm rollout` with an agent that needs no model, two rollouts at a time, and returns the lines. */
import { type Account, runCommand, words } from '../../src/launchers/commands.ts';
import { readLines } from '../../src/lines.ts';
import type { Line } from './scene.ts';

/** Throws an Error with the command's messages unless every rollout was judged. @param env names the state and scratch folders */
export async function judgedLines(
  agent: 'golden' | 'noop',
  on: { dataset: string; runtime: string; output: string },
  env: Record<string, string>,
  as?: Account,
): Promise<Line[]> {
  const { dataset, runtime, output } = on;
  const args = words`rollout --dataset ${dataset} --agent ${agent} --runtime ${runtime} --concurrency 2
    --output ${output}`;
  const ended = await runCommand('swefarm', args, env, as);
  if (ended.code !== 0) throw new Error(ended.stderr);
  return await readLines(output);
}
