/** Changes the turns of a stored trajectory: their policy versions, or ids that make a prompt not contiguous. */
import type { Trajectory, Turn } from '@swefarm/shared';

/** Number of earlier ids that a prompt rewrites. */
const REWRITTEN = 3;

/** Returns the turn with the given versions. If start and end differ, the answer gets two spans of about equal length. */
export function withVersions(turn: Turn, { start, end }: Turn['policy_version']): Turn {
  const tokens = turn.tokens?.generation.length ?? 0;
  const before = Math.floor(tokens / 2);
  const parts =
    start === end
      ? [{ version: start, tokens }]
      : [
          { version: start, tokens: before },
          { version: end, tokens: tokens - before },
        ];
  const spans = parts.filter((part) => part.tokens > 0);
  return { ...turn, policy_version: { start, end }, ...(tokens > 0 ? { spans } : {}) };
}

/** Returns the versions at start and end of a turn when each of `versions` sampled an equal share of `count` turns. */
export function shareOf(versions: readonly string[], turn: number, count: number) {
  const at = (position: number): string | null =>
    versions[Math.min(versions.length - 1, Math.floor((position * versions.length) / Math.max(1, count)))] ??
    null;
  // The weights change in the middle of an answer.
  return { start: at(Math.max(0, turn - 1)), end: at(turn) };
}

/** Returns the trajectory with a prompt in the middle that rewrites earlier ids. Returns it unchanged if fewer than two turns have ids. */
export function notContiguous(trajectory: Trajectory): Trajectory {
  const withIds = trajectory.turns.filter(
    ({ tokens }) => tokens !== null && tokens.prefix_length > REWRITTEN,
  );
  const changed = withIds[Math.floor(withIds.length / 2)];
  if (!changed?.tokens) return trajectory;
  const { prefix_length, prompt_suffix, ...tokens } = changed.tokens;
  // The prompt's own ids are in the vocabulary. In reverse order they almost never equal the ids that they replace.
  const rewritten = prompt_suffix.subarray(0, REWRITTEN).toReversed();
  const suffix = Int32Array.from([...rewritten, ...prompt_suffix]);
  const turn: Turn = {
    ...changed,
    tokens: { ...tokens, prefix_length: prefix_length - rewritten.length, prompt_suffix: suffix },
  };
  const turns = trajectory.turns.map((one) => (one === changed ? turn : one));
  return { ...trajectory, turns, contiguous: false };
}
