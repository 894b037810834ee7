/** Reports and artifacts of rollouts with the same patch, for samepatchlease.redis.test.ts. */
import { encodeArtifact as encode, type Report } from '@swefarm/shared';

export { openScene } from './maintenance/farm.ts';

export const sharedReport = (change: Partial<Report>): Report => ({
  ...{ format: 'swefarm-report-1', instance_id: 'a__b.c-1', patch_state: 'applied', evaluation: 'completed' },
  ...{ resolved: true, tests_status: null, status_map: null, applied_with: 'git apply', test_exit_code: 0 },
  ...{ grader: 'g', parser: null, image_digest: null, trust: { level: 'clean', reasons: [] } },
  ...change,
});

export const encodeArtifact = async (rollout_id: string, report: Report, patch: string): Promise<Buffer> =>
  await encode({
    ...{ format: 'swefarm-artifact-1', rollout_id, attempt: 1, instance_id: report.instance_id },
    ...{ trajectory: null, patch, report, test_log: Buffer.from('log'), eval_script: null },
    failure_detail: null,
  });
