/** Imports an unpacked tree into a container engine as an image, over its socket. */
import { spawn } from 'node:child_process';
import { request } from 'node:http';

/** Imports `tree` as `name` (with tag) into the engine at `socketPath`, unless it is there already. */
export async function importTree(socketPath: string, tree: string, name: string): Promise<void> {
  if ((await call(socketPath, 'GET', `/images/${encodeURIComponent(name)}/json`)).status === 200) return;
  const [repo, tag = 'latest'] = name.split(':');
  const query = new URLSearchParams({ fromSrc: '-', repo: repo ?? name, tag });
  const tar = spawn('tar', ['-C', tree, '--numeric-owner', '--owner=0', '--group=0', '-cf', '-', '.'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const { status, body } = await call(socketPath, 'POST', `/images/create?${query}`, tar.stdout);
  const id = /"status":"(sha256:[0-9a-f]+|[0-9a-f]{64})/.exec(body)?.[1];
  if (status !== 200 || !id) throw new Error(`importing ${name}: ${status} ${body}`);
  // Podman 4 ignores the tag of an import.
  const tagged = await call(
    socketPath,
    'POST',
    `/images/${id}/tag?${new URLSearchParams({ repo: repo ?? name, tag })}`,
  );
  if (tagged.status !== 201) throw new Error(`tagging ${name}: ${tagged.status} ${tagged.body}`);
}

function call(
  socketPath: string,
  method: string,
  path: string,
  content?: NodeJS.ReadableStream,
): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      { socketPath, method, path, headers: content ? { 'content-type': 'application/x-tar' } : {} },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.once('error', reject);
        response.once('end', () =>
          resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString() }),
        );
      },
    );
    outgoing.once('error', reject);
    if (content) content.pipe(outgoing);
    else outgoing.end();
  });
}
