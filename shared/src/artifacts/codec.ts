/** Encodes and decodes artifacts: JSON, compressed with gzip, in which typed arrays are base64 of their little-endian bytes. */
import { constants } from 'node:buffer';
import { pipeline } from 'node:stream/promises';
import { setImmediate } from 'node:timers/promises';
import { promisify } from 'node:util';
import { createGzip, gunzip } from 'node:zlib';
import { errorMessage, SwefarmError } from '../failures/errors.ts';
import { allTurns } from '../records/lines.ts';
import type { Report } from '../records/report.ts';
import type { InstalledAgent, RewardFacts, Seconds } from '../records/result.ts';
import type { Trajectory, Turn } from '../records/trajectory.ts';
import { createSemaphore } from '../waiting/semaphore.ts';
import { DTYPES, inPieces } from './pieces.ts';

export type ArtifactContent = {
  format: 'swefarm-artifact-1';
  rollout_id: string;
  attempt: number;
  /** Nonce of the attempt's claim; absent in imported artifacts. */
  claim?: string;
  software_version?: string;
  instance_id: string;
  trajectory: Trajectory | null;
  patch: string | null;
  report: Report | null;
  test_log: string | null;
  eval_script: string | null;
  /** Full description of the failure (stack, answer of the engine); null without a failure. */
  failure_detail: string | null;
  /** Facts and times that the next attempt needs; only in resumable work (a patch whose evaluation failed). */
  kept?: { facts: RewardFacts; seconds: Seconds; agent?: InstalledAgent };
  /** What an agent that comes as a program printed and wrote; absent without such an agent. */
  outputs?: AgentOutput[];
  /** Artifacts of a Harbor task, from the agent's container. */
  collected?: CollectedArtifact[];
};

/** A file or folder that was copied out of a container. `why`: reason why it, or a part of it, was not copied. */
export type CollectedArtifact = {
  source: string;
  /** Path below the folder `artifacts/` of an exported trial. */
  destination: string;
  exclude: string[];
  type: 'file' | 'directory';
  /** As in Harbor's manifest. `skipped`: another artifact has the same destination, or a destination above or below. */
  status: 'ok' | 'failed' | 'skipped';
  why?: string;
  /** `path` is relative to the folder, and empty for a single file. An entry without `content` and `link` is a folder. */
  files: { path: string; mode?: number; content?: Int8Array; link?: string }[];
};

/** `content`: text, or the bytes of a file that is no text. `bytes`: size of the file; more than `content` has if its end was left out. */
export type AgentOutput = { name: string; content: string | Int8Array; bytes: number };

const decompress = promisify(gunzip);

type Encoded = { dtype: keyof typeof DTYPES; base64: string };

/**
 * Encodes an artifact in pieces, so that the event loop is blocked only briefly. If the JSON exceeds the longest string, omits the test
 * log, then also the statuses of the tests and the outputs of the agent. @throws SwefarmError `artifact_too_large`
 */
export async function encodeArtifact(
  content: Omit<ArtifactContent, 'test_log'> & { test_log: string | Uint8Array | null },
): Promise<Buffer> {
  const compact = { ...content, test_log: await compactLog(content.test_log) };
  const blob = (await compressed(compact)) ?? (await compressed({ ...compact, test_log: null }));
  if (blob) return blob;
  const report = content.report && { ...content.report, status_map: null };
  const least = await compressed({ ...compact, test_log: null, report, outputs: undefined });
  if (least) return least;
  throw new SwefarmError(
    'artifact_too_large',
    `${content.rollout_id}: the trajectory is too long for readers`,
  );
}

/** Returns the compressed JSON; null if the JSON is longer than the longest string. */
async function compressed(content: object): Promise<Buffer | null> {
  const blob: Buffer[] = [];
  let length = 0;
  function* bounded(): Generator<Buffer> {
    for (const piece of inPieces(content)) {
      length += piece.length;
      if (length > constants.MAX_STRING_LENGTH) return;
      yield piece;
    }
  }
  await pipeline(bounded, createGzip(), async (chunks: AsyncIterable<Buffer>) => {
    for await (const chunk of chunks) blob.push(chunk);
  });
  return length > constants.MAX_STRING_LENGTH ? null : Buffer.concat(blob);
}

/** Decodes an artifact. Throws SwefarmError `bad_artifact`, or `artifact_version` for the format of another version. */
export async function decodeArtifact(blob: Uint8Array): Promise<ArtifactContent> {
  const decode = () => decodeOne(blob);
  return storedLength(blob) > LARGE ? await largeOnes.run(decode) : await decode();
}

/** Decompressed size in bytes above which a process decodes one artifact at a time: decoding needs several times as much memory. */
const LARGE = 64 * 1024 ** 2;
const largeOnes = createSemaphore(1);

async function decodeOne(blob: Uint8Array): Promise<ArtifactContent> {
  let content: unknown;
  try {
    content = JSON.parse(await unpacked(blob));
  } catch (error) {
    throw new SwefarmError('bad_artifact', `unreadable artifact: ${errorMessage(error)}`, {
      cause: error,
    });
  }
  const format = (content as { format?: unknown } | null)?.format;
  if (format !== 'swefarm-artifact-1') {
    const code = String(format).startsWith('swefarm-artifact-') ? 'artifact_version' : 'bad_artifact';
    throw new SwefarmError(code, `expected format swefarm-artifact-1, found ${String(format)}`);
  }
  const artifact = content as ArtifactContent;
  artifact.test_log = logText(artifact.test_log);
  if (artifact.trajectory) decodeTokens(allTurns(artifact.trajectory));
  for (const output of artifact.outputs ?? []) decodeFields(output);
  for (const { files } of artifact.collected ?? []) for (const file of files) decodeFields(file);
  return artifact;
}

/** Maximum size in bytes of the first buffer: a damaged blob may claim any length. */
const MOST_AT_ONCE = 64 * 1024 ** 2;

/** Decompresses into one buffer, or several of 64 MiB. Many small buffers outside the heap would make V8 collect the heap repeatedly. */
async function unpacked(blob: Uint8Array): Promise<string> {
  // An output above this length cannot become a string.
  const maxOutputLength = constants.MAX_STRING_LENGTH;
  const chunkSize = Math.min(storedLength(blob), MOST_AT_ONCE) + SPARE;
  const bytes = await decompress(blob, { chunkSize, maxOutputLength });
  const text = bytes.toString('utf8');
  // Small buffers share a pool and must not be freed.
  if (bytes.byteOffset === 0 && bytes.buffer.byteLength > Buffer.poolSize) bytes.buffer.transfer(0);
  return text;
}

/** Returns the length after decompression, from the last four bytes of the gzip data. */
const storedLength = (blob: Uint8Array): number =>
  blob.length < 4 ? 0 : Buffer.from(blob.buffer, blob.byteOffset, blob.length).readUInt32LE(blob.length - 4);

/** Spare bytes of the buffer: zlib allocates another buffer when the first is full. */
const SPARE = 1024;

/** Decodes the typed arrays, which only turns contain. A reviver of JSON.parse would take several times as long. */
export function decodeTokens(turns: readonly Pick<Turn, 'tokens'>[]): void {
  for (const { tokens } of turns) {
    if (!tokens) continue;
    decodeFields(tokens);
    if (tokens.routed_experts) decodeFields(tokens.routed_experts);
  }
}

function decodeFields(fields: Record<string, unknown>): void {
  for (const [key, value] of Object.entries(fields)) if (isEncoded(value)) fields[key] = decodeValue(value);
}

function decodeValue(value: Encoded): unknown {
  // A buffer from Node's pool may be unaligned.
  const bytes = new ArrayBuffer(Buffer.byteLength(value.base64, 'base64'));
  Buffer.from(bytes).write(value.base64, 'base64');
  return new DTYPES[value.dtype](bytes);
}

/** Returns whether a value is an encoded array: an object with the keys `dtype` and `base64` only. */
function isEncoded(value: unknown): value is Encoded {
  if (typeof value !== 'object' || value === null || Object.keys(value).length !== 2) return false;
  const { dtype, base64 } = value as Partial<Record<string, unknown>>;
  return typeof dtype === 'string' && dtype in DTYPES && typeof base64 === 'string';
}

/** Minimum length of a log that may be stored as base64. */
const SHORT = 1024 ** 2;
/** Factor by which base64 lengthens a text; JSON lengthens ordinary text less. */
const MOST_GROWTH = 4 / 3;
/** Number of bytes that are counted before other events are handled. */
const SLICE = 512 * 1024;

type PackedText = { dtype: 'utf8'; base64: string };

/**
 * Returns the log unchanged, or as base64 if base64 is shorter than JSON. JSON writes a control character as six characters, so the JSON of
 * a log with many control characters could exceed the longest string.
 */
async function compactLog(log: string | Uint8Array | null): Promise<string | Uint8Array | PackedText | null> {
  if (log === null || log.length < SHORT) return log;
  const bytes =
    typeof log === 'string' ? Buffer.from(log) : Buffer.from(log.buffer, log.byteOffset, log.length);
  if ((await lengthInJson(bytes)) <= bytes.length * MOST_GROWTH) return log;
  return { dtype: 'utf8', base64: bytes.toString('base64') };
}

/** Returns the text of a stored log. */
const logText = (stored: unknown): string | null =>
  isPacked(stored)
    ? Buffer.from(stored.base64, 'base64').toString('utf8')
    : ((stored ?? null) as string | null);

const isPacked = (stored: unknown): stored is PackedText =>
  typeof stored === 'object' && stored !== null && (stored as { dtype?: unknown }).dtype === 'utf8';

/** Length of each byte in JSON; every byte of a non-ASCII character counts as one. */
const COSTS = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte < 0x80 ? JSON.stringify(String.fromCharCode(byte)).length - 2 : 1,
);

async function lengthInJson(bytes: Uint8Array): Promise<number> {
  let length = 0;
  for (let at = 0; at < bytes.length; at += SLICE) {
    for (const byte of bytes.subarray(at, at + SLICE)) length += COSTS[byte] ?? 1;
    await setImmediate();
  }
  return length;
}
