/** Data for a verifier: a conversation, its patch, and whether it solved the task. */
import { plainMessage } from '../../export/conversation.ts';
import { type ExportFormat, NO_TRAJECTORY } from '../../export/format.ts';
import { openLineWriter, type Rendered } from '../../export/linewriter.ts';
import { type ExportedRollout, modelName } from '../../export/rollout.ts';

export const verifierLines: ExportFormat = {
  description: 'trajectories with success 1 or 0, for a verifier; see --balance and --split',
  forms: ['jsonl'],
  shape: 'file',
  open: (request) => openLineWriter(request, line),
};

function line(rollout: ExportedRollout): Rendered {
  const { content, provenance, patch } = rollout;
  if (!content?.trajectory || content.trajectory.messages.length === 0) return { skipped: NO_TRAJECTORY };
  if (provenance.resolved === null) return { skipped: 'without a verdict' };
  const row = {
    messages: content.trajectory.messages.map(plainMessage),
    patch,
    success: provenance.resolved ? 1 : 0,
    instance_id: provenance.instance_id,
    model: modelName(rollout),
    swefarm: provenance,
  };
  return { line: JSON.stringify(row) };
}
