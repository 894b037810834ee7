/** Reads manifests and blobs of one repository (OCI distribution specification 1.1). */
import type { Readable } from 'node:stream';
import { exponentialBackoff, retry } from '@swefarm/shared';
import type { Credentials } from '../images/credentials.ts';
import { sha256 } from '../images/manifest.ts';
import { authorize, oneOf } from './authorization.ts';
import type { Answer, Connections } from './connection.ts';
import { answerError, DigestError, isPassing } from './errors.ts';
import type { Reference } from './reference.ts';

const MANIFEST_TYPES = [
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
  'application/vnd.docker.distribution.manifest.v2+json',
];
/** Most bytes of a manifest or configuration. The specification lets registries limit manifests to 4 MiB. */
const MOST_DOCUMENT_BYTES = 16 * 1024 ** 2;
const TRIES = 4;

export type Repository = ReturnType<typeof openRepository>;

/** `offset`: the first byte of `body`, which is 0 if the registry ignores ranges. */
export type BlobPart = { offset: number; body: Readable };

/** Opens the repository of a reference. All calls throw RegistryError, DigestError, errors of the connection, and the signal's reason. */
export function openRepository(
  connections: Connections,
  { registry, repository }: Reference,
  credentials: Credentials | null,
  signal: AbortSignal,
) {
  let authorization: string | null = null;

  const ask = async (path: string, headers: Record<string, string>): Promise<Answer> => {
    const origin = await connections.origin(registry, signal);
    const url = `${origin}/v2/${repository}/${path}`;
    const send = () =>
      connections.send(
        url,
        { headers: { ...headers, ...(authorization === null ? {} : { authorization }) } },
        signal,
      );
    const answer = await send();
    const challenge = oneOf(answer.headers['www-authenticate']);
    if (answer.statusCode !== 401 || challenge === undefined) return answer;
    // Tokens expire during long pulls, so each challenge is answered.
    const found = await authorize(connections, challenge, { origin, repository, credentials }, signal);
    if (found === null) return answer;
    await answer.body.dump();
    authorization = found;
    return await send();
  };

  const require = async (path: string, headers: Record<string, string>): Promise<Answer> => {
    const answer = await ask(path, headers);
    if (answer.statusCode === 200 || answer.statusCode === 206) return answer;
    const text = await answer.body.text();
    const doing = `${path.replace('/', ' ')} of ${repository} at ${registry}`;
    throw answerError(doing, answer.statusCode, oneOf(answer.headers['retry-after']), text);
  };

  const document = async (
    path: string,
    digest: string | null,
    accept: readonly string[],
  ): Promise<Buffer> => {
    const read = async (): Promise<Buffer> => {
      const { body } = await require(path, accept.length > 0 ? { accept: accept.join(', ') } : {});
      return await readDocument(body, path);
    };
    const bytes = await retry(read, {
      isPassing,
      tries: TRIES,
      pauseMs: exponentialBackoff(500, 5_000),
      signal,
    });
    const found = sha256(bytes);
    if (digest !== null && found !== digest)
      throw new DigestError(`${path} of ${repository} at ${registry} has digest ${found}`);
    return bytes;
  };

  return {
    /** Returns the bytes of a manifest or index, checked if `reference` is a digest. */
    manifest: (reference: string): Promise<Buffer> =>
      document(`manifests/${reference}`, reference.startsWith('sha256:') ? reference : null, MANIFEST_TYPES),
    /** Returns the bytes of a small blob, checked. */
    small: (digest: string): Promise<Buffer> => document(`blobs/${digest}`, digest, []),
    /** Opens a blob from a byte on, without retries and without a check. */
    async blob(digest: string, offset: number): Promise<BlobPart> {
      const headers = offset > 0 ? { range: `bytes=${offset}-` } : {};
      const { statusCode, headers: answered, body } = await require(`blobs/${digest}`, headers);
      const [, start] = /^bytes (\d+)-/.exec(oneOf(answered['content-range']) ?? '') ?? [];
      return { offset: statusCode === 206 ? Number(start ?? offset) : 0, body };
    },
  };
}

async function readDocument(body: Readable, path: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MOST_DOCUMENT_BYTES) throw new Error(`${path} has more than ${MOST_DOCUMENT_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
