/** A registry on the loopback that implements the few calls of OCI distribution that an engine needs to pull, with faults. */
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import { listen } from './listen.ts';

export type RegistryFault = 'limited' | 'cut';
export type TestRegistry = AsyncDisposable & {
  /** `127.0.0.1:PORT`; engines accept the loopback without TLS. */
  readonly address: string;
  /** Requests for manifests by tag or digest, including failed ones. */
  readonly manifests: number;
  /** Makes the next `times` requests fail: for a manifest (`limited`: 429 with Retry-After 1) or for a blob (`cut`: the first half). */
  fault(kind: RegistryFault, times: number): void;
  /** Adds an image of one layer (an uncompressed tar), which is pulled as `address/name:latest`. */
  add(name: string, layer: Buffer): void;
};

const MANIFEST = 'application/vnd.docker.distribution.manifest.v2+json';
const digestOf = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

/** @param login `user:password` that every request must bring; null: none */
export async function startRegistry(login: string | null = null): Promise<TestRegistry> {
  const blobs = new Map<string, Buffer>();
  const tags = new Map<string, Buffer>();
  const faults = { limited: 0, cut: 0 };
  let manifests = 0;
  const put = (bytes: Buffer): { digest: string; size: number } => {
    blobs.set(digestOf(bytes), bytes);
    return { digest: digestOf(bytes), size: bytes.length };
  };
  const server = createServer((request, response) => {
    const answer = (status: number, body: Buffer, headers: Record<string, string> = {}): void => {
      response.writeHead(status, { 'content-length': String(body.length), ...headers });
      response.end(request.method === 'HEAD' ? undefined : body);
    };
    const refuse = (status: number, code: string, message: string, headers = {}): void =>
      answer(status, Buffer.from(JSON.stringify({ errors: [{ code, message }] })), headers);
    const [, name = '', kind, reference = ''] =
      /^\/v2\/(.+)\/(manifests|blobs)\/([^/]+)$/.exec(request.url ?? '') ?? [];
    const wanted = login && `Basic ${Buffer.from(login).toString('base64')}`;
    if (wanted && request.headers.authorization !== wanted)
      return refuse(401, 'UNAUTHORIZED', 'who are you', { 'www-authenticate': 'Basic realm="test"' });
    if (request.url === '/v2/') return answer(200, Buffer.from('{}'));
    if (kind === 'manifests') {
      manifests += 1;
      if (faults.limited > 0) {
        faults.limited -= 1;
        return refuse(429, 'TOOMANYREQUESTS', 'too many requests, Retry-After: 1', { 'retry-after': '1' });
      }
      const found = tags.get(`${name}:${reference}`) ?? blobs.get(reference);
      if (!found) return refuse(404, 'MANIFEST_UNKNOWN', 'manifest unknown');
      return answer(200, found, { 'content-type': MANIFEST, 'docker-content-digest': digestOf(found) });
    }
    const blob = blobs.get(reference);
    if (!blob) return refuse(404, 'BLOB_UNKNOWN', 'blob unknown');
    if (faults.cut > 0 && request.method === 'GET') {
      faults.cut -= 1;
      response.writeHead(200, { 'content-length': String(blob.length) });
      response.write(blob.subarray(0, blob.length / 2), () => response.destroy());
      return;
    }
    answer(200, blob, { 'content-type': 'application/octet-stream' });
  });
  return {
    address: `127.0.0.1:${await listen(server)}`,
    get manifests() {
      return manifests;
    },
    fault(kind, times) {
      faults[kind] = times;
    },
    add(name, layer) {
      const architecture = process.arch === 'x64' ? 'amd64' : process.arch;
      const rootfs = { type: 'layers', diff_ids: [digestOf(layer)] };
      const config = Buffer.from(JSON.stringify({ architecture, os: 'linux', config: {}, rootfs }));
      const manifest = {
        schemaVersion: 2,
        mediaType: MANIFEST,
        config: { mediaType: 'application/vnd.docker.container.image.v1+json', ...put(config) },
        layers: [{ mediaType: 'application/vnd.docker.image.rootfs.diff.tar', ...put(layer) }],
      };
      const bytes = Buffer.from(JSON.stringify(manifest));
      put(bytes);
      tags.set(`${name}:latest`, bytes);
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
