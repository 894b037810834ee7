/** An artifact as bytes: gzip of JSON, typed arrays as base64 of their little-endian bytes. */
import { constants } from 'node:buffer';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { createGzip, gunzip } from 'node:zlib';
import { errorMessage, SwefarmError } from '../failures/errors.ts';
import type { Report } from '../records/report.ts';
import type { RewardFacts, Seconds } from '../records/result.ts';
import type { Trajectory } from '../records/trajectory.ts';
import { createSemaphore } from '../waiting/semaphore.ts';
import { compactLog, logText } from './compactlog.ts';
import { inPieces } from './pieces.ts';

export type ArtifactContent = {
  format: 'swefarm-artifact-1';
  rollout_id: string;
  attempt: number;
  /** The nonce of the attempt's claim; absent in imported artifacts. */
  claim?: string;
  /** Of the software that wrote it. */
  software_version?: string;
  instance_id: string;
  trajectory: Trajectory | null;
  patch: string | null;
  report: Report | null;
  test_log: string | null;
  eval_script: string | null;
  /** What the failure looked like in full (stack, engine's answer); null when there was none. */
  failure_detail: string | null;
  /** Only in work that the next attempt is to evaluate: what it needs beside trajectory and patch. */
  kept?: { facts: RewardFacts; seconds: Seconds };
};

const decompress = promisify(gunzip);

const DTYPES = { int8: Int8Array, int32: Int32Array, float32: Float32Array } as const;
type Encoded = { dtype: keyof typeof DTYPES; base64: string };

/** The log as text, or as the bytes that came. */
export type ArtifactInput = Omit<ArtifactContent, 'test_log'> & { test_log: string | Uint8Array | null };

/**
 * Piece by piece, level 6 on zlib's own threads: the event loop is never held for longer than one piece takes, and neither the
 * JSON nor its bytes are ever there as a whole. What would be too long for any reader is written without its test log, and if need be without
 * the statuses of tests. Throws SwefarmError `artifact_too_large` when that is still too long.
 */
export async function encodeArtifact(content: ArtifactInput): Promise<Buffer> {
  const compact = { ...content, test_log: await compactLog(content.test_log) };
  const blob = (await compressed(compact)) ?? (await compressed({ ...compact, test_log: null }));
  if (blob) return blob;
  const report = content.report && { ...content.report, status_map: null };
  const least = await compressed({ ...compact, test_log: null, report });
  if (least) return least;
  throw new SwefarmError('artifact_too_large', `${content.rollout_id}: no reader could hold its trajectory`);
}

/** Null when the JSON is longer than a string can be. */
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

/** Throws SwefarmError `bad_artifact` for what is no artifact, and `artifact_version` for one in a form that another version writes. */
export async function decodeArtifact(blob: Uint8Array): Promise<ArtifactContent> {
  const decode = () => decodeOne(blob);
  return toldLength(blob) > LARGE ? await largeOnes.run(decode) : await decode();
}

/** While it is decoded, a large artifact takes several times its length in memory: a process decodes one of them at a time. */
const LARGE = 64 * 1024 ** 2;
const largeOnes = createSemaphore(1);

async function decodeOne(blob: Uint8Array): Promise<ArtifactContent> {
  let content: unknown;
  try {
    content = JSON.parse(await unpacked(blob));
  } catch (error) {
    throw new SwefarmError('bad_artifact', `the artifact cannot be read: ${errorMessage(error)}`, {
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
  decodeTokens(artifact.trajectory);
  return artifact;
}

/** Larger ones grow piece by piece: a damaged blob may tell any length. */
const MOST_AT_ONCE = 64 * 1024 ** 2;

/**
 * Into one buffer of the length that gzip's last four bytes tell, and given back at once: pieces and their copy are memory outside of the
 * heap, for which V8 collects the whole heap again and again.
 */
async function unpacked(blob: Uint8Array): Promise<string> {
  // A longer one could not become a string: it is refused before it fills the memory.
  const maxOutputLength = constants.MAX_STRING_LENGTH;
  const chunkSize = Math.min(toldLength(blob), MOST_AT_ONCE) + SPARE;
  const bytes = await decompress(blob, { chunkSize, maxOutputLength });
  const text = bytes.toString('utf8');
  // Small ones lie in a pool that others share.
  if (bytes.byteOffset === 0 && bytes.buffer.byteLength > Buffer.poolSize) bytes.buffer.transfer(0);
  return text;
}

/** The decoded length by gzip's last four bytes. */
const toldLength = (blob: Uint8Array): number =>
  blob.length < 4 ? 0 : Buffer.from(blob.buffer, blob.byteOffset, blob.length).readUInt32LE(blob.length - 4);

/** A buffer that is filled to its end makes zlib ask for another. */
const SPARE = 1024;

/** Only turns hold packed numbers; a function that JSON.parse calls for every value takes several times as long. */
function decodeTokens(trajectory: Trajectory | null): void {
  for (const { tokens } of trajectory?.turns ?? []) {
    if (!tokens) continue;
    decodeFields(tokens);
    if (tokens.routed_experts) decodeFields(tokens.routed_experts);
  }
}

function decodeFields(fields: Record<string, unknown>): void {
  for (const [key, value] of Object.entries(fields)) if (isEncoded(value)) fields[key] = decodeValue(value);
}

function decodeValue(value: Encoded): unknown {
  // Memory of its own: pooled buffers need not be aligned.
  const bytes = new ArrayBuffer(Buffer.byteLength(value.base64, 'base64'));
  Buffer.from(bytes).write(value.base64, 'base64');
  return new DTYPES[value.dtype](bytes);
}

/** Exactly these two keys: a message that merely mentions them in text is a string, and other objects have more. */
function isEncoded(value: unknown): value is Encoded {
  if (typeof value !== 'object' || value === null || Object.keys(value).length !== 2) return false;
  const { dtype, base64 } = value as Partial<Record<string, unknown>>;
  return typeof dtype === 'string' && dtype in DTYPES && typeof base64 === 'string';
}
