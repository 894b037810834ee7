/**
 * An artifact as bytes: gzip of JSON, typed arrays as base64 of their little-endian bytes. Imports nothing but zlib,
 * so that it also runs in a worker thread.
 */
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { errorMessage, SwefarmError } from '../errors.ts';
import type { Report } from '../report.ts';
import type { RewardFacts, Seconds } from '../result.ts';
import type { Trajectory } from '../trajectory.ts';

export type ArtifactContent = {
  format: 'swefarm-artifact-1';
  rollout_id: string;
  attempt: number;
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

const compress = promisify(gzip);
const decompress = promisify(gunzip);

const DTYPES = { int32: Int32Array, float32: Float32Array } as const;
type Encoded = { dtype: keyof typeof DTYPES; base64: string };

/** Level 6 on zlib's own threads: the event loop only serialises. */
export async function encodeArtifact(content: ArtifactContent): Promise<Buffer> {
  return await compress(Buffer.from(JSON.stringify(content, encodeValue), 'utf8'));
}

/** Throws SwefarmError `bad_artifact` for what is not an artifact of this format. */
export async function decodeArtifact(blob: Uint8Array): Promise<ArtifactContent> {
  let content: unknown;
  try {
    content = JSON.parse((await decompress(blob)).toString('utf8'), decodeValue);
  } catch (error) {
    throw new SwefarmError('bad_artifact', `the artifact cannot be read: ${errorMessage(error)}`, {
      cause: error,
    });
  }
  const format = (content as { format?: unknown } | null)?.format;
  if (format !== 'swefarm-artifact-1') {
    throw new SwefarmError('bad_artifact', `expected format swefarm-artifact-1, found ${String(format)}`);
  }
  return content as ArtifactContent;
}

/** Node runs on little-endian machines only where we ship (x64, arm64), so the memory is the wire form. */
function encodeValue(_key: string, value: unknown): unknown {
  if (!(value instanceof Int32Array) && !(value instanceof Float32Array)) return value;
  const base64 = Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64');
  return { dtype: value instanceof Int32Array ? 'int32' : 'float32', base64 } satisfies Encoded;
}

function decodeValue(_key: string, value: unknown): unknown {
  if (!isEncoded(value)) return value;
  // A copy of its own: pooled buffers need not be aligned.
  const bytes = Uint8Array.from(Buffer.from(value.base64, 'base64'));
  return new DTYPES[value.dtype](bytes.buffer);
}

/** Exactly these two keys: a message that merely mentions them in text is a string, and other objects have more. */
function isEncoded(value: unknown): value is Encoded {
  if (typeof value !== 'object' || value === null || Object.keys(value).length !== 2) return false;
  const { dtype, base64 } = value as Partial<Record<string, unknown>>;
  return typeof dtype === 'string' && dtype in DTYPES && typeof base64 === 'string';
}
