/** Chooses the rollouts of an export in one pass over their lines. */
import { createHash } from 'node:crypto';
import { isTruncated, successOf, type Trajectory } from '@swefarm/shared';
import { chosenLines, type LineChoice } from '../export/lines.ts';
import { type Split, splitOf } from '../formats/verl/rows.ts';
import { BranchRewards } from '../output/branches.ts';
import type { OutputLine } from '../output/line.ts';
import { Replacements } from '../output/replacements.ts';
import { partSizes, type Shares } from './recipe.ts';
import type { ResultSource } from './source.ts';

/** Orders in which an instance's rollouts are taken until `perInstance` is reached. */
export const PREFERENCES = ['first', 'most-tokens', 'shortest', 'random'] as const;
export type Preference = (typeof PREFERENCES)[number];

export type ExportFilters = {
  onlyResolved?: boolean | undefined;
  minReward?: number | undefined;
  /** Whether to export only verdicts whose trust level is `clean`. */
  trustClean?: boolean | undefined;
  /** Whether to include rollouts that failed because of infrastructure. */
  withFailed?: boolean | undefined;
  tags?: readonly string[] | undefined;
  runs?: readonly string[] | undefined;
  instances?: ReadonlySet<string> | undefined;
  /** One side of the train/val split. The split is by instance, so all rollouts of an instance are on one side. */
  split?: { side: Split; valShare: number } | undefined;
  exitStatuses?: readonly string[] | undefined;
  /** Whether to leave out rollouts that a token limit cut. */
  withoutTruncated?: boolean | undefined;
};

export type ChoiceOptions = {
  filters: ExportFilters;
  perInstance?: number | undefined;
  prefer: Preference;
  /** Seed of the orders for `random`, `balance` and `shares`. */
  seed: number;
  /** Whether to drop rollouts whose patch has the same changes as the patch of another rollout of the instance. */
  dedup?: boolean | undefined;
  /** Maximum number of tokens of a conversation, that is, of the longest exported line. */
  maxTokens?: number | undefined;
  lines: LineChoice;
  /** Whether to export equal numbers of resolved and unresolved rollouts. */
  balance?: boolean | undefined;
  /** Shares of the parts of a recipe, applied after all other rules. */
  shares?: Shares | undefined;
};

export type Choice = {
  /** Numbers of the chosen rollouts within their instances, from 0, by rollout id. */
  chosen: Map<string, number>;
  seen: number;
  dropped: Map<string, number>;
  /** Ids of the instances of the chosen rollouts. `samples` is the maximum number of chosen rollouts of one instance. */
  instances: ReadonlySet<string>;
  samples: number;
  /** Rewards of all branches that were read, including branches that the filters leave out. */
  branches: BranchRewards;
  /** Hash of the chosen rollouts and their numbers. */
  fingerprint: string;
};

type Drop = (reason: string, times?: number) => void;

type Candidate = {
  id: string;
  instance: string;
  index: number;
  resolved: boolean;
  tokens: number | null;
  turns: number;
  patch: string;
  part: number;
};

export async function chooseRollouts(
  sources: readonly ResultSource[],
  options: ChoiceOptions,
): Promise<Choice> {
  const dropped = new Map<string, number>();
  const drop: Drop = (reason, times = 1) => {
    if (times > 0) dropped.set(reason, (dropped.get(reason) ?? 0) + times);
  };
  const groups = new Map<string, Candidate[]>();
  const known = new Set<string>();
  const replacements = new Replacements();
  const branches = new BranchRewards();
  let seen = 0;
  for (const [at, source] of sources.entries()) {
    const part = options.shares?.partOf[at] ?? 0;
    for await (const line of source.lines()) {
      seen += 1;
      replacements.note(line);
      branches.note(line);
      const reason = dropReason(line, options.filters);
      if (reason !== null) drop(reason);
      else if (known.has(line.rollout_id)) drop('read before');
      else {
        known.add(line.rollout_id);
        const candidate = { ...(await candidateOf(line, source, options)), part };
        const group = groups.get(line.instance_id);
        if (isTooLong(candidate, options.maxTokens)) drop(`over ${options.maxTokens} tokens`);
        else if (group) group.push(candidate);
        else groups.set(line.instance_id, [candidate]);
      }
    }
  }
  const best = [...groups.values()].flatMap((group) => {
    const current = group.filter(({ id }) => !replacements.isOutdated(id));
    drop('run again', group.length - current.length);
    return preferred(current, options, drop);
  });
  const { balance, shares, seed } = options;
  const even = balance ? inShares(best, ({ resolved }) => Number(resolved), [1, 1], seed) : best;
  drop('beyond the balance', best.length - even.length);
  const taken = shares ? inShares(even, ({ part }) => part, shares.shares, seed) : even;
  drop('beyond their share', even.length - taken.length);
  const chosen = numbered(taken);
  const instances = new Set(taken.map(({ instance }) => instance));
  const samples = [...chosen.values()].reduce((most, sample) => Math.max(most, sample + 1), 0);
  return { chosen, seen, dropped, instances, samples, branches, fingerprint: hashOf(chosen) };
}

/** If the artifact cannot be read, tokens and patch of the rollout count as unknown. */
async function candidateOf(
  line: OutputLine,
  source: ResultSource,
  options: ChoiceOptions,
): Promise<Omit<Candidate, 'part'>> {
  const counts = options.maxTokens !== undefined || COUNTED.has(options.prefer);
  const needed = counts || (options.dedup === true && line.patch === null);
  const content = needed ? await source.artifact(line).catch(() => null) : null;
  const patch = options.dedup === true ? patchKey(line.patch ?? content?.patch ?? '') : '';
  return {
    id: line.rollout_id,
    instance: line.instance_id,
    index: line.rollout_index,
    resolved: successOf(line) === true,
    tokens: counts ? longestTokens(content?.trajectory ?? null, options.lines) : null,
    turns: line.turns,
    patch,
  };
}

/** Returns the tokens of the longest exported line; null if the tokens of a line are unknown. */
export function longestTokens(trajectory: Trajectory | null, choice: LineChoice): number | null {
  if (trajectory === null) return null;
  const lengths = chosenLines(trajectory, choice).map(sequenceTokens);
  return lengths.includes(null) ? null : Math.max(...lengths.map(Number));
}

/** Returns the tokens of the last prompt and its answer, from the endpoint's usage or the stored ids; null if both are missing. */
function sequenceTokens({ turns }: Pick<Trajectory, 'turns'>): number | null {
  const last = turns.at(-1);
  if (!last) return null;
  if (last.usage) return last.usage.prompt_tokens + last.usage.completion_tokens;
  if (!last.tokens) return null;
  const { prefix_length, prompt_suffix, generation } = last.tokens;
  return prefix_length + prompt_suffix.length + generation.length;
}

const COUNTED: ReadonlySet<Preference> = new Set(['most-tokens', 'shortest']);

/** Returns whether a rollout may exceed the limit. A rollout with an unknown number of tokens counts as too long. */
const isTooLong = ({ tokens }: Candidate, most: number | undefined): boolean =>
  most !== undefined && (tokens === null || tokens > most);

function preferred(
  group: readonly Candidate[],
  { prefer, seed, dedup, perInstance }: ChoiceOptions,
  drop: Drop,
): Candidate[] {
  const patches = new Set<string>();
  const candidates: Candidate[] = [];
  for (const candidate of group.toSorted(ORDER[prefer](seed))) {
    const again = dedup === true && candidate.patch !== '' && patches.has(candidate.patch);
    if (again) drop('with a patch that another one has');
    else if (perInstance !== undefined && candidates.length >= perInstance)
      drop(`over ${perInstance} per instance`);
    else {
      patches.add(candidate.patch);
      candidates.push(candidate);
    }
  }
  return candidates;
}

const ORDER: Readonly<Record<Preference, (seed: number) => (a: Candidate, b: Candidate) => number>> = {
  // Lines are in the order of completion, which would favour short rollouts and differ between runs.
  first: () => (a, b) => a.index - b.index,
  'most-tokens': () => (a, b) => (b.tokens ?? -1) - (a.tokens ?? -1) || b.turns - a.turns,
  shortest: () => (a, b) => (a.tokens ?? Infinity) - (b.tokens ?? Infinity) || a.turns - b.turns || 0,
  random: byHash,
};

/** Orders candidates by a hash, which depends only on the seed and the ids. */
function byHash(seed: number): (a: Candidate, b: Candidate) => number {
  const of = ({ id }: Candidate): string => createHash('sha256').update(`${seed}\0${id}`).digest('hex');
  return (a, b) => (of(a) < of(b) ? -1 : 1);
}

/** Draws as many candidates as possible so that the sizes of the parts have these shares. Keeps the order of `candidates`. */
function inShares(
  candidates: readonly Candidate[],
  partOf: (candidate: Candidate) => number,
  shares: readonly number[],
  seed: number,
): Candidate[] {
  const parts = shares.map((_, part) => candidates.filter((candidate) => partOf(candidate) === part));
  const sizes = partSizes(
    parts.map(({ length }) => length),
    shares,
  );
  const taken = new Set(parts.flatMap((part, at) => part.toSorted(byHash(seed)).slice(0, sizes[at])));
  return candidates.filter((candidate) => taken.has(candidate));
}

function numbered(candidates: readonly Candidate[]): Map<string, number> {
  const samples = new Map<string, number>();
  return new Map(
    candidates.map(({ id, instance }) => {
      const sample = samples.get(instance) ?? 0;
      samples.set(instance, sample + 1);
      return [id, sample];
    }),
  );
}

function hashOf(chosen: ReadonlyMap<string, number>): string {
  const hash = createHash('sha256');
  for (const [id, sample] of chosen) hash.update(`${id}\0${sample}\n`);
  return hash.digest('hex').slice(0, 16);
}

/** Returns the reason why a filter drops the line; null: no filter does. Dropped lines are counted by reason. */
function dropReason(line: OutputLine, filters: ExportFilters): string | null {
  const { outcome, resolved, reward, report, facts } = line;
  const { runs, tags, instances, split, onlyResolved, minReward, exitStatuses } = filters;
  if (line.dry_run) return 'of a dry run, which no model sampled';
  if (runs && !runs.includes(line.run_id)) return 'of another run';
  if (tags && !tags.includes(line.tag ?? '')) return 'of another tag';
  if (instances && !instances.has(line.instance_id)) return 'of another instance';
  if (split && splitOf(line.instance_id, split.valShare) !== split.side) return 'of the other split';
  if (outcome === 'cancelled') return 'cancelled';
  if (outcome === 'failed' && !filters.withFailed) return 'failed by infrastructure';
  if (onlyResolved && resolved !== true) return 'not resolved';
  if (onlyResolved && successOf(line) !== true) return 'resolved without a reward';
  if (minReward !== undefined && (reward === null || reward < minReward))
    return `without a reward of at least ${minReward}`;
  if (filters.trustClean && (report?.trust.level ?? facts?.trust) !== 'clean') return 'trust not clean';
  if (filters.withoutTruncated && isTruncated({ exit_status: line.exit_status, facts }))
    return 'cut by a token limit';
  if (exitStatuses && !exitStatuses.includes(line.exit_status ?? 'none')) return 'of another exit status';
  return null;
}

/**
 * Returns a hash that is equal for patches with the same changed lines in the same files, without regard to line numbers, context, blank
 * lines and repeated blanks; an empty text for a patch without changes.
 */
export function patchKey(patch: string): string {
  const files: string[] = [];
  for (const section of patch.split(/^(?=diff --git )/m)) {
    const changed = section.split('\n').flatMap(changedLine);
    if (changed.length > 0) files.push(changed.join('\n'));
  }
  if (files.length === 0) return '';
  return createHash('sha256').update(files.sort().join('\n\0')).digest('base64url');
}

/** Returns a list of the line if it names a file or is a changed line with text; an empty list for other lines. */
function changedLine(line: string): string[] {
  if (/^(\+\+\+|---) /.test(line)) return [line.replace(/\t.*$/, '').trimEnd()];
  if (/^(new file|deleted file|old mode|new mode|rename|copy|Binary)/.test(line)) return [line.trimEnd()];
  if (!/^[+-]/.test(line)) return [];
  const text = line.slice(1).trimEnd();
  return text === '' ? [] : [`${line[0]}${text.replace(/(?<=\S)\s+/g, ' ')}`];
}
