/**
 * Tests ten real SWE-bench and SWE-Gym instances, if the folder with their recipes is beside the repository: gold resolves all of
 * them, an untouched tree none, and every named test has the outcome that the dataset records.
 */
import { existsSync } from 'node:fs';
import { cp } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { run } from '../../src/launchers/run.ts';
import { readLines } from '../../src/lines.ts';
import { temporaryFolder } from '../temporaryfolder.ts';
import { judgedLines } from './judged.ts';
import { openScene } from './scene.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const SOURCE = join(ROOT, '../shared/instances');

type Row = { instance_id: string; image: string; FAIL_TO_PASS: string[]; PASS_TO_PASS: string[] };

/** Time in ms that a busy machine needs to build all images. */
const BUILD_MS = 30 * 60_000;

/** Builds the images that the engine lacks, in about half a minute each on an idle machine. */
async function ensureImages(instances: readonly Row[]): Promise<void> {
  const present = (await run('docker', ['images', '--format', '{{.Repository}}:{{.Tag}}'])).stdout.split(
    '\n',
  );
  const missing = instances.filter((row) => !present.includes(row.image));
  if (missing.length === 0) return;
  const folder = temporaryFolder('instances');
  await cp(SOURCE, folder, { recursive: true });
  // git must not pack files in the background while the engine reads them.
  const git = { GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: 'gc.auto', GIT_CONFIG_VALUE_0: '0' };
  const env = { ...process.env, ...git, SWEB_CACHE: join(ROOT, '.swefarm/cache/instances') };
  const ids = missing.map((row) => row.instance_id);
  const maxBuffer = 64 * 1024 ** 2;
  await run('python3', [join(folder, 'make_instances.py'), 'image', ...ids], { env, maxBuffer });
}

if (!existsSync(SOURCE)) {
  test('ten real instances', ({ skip }) =>
    skip(
      'their recipes (../shared/instances) are not beside the repository; our own examples stand for them',
    ));
} else {
  const dataset = join(SOURCE, 'instances.jsonl');
  const instances = await readLines<Row>(dataset);
  // The images are built once, outside the timeout of a test.
  beforeAll(() => ensureImages(instances), BUILD_MS);
  describe.each(['docker', 'rootfs'] as const)('ten real instances on %s', (runtime) => {
    test.each(['golden', 'noop'] as const)('agent %s', async (agent) => {
      const scene = openScene({ SWEFARM_STATE_DIR: join(ROOT, '.swefarm/state') });
      const output = join(scene.folder, 'out.jsonl');
      const lines = await judgedLines(agent, { dataset, runtime, output }, scene.env);
      const gold = agent === 'golden';
      expect(lines.filter((line) => line.resolved).length).toBe(gold ? 10 : 0);
      expect(lines.map((line) => line.reward)).toEqual(Array(10).fill(gold ? 1 : 0));
      const clean = { level: 'clean', reasons: [] };
      expect(lines.map((line) => line.report?.trust)).toEqual(Array(10).fill(clean));
      for (const row of instances) {
        const status = (await scene.show(`${output}#${row.instance_id}.0`)).report.tests_status;
        expect(status.PASS_TO_PASS.success.toSorted(), row.instance_id).toEqual(row.PASS_TO_PASS.toSorted());
        const named = gold ? status.FAIL_TO_PASS.success : status.FAIL_TO_PASS.failure;
        expect(named.toSorted(), row.instance_id).toEqual(row.FAIL_TO_PASS.toSorted());
      }
    });
  });
}
