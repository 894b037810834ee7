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
import type { Message, Trajectory, Turn } from '../records/trajectory.ts';
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

/** `replay`: how the attempt that wrote the record began, if it replayed earlier turns or tried to. */
export type TurnRecord = { replay: Replay | null; turns: RecordedTurn[] };

type Head = { format: 'swefarm-turns-1'; replay: Replay | null };

const compress = promisify(gzip);
const decompress = promisify(gunzip);

/** Fast compression: a turn costs the event loop nothing, and a thread of the pool about a millisecond. */
const LEVEL = 1;

/** Returns the bytes to append for these turns. `head`: the record begins with them; absent: they follow earlier ones. */
export async function encodeTurns(
  turns: readonly RecordedTurn[],
  head?: Pick<TurnRecord, 'replay'>,
): Promise<Buffer> {
  return await compress(textOfTurns(turns, head), { level: LEVEL });
}

/** Returns the text of {@link encodeTurns} without compression. */
export function textOfTurns(turns: readonly RecordedTurn[], head?: Pick<TurnRecord, 'replay'>): Buffer {
  const first: Head[] = head ? [{ format: 'swefarm-turns-1', replay: head.replay }] : [];
  return Buffer.concat([...first, ...turns].flatMap((line) => [...inPieces(line), Buffer.from('\n')]));
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
  const turns = lines.map((line) => JSON.parse(line) as RecordedTurn);
  decodeTokens(turns.map(({ turn }) => turn));
  return { replay, turns };
}

/** Returns turn `index` of a trajectory as it is recorded. @param at seconds on the agent's clock when the answer arrived */
export function recordedTurn({ messages, turns }: Trajectory, index: number, at: number): RecordedTurn {
  const found = turns[index];
  if (!found) throw new RangeError(`there is no turn ${index}`);
  const { message, commands: _, ...turn } = found;
  const before = turns[index - 1];
  return {
    ...(before ? {} : { start: hashOfMessages(messages.slice(0, message)) }),
    observed: before ? messages.slice(before.message + 1, message) : [],
    exit_codes: (before?.commands ?? []).map((command) => command.exit_code),
    answer: messages[message] as Message,
    turn,
    at,
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
