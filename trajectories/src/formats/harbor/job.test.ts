import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { aResult } from '../../../test/result.ts';
import { exportedRollout } from '../../export/rollout.ts';
import { outputLine } from '../../output/line.ts';
import { harborJob } from './job.ts';

test('a second rollout with the same trial name is refused', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'swefarm-harborjob-'));
  const path = join(folder, 'job');
  const request = {
    path,
    form: 'job',
    lines: 'all',
    samples: 1,
    maskOverlong: false,
    fingerprint: 'x',
  } as const;
  const line = outputLine(aResult({ rollout_id: 'r1.a__b-1.0' }), { patch: '', report: null });
  const parts = { content: null, sample: 0, instance: null, model: null, exportedBy: '1' };
  try {
    await using writer = await harborJob.open(request);
    await writer.write(exportedRollout({ line, ...parts }));
    await expect(writer.write(exportedRollout({ line, ...parts }))).rejects.toThrow(
      /another rollout has the trial name/,
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
