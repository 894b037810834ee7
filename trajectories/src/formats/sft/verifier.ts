/** Data for a verifier: a conversation, its patch, and whether it solved the task. */
import { jsonText } from '@swefarm/shared';
import { plainMessage, templateMessage } from '../../export/conversation.ts';
import { type ExportFormat, NO_TRAJECTORY } from '../../export/format.ts';
import { openLineWriter, type Rendered } from '../../export/linewriter.ts';
import { type ExportedRollout, modelName } from '../../export/rollout.ts';

export const verifierLines: ExportFormat = {
  description: 'trajectories with success 1 or 0, for a verifier; see --balance and --split',
  forms: ['jsonl', 'text'],
  shape: 'file',
  open: (request) => openLineWriter(request, (rollout) => line(rollout, request.form)),
};

/** Form `text` has arguments of calls as text, as the Chat Completions API has them; otherwise they are objects. */
function line(rollout: ExportedRollout, form: string): Rendered {
  const { content, provenance, patch } = rollout;
  if (!content?.trajectory || content.trajectory.messages.length === 0) return { skipped: NO_TRAJECTORY };
  if (provenance.success === null) return { skipped: 'without a verdict' };
  if (provenance.reward === null) return { skipped: 'without a reward' };
  const row = {
    messages: content.trajectory.messages.map(form === 'text' ? plainMessage : templateMessage),
    patch,
    success: provenance.success ? 1 : 0,
    instance_id: provenance.instance_id,
    model: modelName(rollout),
    swefarm: provenance,
  };
  return { line: jsonText(row) };
}
