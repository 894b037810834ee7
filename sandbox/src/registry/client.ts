/** Reads manifests and blobs of one repository (OCI distribution specification 1.1). */
import type { Readable } from 'node:stream';
import { exponentialBackoff, retry } from '@swefarm/shared';
import type { Credentials } from '../images/credentials.ts';
import { sha256 } from '../images/manifest.ts';
import { authorize, oneOf } from './authorization.ts';
import type { Answer, Connections } from './connection.ts';
import { readDocument, readErrorText } from './document.ts';
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

/** `offset`: the first byte of `body`, which is 0 if the registry ignores ranges. */
export type BlobPart = { offset: number; body: Readable };

export type RepositoryOptions = {
  connections: Connections;
  reference: Pick<Reference, 'registry' | 'repository'>;
  credentials: Credentials | null;
  signal: AbortSignal;
};

/** All methods throw RegistryError, DigestError, errors of the connection, and the signal's reason. */
export class Repository {
  readonly #options: RepositoryOptions;
  #authorization: string | null = null;

  constructor(options: RepositoryOptions) {
    this.#options = options;
  }

  /** Returns the bytes of a manifest or index, checked if `reference` is a digest. */
  manifest(reference: string): Promise<Buffer> {
    const digest = reference.startsWith('sha256:') ? reference : null;
    return this.#document(`manifests/${reference}`, digest, { accept: MANIFEST_TYPES.join(', ') });
  }

  /** Returns the bytes of a small blob, checked. */
  small(digest: string): Promise<Buffer> {
    return this.#document(`blobs/${digest}`, digest, {});
  }

  /** Opens a blob from a byte on, without retries and without a check. */
  async blob(digest: string, offset: number): Promise<BlobPart> {
    const range = offset > 0 ? { range: `bytes=${offset}-` } : {};
    const { statusCode, headers, body } = await this.#get(`blobs/${digest}`, range);
    const [, start] = /^bytes (\d+)-/.exec(oneOf(headers['content-range']) ?? '') ?? [];
    return { offset: statusCode === 206 ? Number(start ?? offset) : 0, body };
  }

  async #document(path: string, digest: string | null, headers: Record<string, string>): Promise<Buffer> {
    const { reference, signal } = this.#options;
    const read = async (): Promise<Buffer> =>
      readDocument((await this.#get(path, headers)).body, MOST_DOCUMENT_BYTES, path);
    const pauseMs = exponentialBackoff(500, 5_000);
    const bytes = await retry(read, { isPassing, tries: TRIES, pauseMs, signal });
    const found = sha256(bytes);
    if (digest !== null && found !== digest)
      throw new DigestError(
        `${path} of ${reference.repository} at ${reference.registry} has digest ${found}`,
      );
    return bytes;
  }

  async #get(path: string, headers: Record<string, string>): Promise<Answer> {
    const { registry, repository } = this.#options.reference;
    const answer = await this.#authorized(path, headers);
    if (answer.statusCode === 200 || answer.statusCode === 206) return answer;
    const text = await readErrorText(answer.body);
    const doing = `${path.replace('/', ' ')} of ${repository} at ${registry}`;
    throw answerError(doing, answer.statusCode, oneOf(answer.headers['retry-after']), text);
  }

  /** Answers each challenge of the registry, because tokens expire during long pulls. Targets of redirects get no credentials. */
  async #authorized(path: string, headers: Record<string, string>): Promise<Answer> {
    const { connections, reference, credentials, signal } = this.#options;
    const { registry, repository } = reference;
    const origin = await connections.origin(registry, signal);
    const send = (): Promise<Answer> => {
      const authorization = this.#authorization === null ? {} : { authorization: this.#authorization };
      return connections.send(
        `${origin}/v2/${repository}/${path}`,
        { headers: { ...headers, ...authorization } },
        signal,
      );
    };
    const answer = await send();
    const challenge = oneOf(answer.headers['www-authenticate']);
    if (answer.statusCode !== 401 || challenge === undefined || answer.origin !== new URL(origin).origin)
      return answer;
    const found = await authorize(connections, challenge, { origin, repository, credentials }, signal);
    if (found === null) return answer;
    await answer.body.dump();
    this.#authorization = found;
    return await send();
  }
}
