/** Archives of worker, gateway and Redis for the nodes of cluster.sh, without a registry: `node testkit/kubernetes/images.ts DIR`. */
import { join, resolve } from 'node:path';
import { ensureDocker } from '../src/launchers/docker.ts';
import { run } from '../src/launchers/run.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const PREFIX = 'swefarm.test/swefarm-';
const BASE = 'swefarm.test/redis:1';

/** Builds the images of this commit with Docker, and writes `out`/worker.tar, gateway.tar and redis.tar. */
export async function makeImages(out: string): Promise<void> {
  await ensureDocker();
  const at = { cwd: ROOT, maxBuffer: 1 << 26 };
  await run('bash', ['testkit/kubernetes/base.sh', 'docker', BASE], at);
  const given = ['--engine', 'docker', '--base', BASE, '--prefix', PREFIX, '--tag', 'ci', '--out', out];
  await run('node', ['docker/build.mjs', ...given], at);
  await run('docker', ['save', '-o', join(out, 'redis.tar'), BASE], at);
}

if (import.meta.main) await makeImages(resolve(process.argv[2] ?? 'images'));
