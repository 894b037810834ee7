/** Stores rollouts for tests of exports: an output file, and artifacts in a folder beside it. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { testFolder } from '@swefarm/runs/test/farm.ts';
import {
  type AgentOutput,
  type ArtifactContent,
  type CollectedArtifact,
  encodeArtifact,
  type Message,
  type Result,
  type Trajectory,
} from '@swefarm/shared';
import { encodeLine, type OutputLine, outputLine } from '@swefarm/trajectories';
import { aReport, aResult } from '@swefarm/trajectories/test/result.ts';
import { run } from './cli.ts';

export type StoredRollout = {
  over?: Partial<Result>;
  line?: Partial<OutputLine> & { tag?: string };
  patch?: string | null;
  /** Null: no artifact. */
  trajectory?: Trajectory | null;
  outputs?: AgentOutput[];
  collected?: CollectedArtifact[];
};

export const aPatch = (text: string): string =>
  `diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+x = ${text}\n`;

const call = (id: string, name: string, args: object) => ({
  id,
  type: 'function' as const,
  function: { name, arguments: JSON.stringify(args) },
});

/** Makes a trajectory with two commands and a submit as tool calls. `thought` distinguishes trajectories. */
export function toolTrajectory(thought = 'Look around.', tokens = 100): Trajectory {
  const messages: Message[] = [
    { role: 'system', content: 'You fix issues.' },
    { role: 'user', content: 'Fix x.' },
    { role: 'assistant', content: thought, tool_calls: [call('c1', 'bash', { command: 'ls' })] },
    { role: 'tool', tool_call_id: 'c1', content: '<returncode>0</returncode>\n<output>\na.py\n</output>' },
    {
      role: 'assistant',
      content: 'Change it.',
      reasoning_content: 'x must be 2',
      tool_calls: [call('c2', 'bash', { command: "sed -i 's/1/2/' a.py" })],
    },
    { role: 'tool', tool_call_id: 'c2', content: '<returncode>0</returncode>\n<output>\n\n</output>' },
    { role: 'assistant', content: null, tool_calls: [call('c3', 'submit_solution', {})] },
  ];
  const turn = (message: number, command: string | null, at: number) => ({
    message,
    finish_reason: 'tool_calls',
    model_seconds: 1.5,
    usage: { prompt_tokens: tokens + at * 20, completion_tokens: 10 },
    policy_version: { start: '7', end: '7' },
    tokens: null,
    commands: command === null ? [] : [{ command, exit_code: 0, seconds: 0.5, output_bytes: 4, note: null }],
  });
  return {
    format: 'swefarm-trajectory-1',
    token_mode: 'text',
    model: 'scripted-7b',
    endpoint: 'http://policy:8000/v1',
    tools: [
      {
        type: 'function',
        function: {
          name: 'bash',
          description: 'runs a command',
          parameters: { type: 'object', properties: { command: { type: 'string' } } },
        },
      },
    ],
    messages,
    turns: [turn(2, 'ls', 0), turn(4, "sed -i 's/1/2/' a.py", 1), turn(6, null, 2)],
    exit_status: 'submitted',
  };
}

export const contentOf = (
  over: Partial<Result>,
  trajectory: Trajectory | null,
  patch: string | null,
): ArtifactContent => ({
  format: 'swefarm-artifact-1',
  rollout_id: over.rollout_id ?? 'r1.a__b-1.0',
  attempt: 1,
  software_version: '0.1.0+test',
  instance_id: over.instance_id ?? 'a__b-1',
  trajectory,
  patch,
  report: aReport({ instance_id: over.instance_id ?? 'a__b-1', resolved: over.resolved ?? true }),
  test_log: 'PASSED t',
  eval_script: null,
  failure_detail: null,
});

/** Writes the rollouts and returns the path of the output. The default instance is `a__b-1`; the index is the position in the list. */
export async function storeRollouts(folder: string, rollouts: readonly StoredRollout[]): Promise<string> {
  const artifacts = join(folder, 'artifacts');
  await mkdir(artifacts, { recursive: true });
  const lines: string[] = [];
  for (const [at, rollout] of rollouts.entries()) {
    const { over = {}, line = {}, patch = aPatch('2'), trajectory, outputs, collected } = rollout;
    const instance_id = over.instance_id ?? 'a__b-1';
    const result = aResult({ rollout_id: `r1.${instance_id}.${at}`, rollout_index: at, ...over });
    const made = contentOf(result, trajectory === undefined ? toolTrajectory() : trajectory, patch);
    const content = { ...made, ...(outputs ? { outputs } : {}), ...(collected ? { collected } : {}) };
    const artifact_file = join(artifacts, `${result.rollout_id}.json.gz`);
    if (trajectory !== null) await writeFile(artifact_file, await encodeArtifact(content));
    const parts = { patch, report: content.report, ...(trajectory === null ? {} : { artifact_file }) };
    lines.push(encodeLine({ ...outputLine(result, parts), ...line }));
  }
  const path = join(folder, 'results.jsonl');
  await writeFile(path, `${lines.join('\n')}\n`);
  return path;
}

/** Stores rollouts in a new folder. `exported` exports them to a file or folder beside them. */
export async function storedRollouts(rollouts: readonly StoredRollout[]) {
  const folder = await testFolder();
  const results = await storeRollouts(folder, rollouts);
  const at = (name: string): string => join(folder, name);
  const exported = async (format: string, name: string, ...more: string[]) => {
    const path = at(name);
    return { path, ...(await run(['export', results, '--format', format, '--out', path, ...more])) };
  };
  return { folder, results, at, exported };
}
