/** Exports stored rollouts as rows of NeMo Gym's collector, in the form that `collect --output-format gym` writes to X.jsonl. */
import type { Result, Trajectory } from '@swefarm/shared';
import { type ExportFormat, type ExportRequest, trajectoryOf } from '../../export/format.ts';
import type { ExportedRollout } from '../../export/rollout.ts';
import { openTextFile } from '../../export/textfile.ts';
import { rowPieces } from './answer.ts';
import { AGENT_REF } from './inputs.ts';
import { unjudgedCause } from './unjudged.ts';

export const nemoGymRows: ExportFormat = {
  description: "rows of NeMo Gym's collector, with token ids where they are known",
  forms: ['rows'],
  lines: ['all', 'main'],
  shape: 'file',
  masks: true,
  async open(request: ExportRequest) {
    const { path } = request;
    const file = await openTextFile(path);
    const tasks = new Map<string, number>();
    return {
      ...file,
      async write(rollout) {
        const { instance_id: id } = rollout.line;
        const task = tasks.get(id) ?? tasks.size;
        for (const piece of piecesOf(rollout, task, request)) await file.write(piece);
        tasks.set(id, task);
      },
    };
  },
};

const OVERLONG = { class: 'overlong', message: 'a token limit cut the rollout' };

/** Returns why a judged row is masked, or null. NeMo RL asserts that each prompt continues all earlier tokens. */
function untrainable({ turns, contiguous }: Trajectory): { class: string; message: string } | null {
  if (turns.some(({ tokens }) => tokens === null))
    return { class: 'no_token_ids', message: 'a turn has no token ids' };
  return contiguous === false
    ? { class: 'not_contiguous', message: 'a prompt does not continue the tokens before it' }
    : null;
}

function* piecesOf(rollout: ExportedRollout, task: number, { lines, maskOverlong }: ExportRequest) {
  const { line, content, instance, provenance, sample } = rollout;
  const trajectory = trajectoryOf(rollout, null);
  const { patch: _patch, report: _report, ...ours } = line;
  const indices = { _ng_task_index: task, _ng_rollout_index: sample };
  const head = { ...indices, agent_ref: AGENT_REF, swefarm: ours, provenance };
  const result: Result = { format: 'swefarm-result-1', ...line };
  const overlong = maskOverlong && provenance.truncated ? OVERLONG : null;
  const cause = unjudgedCause(result) ?? untrainable(trajectory) ?? overlong;
  yield* rowPieces(head, {
    row: { ...indices, responses_create_params: { input: [], model: provenance.model } },
    result,
    content,
    repo: instance?.repo ?? '',
    evaluationTimeout: 0,
    unjudged: cause && { ...cause, shown: 'masked' as const },
    lines,
    trajectory: false,
  });
}
