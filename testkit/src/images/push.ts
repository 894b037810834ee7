/** Pushes images to a registry over its HTTP API, without an engine. */
import { createHash } from 'node:crypto';

export type PushedLayer = {
  /** The uncompressed tar. */
  tar: Buffer;
  /** The bytes to store, such as the compressed tar; absent: the tar itself. */
  blob?: Buffer;
  compression?: 'gzip' | 'zstd';
};

export type Push = {
  /** `http://127.0.0.1:PORT` */
  origin: string;
  repository: string;
  tag: string;
  layers: readonly PushedLayer[];
  /** `config` of the image. */
  config?: object;
  /** Architecture in the configuration and the index; default: of this machine. */
  architecture?: string;
  /** True: the tag names an index, whose first entry is for another machine. */
  index?: boolean;
  headers?: Record<string, string>;
};

const OCI = 'application/vnd.oci.image';
const digestOf = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

/** Returns the digest of the pushed manifest. Throws for an answer that is no success. */
export async function pushImage(push: Push): Promise<string> {
  const { tag, layers, config = {}, index = false } = push;
  const architecture = push.architecture ?? (process.arch === 'x64' ? 'amd64' : process.arch);
  const diff_ids = layers.map(({ tar }) => digestOf(tar));
  const rootfs = { type: 'layers', diff_ids };
  const configuration = Buffer.from(JSON.stringify({ architecture, os: 'linux', config, rootfs }));
  const described = [];
  for (const { tar, blob = tar, compression } of layers) {
    const mediaType = `${OCI}.layer.v1.tar${compression ? `+${compression}` : ''}`;
    described.push({ mediaType, ...(await putBlob(push, blob)) });
  }
  const manifest = Buffer.from(
    JSON.stringify({
      ...{ schemaVersion: 2, mediaType: `${OCI}.manifest.v1+json` },
      config: { mediaType: `${OCI}.config.v1+json`, ...(await putBlob(push, configuration)) },
      layers: described,
    }),
  );
  const digest = digestOf(manifest);
  await putManifest(push, index ? digest : tag, `${OCI}.manifest.v1+json`, manifest);
  if (!index) return digest;
  const other = await pushImage({
    ...push,
    architecture: 'riscv64',
    index: false,
    tag: `${tag}-other`,
    config: { Env: ['OTHER=1'] },
  });
  const entry = (found: string, size: number, machine: string) => ({
    ...{ mediaType: `${OCI}.manifest.v1+json`, digest: found, size },
    platform: { os: 'linux', architecture: machine },
  });
  const list = {
    ...{ schemaVersion: 2, mediaType: `${OCI}.index.v1+json` },
    manifests: [entry(other, manifest.length, 'riscv64'), entry(digest, manifest.length, architecture)],
  };
  await putManifest(push, tag, `${OCI}.index.v1+json`, Buffer.from(JSON.stringify(list)));
  return digest;
}

async function putBlob(
  { origin, repository, headers }: Push,
  bytes: Buffer,
): Promise<{ digest: string; size: number }> {
  const digest = digestOf(bytes);
  const begun = await send(`${origin}/v2/${repository}/blobs/uploads/`, 'POST', headers);
  const at = new URL(begun.headers.get('location') ?? '', origin);
  at.searchParams.set('digest', digest);
  // A proxy in front of the registry must see the upload too.
  await send(
    `${origin}${at.pathname}${at.search}`,
    'PUT',
    { ...headers, 'content-type': 'application/octet-stream' },
    bytes,
  );
  return { digest, size: bytes.length };
}

async function putManifest(
  { origin, repository, headers }: Push,
  reference: string,
  type: string,
  bytes: Buffer,
): Promise<void> {
  const url = `${origin}/v2/${repository}/manifests/${reference}`;
  await send(url, 'PUT', { ...headers, 'content-type': type }, bytes);
}

async function send(
  url: string,
  method: string,
  headers: Record<string, string> = {},
  body?: Buffer,
): Promise<Response> {
  const answer = await fetch(url, { method, headers, ...(body ? { body: new Uint8Array(body) } : {}) });
  if (!answer.ok) throw new Error(`${method} ${url}: ${answer.status} ${await answer.text()}`);
  return answer;
}
