/** Reports and artifacts of rollouts with the same patch, for samepatchlease.redis.test.ts. */
import { encodeArtifact as encode, type Report } from '@swefarm/shared';
import { bareArtifact, bareReport } from '@swefarm/testkit';

export { openScene } from './maintenance/farm.ts';

export const sharedReport = (change: Partial<Report>): Report =>
  bareReport({ instance_id: 'a__b.c-1', grader: 'g', parser: null, ...change });

export const encodeArtifact = async (rollout_id: string, report: Report, patch: string): Promise<Buffer> =>
  await encode({
    ...bareArtifact({ rollout_id, instance_id: report.instance_id, patch, report }),
    test_log: Buffer.from('log'),
  });
