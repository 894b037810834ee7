/**
 * The turn record of an attempt: what the policy answered and observed so far, which a worker appends while the agent works, so that
 * another worker can continue the rollout. The blob is one gzip member for each append, and its text has one JSON line for each turn.
 */
import { constants } from 'node:buffer';
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gunzip, gzip, constants as zlib } from 'node:zlib';
import { errorMessage, SwefarmError } from '../failures/errors.ts';
import type { Replay } from '../records/result.ts';
import type { Message, Trajectory, Turn, TurnTokens } from '../records/trajectory.ts';
import { decodeTokens } from './codec.ts';
import { inPieces } from './pieces.ts';

export type RecordedTurn = {
  /** SHA-256 of the messages before the first answer; only in the first turn. */
  start?: string;
  /** The messages between the answer before and this one; empty in the first turn. */
  observed: Message[];
  /** Exit codes of the commands of the turn before. */
  exit_codes: (number | null)[];
  answer: Message;
  turn: Omit<Turn, 'message' | 'commands'>;
  /** Seconds on the agent's clock when the answer arrived. */
  at: number;
};

/** What the agent saw before an answer. */
type Seen = Pick<RecordedTurn, 'start' | 'observed' | 'exit_codes'>;

/** The received part of an answer that was incomplete when the part was recorded. */
export type BegunAnswer = Seen & {
  /** SHA-256 of the prompt's ids. */
  prompt: string;
  text: string;
  ids: Int32Array;
  log_probs: Float32Array;
  /** Versions of the policy that sampled the ids, in order. */
  versions: { start: string | null; end: string | null; tokens: number }[];
  /** Seconds that the endpoint took to sample the part. */
  seconds: number;
};

/** A line with the tokens since the last line. `prefix_length` tokens and the text up to `text_from` (characters) are already stored. */
type BegunLine = Partial<Seen> &
  Pick<BegunAnswer, 'text' | 'versions' | 'seconds'> & {
    prompt?: string;
    text_from: number;
    tokens: TurnTokens;
  };

/**
 * `replay`: how the attempt that wrote the record replayed earlier turns; null: it had none to replay. `begun`: the part of the answer after
 * the last turn; absent: no part.
 */
export type TurnRecord = { replay: Replay | null; turns: RecordedTurn[]; begun?: BegunAnswer };

type Head = { format: 'swefarm-turns-1'; replay: Replay | null };

const compress = promisify(gzip);
const decompress = promisify(gunzip);

/** Fast compression: a turn costs the event loop nothing, and a thread of the pool about a millisecond. */
const LEVEL = 1;

/** Returns the bytes to append for these turns. `head`: the record begins with them; absent: they follow earlier ones. */
export async function encodeTurns(
  turns: readonly RecordedTurn[],
  head?: Pick<TurnRecord, 'replay'>,
  begun?: BegunLine | null,
): Promise<Buffer> {
  return await compress(textOfTurns(turns, head, begun), { level: LEVEL });
}

/** Returns the text of {@link encodeTurns} without compression. */
export function textOfTurns(
  turns: readonly RecordedTurn[],
  head?: Pick<TurnRecord, 'replay'>,
  begun?: BegunLine | null,
): Buffer {
  const first: Head[] = head ? [{ format: 'swefarm-turns-1', replay: head.replay }] : [];
  const last = begun ? [{ begun }] : [];
  const lines = [...first, ...turns, ...last];
  return Buffer.concat(lines.flatMap((line) => [...inPieces(line), Buffer.from('\n')]));
}

/**
 * Returns the line that records a part of an answer; null if there is nothing new. A part without tokens withdraws the stored part.
 * @param stored the part that is already in the record, or null
 */
export function lineOfBegun(begun: BegunAnswer, stored: BegunAnswer | null): BegunLine | null {
  const stands = stored !== null && stored.ids.length > 0;
  // An answer that is sampled again after a damaged stream replaces the stored part, even if both samples begin with the same ids.
  const continues =
    stands &&
    stored.prompt === begun.prompt &&
    begun.text.startsWith(stored.text) &&
    stored.ids.every((id, at) => id === begun.ids[at] && stored.log_probs[at] === begun.log_probs[at]);
  const { ids, log_probs, text, versions, seconds, ...first } = begun;
  const from = continues ? stored.ids.length : 0;
  if (ids.length === from && continues === stands) return null;
  const text_from = continues ? stored.text.length : 0;
  const tokens = {
    ...{ prefix_length: from, prompt_suffix: new Int32Array(0) },
    ...{ generation: ids.slice(from), log_probs: log_probs.slice(from) },
  };
  return { ...(continues ? {} : first), text: text.slice(text_from), text_from, tokens, versions, seconds };
}

/**
 * Reads a record. The last turn is left out if its bytes are incomplete, because the worker died during the append.
 *
 * @throws SwefarmError `bad_artifact`, or `artifact_version` for the format of another version
 */
export async function decodeTurns(blob: Uint8Array): Promise<TurnRecord> {
  try {
    const options = { finishFlush: zlib.Z_SYNC_FLUSH, maxOutputLength: constants.MAX_STRING_LENGTH };
    return parseTurns((await decompress(blob, options)).toString('utf8'));
  } catch (error) {
    if (error instanceof SwefarmError) throw error;
    throw new SwefarmError('bad_artifact', `unreadable turn record: ${errorMessage(error)}`, {
      cause: error,
    });
  }
}

/** Parses the text of a record. Throws as {@link decodeTurns}. */
export function parseTurns(text: string): TurnRecord {
  // Text behind the last newline is an incomplete line.
  const [head = '', ...lines] = text
    .slice(0, text.lastIndexOf('\n') + 1)
    .split('\n')
    .slice(0, -1);
  const { format, replay = null } = JSON.parse(head) as Partial<Head>;
  if (format !== 'swefarm-turns-1')
    throw new SwefarmError('artifact_version', `expected format swefarm-turns-1, found ${String(format)}`);
  const turns: RecordedTurn[] = [];
  let begun: BegunAnswer | null = null;
  for (const line of lines) {
    const parsed = JSON.parse(line) as RecordedTurn | { begun: BegunLine };
    if ('begun' in parsed) begun = joined(begun, parsed.begun);
    else {
      turns.push(parsed);
      begun = null;
    }
  }
  decodeTokens(turns.map(({ turn }) => turn));
  return { replay, turns, ...(begun ? { begun } : {}) };
}

function joined(before: BegunAnswer | null, line: BegunLine): BegunAnswer | null {
  decodeTokens([line]);
  const { tokens, text, text_from, ...others } = line;
  const { prefix_length: from, generation, log_probs } = tokens;
  if (from > (before?.ids.length ?? 0) || !log_probs) return null;
  if (from + generation.length === 0) return null;
  const seen = { observed: [], exit_codes: [], prompt: '', ...(from > 0 ? before : {}) };
  const ids = new Int32Array(from + generation.length);
  const logProbs = new Float32Array(ids.length);
  if (before) {
    ids.set(before.ids.subarray(0, from));
    logProbs.set(before.log_probs.subarray(0, from));
  }
  ids.set(generation, from);
  logProbs.set(log_probs, from);
  const whole = (before?.text ?? '').slice(0, text_from) + text;
  return { ...seen, ...others, text: whole, ids, log_probs: logProbs };
}

/** Returns turn `index` of a trajectory as it is recorded. @param at seconds on the agent's clock when the answer arrived */
export function recordedTurn({ messages, turns }: Trajectory, index: number, at: number): RecordedTurn {
  const found = turns[index];
  if (!found) throw new RangeError(`there is no turn ${index}`);
  const { message, commands: _, ...turn } = found;
  return { ...seenBefore({ messages, turns }, index), answer: messages[message] as Message, turn, at };
}

/** Returns what the agent saw before turn `index`. The turn may still lack its answer. */
export function seenBefore({ messages, turns }: Pick<Trajectory, 'messages' | 'turns'>, index: number): Seen {
  const message = turns[index]?.message ?? messages.length;
  const before = turns[index - 1];
  return {
    ...(before ? {} : { start: hashOfMessages(messages.slice(0, message)) }),
    observed: before ? messages.slice(before.message + 1, message) : [],
    exit_codes: (before?.commands ?? []).map((command) => command.exit_code),
  };
}

/** Returns the first `count` turns of a stored trajectory. The agent's clock is the sum of the times of answers and commands. */
export function recordedTurns(trajectory: Trajectory, count: number): RecordedTurn[] {
  let at = 0;
  return trajectory.turns.slice(0, count).map((turn, index) => {
    at += turn.model_seconds;
    const recorded = recordedTurn(trajectory, index, at);
    at += turn.commands.reduce((sum, command) => sum + command.seconds, 0);
    return recorded;
  });
}

export const hashOfMessages = (messages: readonly Message[]): string =>
  createHash('sha256').update(JSON.stringify(messages)).digest('hex');
