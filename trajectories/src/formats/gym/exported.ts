/** Stored rollouts as rows of NeMo Gym's collector, without the run that made them: what `collect --output-format gym` writes to X.jsonl. */
import { jsonText, type Result, type Trajectory } from '@swefarm/shared';
import { type ExportFormat, type ExportRequest, NO_TRAJECTORY } from '../../export/format.ts';
import type { ExportedRollout } from '../../export/rollout.ts';
import { openTextFile } from '../../export/textfile.ts';
import { answerPieces } from './answer.ts';
import { AGENT_REF } from './inputs.ts';
import { unjudgedCause } from './unjudged.ts';

export const nemoGymRows: ExportFormat = {
  description: "rows of NeMo Gym's collector, with token ids where they are known",
  forms: ['rows'],
  shape: 'file',
  async open({ path }: ExportRequest) {
    const file = await openTextFile(path);
    const tasks = new Map<string, number>();
    return {
      async write(rollout) {
        if (!rollout.content?.trajectory) return NO_TRAJECTORY;
        const { instance_id: id } = rollout.line;
        const task = tasks.get(id) ?? tasks.size;
        tasks.set(id, task);
        for (const piece of piecesOf(rollout, task)) await file.write(piece);
        await file.write('\n');
        return null;
      },
      finish: () => file.finish(),
      [Symbol.asyncDispose]: () => file[Symbol.asyncDispose](),
    };
  },
};

/**
 * Why tokens of a rollout cannot be trained on, though its verdict stands; null where they can. NeMo RL asserts that each turn's prompt
 * continues all tokens before it, so such a row is masked.
 */
function untrainable(trajectory: Trajectory | null): { class: string; message: string } | null {
  if (trajectory?.turns.some(({ tokens }) => tokens === null) ?? true)
    return { class: 'no_token_ids', message: 'a turn has no token ids' };
  return trajectory?.contiguous === false
    ? { class: 'not_contiguous', message: 'a prompt does not continue the tokens before it' }
    : null;
}

function* piecesOf(rollout: ExportedRollout, task: number) {
  const { line, content, instance, provenance, sample } = rollout;
  const { patch: _patch, report: _report, ...ours } = line;
  const place = { _ng_task_index: task, _ng_rollout_index: sample };
  const head = { ...place, agent_ref: AGENT_REF, swefarm: ours, provenance };
  yield `${jsonText(head).slice(0, -1)},`;
  const result: Result = { format: 'swefarm-result-1', ...line };
  const cause = unjudgedCause(result) ?? untrainable(content?.trajectory ?? null);
  const answer = {
    row: { ...place, responses_create_params: { input: [], model: provenance.model } },
    result,
    content,
    repo: instance?.repo ?? '',
    evaluationTimeout: 0,
    unjudged: cause && { ...cause, shown: 'masked' as const },
    trajectory: false,
  };
  let opened = false;
  for (const piece of answerPieces(answer)) {
    // The head already has the opening brace.
    yield opened ? piece : String(piece).slice(1);
    opened = true;
  }
}
