/** Installs the agents that come as programs, and compares the farm's record of a rollout with the answers of the scripted policy. */
import { createHash } from 'node:crypto';
import { join, resolve } from 'node:path';
import type { Message, Result, ToolDefinition } from '@swefarm/shared';
import { runCommand } from '../../src/launchers/commands.ts';
import { loadScript, type TurnInput } from '../../src/policy/script.ts';
import type { ScriptedPolicy } from '../../src/policy/server.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
/** Folder that remains between runs, because the installation of a bundle takes minutes. */
export const AGENTS_DIR = process.env.SWEFARM_TEST_AGENTS_DIR ?? join(ROOT, '.swefarm/cache/agents');
/** A checkout of SWE-agent at the revision of its lock, which is on no registry. */
const SWE_AGENT = process.env.SWEFARM_TEST_SWE_AGENT;

const ALL = [
  'claude-code',
  'codex',
  'mini-swe-agent',
  'opencode',
  'openhands',
  'qwen-code',
  'swe-agent',
  'terminus-2',
] as const;
/** SWEFARM_TEST_AGENTS selects agents by name, separated by commas. */
export const AGENTS: readonly string[] = process.env.SWEFARM_TEST_AGENTS?.split(',') ?? ALL;

/** Installs the bundles that are missing. Returns the agents that are installed, and why others are not. */
export async function installAgents(names = AGENTS): Promise<{ installed: string[]; missing: string[] }> {
  const installed: string[] = [];
  const missing: string[] = [];
  for (const name of names) {
    const source = name === 'swe-agent' && SWE_AGENT ? ['--source', SWE_AGENT] : [];
    const env = { SWEFARM_AGENTS_DIR: AGENTS_DIR };
    const { code, stderr } = await runCommand('swefarm', ['agents', 'install', name, ...source], env);
    if (code === 0) installed.push(name);
    else missing.push(`${name}: ${stderr.trim().slice(-300)}`);
  }
  return { installed, missing };
}

/** Turns that resolve the example `parse`, for any agent. */
export function solvingTurns(): TurnInput[] {
  const script = loadScript(join(ROOT, 'examples/policy/examples.yaml'));
  const [turns] = script.conversations.find(({ name }) => name?.startsWith('parse'))?.variants ?? [];
  if (!turns) throw new Error('examples.yaml has no conversation for parse');
  return turns;
}

/** A turn in JSON, whose typed arrays are objects. */
type Shown = {
  request?: { matched: string };
  tokens: { prefix_length: number; prompt_suffix: Ids; generation: Ids } | null;
};
type Ids = Readonly<Record<string, number>>;
export type ShownLine = {
  id: string;
  kind: string;
  from: { line: string; turns: number } | null;
  masked: string | null;
  turns: Shown[];
};
export type ShownTrajectory = {
  messages: Message[];
  tools?: ToolDefinition[];
  turns: Shown[];
  line?: string;
  lines?: ShownLine[];
};

/** Returns all lines of a trajectory; the trajectory itself is the first main line. */
export function linesOf({ turns, line = 'L1', lines = [] }: ShownTrajectory): ShownLine[] {
  const first = { id: line, kind: 'main', from: null, masked: null, turns };
  return [first, ...lines].sort((a, b) => Number(a.id.slice(1)) - Number(b.id.slice(1)));
}

/** Returns the SHA-256 of all ids of each answer in the trajectory, joined by commas. */
export function digestsOf(trajectory: ShownTrajectory): string[] {
  const lines = linesOf(trajectory);
  const known = new Map<string, number[][]>();
  for (const { id, from, turns } of lines) {
    const before = from ? (known.get(from.line)?.slice(0, from.turns) ?? []) : [];
    const whole = [...before];
    for (const { tokens } of turns) {
      const earlier = whole.at(-1) ?? [];
      const { prefix_length: length = 0, prompt_suffix = {}, generation = {} } = tokens ?? {};
      whole.push([
        ...earlier.slice(0, length),
        ...Object.values(prompt_suffix),
        ...Object.values(generation),
      ]);
    }
    known.set(id, whole);
  }
  return lines.flatMap(({ id, from }) => (known.get(id) ?? []).slice(from?.turns ?? 0).map(digest));
}

const digest = (ids: number[]): string => createHash('sha256').update(ids.join(',')).digest('hex');

/** Returns the digests of the answers that the policy sent in a rollout. */
export const sentDigests = (
  policy: ScriptedPolicy,
  { rollout_id: id }: Pick<Result, 'rollout_id'>,
): string[] => policy.stats().rollouts[id]?.answers?.map(({ sha256 }) => sha256 ?? '') ?? [];
