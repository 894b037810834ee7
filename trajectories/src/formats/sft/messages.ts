/** Chat messages for supervised fine-tuning: one line for each rollout, as `messages` and `tools` of the Chat Completions API. */
import { jsonText } from '@swefarm/shared';
import { plainMessage, templateMessage } from '../../export/conversation.ts';
import { type ExportFormat, NO_TRAJECTORY } from '../../export/format.ts';
import { openLineWriter, type Rendered } from '../../export/linewriter.ts';
import { type ExportedRollout, modelName } from '../../export/rollout.ts';

export const sftMessages: ExportFormat = {
  description: 'chat messages and tools for fine-tuning, a line each',
  forms: ['jsonl', 'text'],
  shape: 'file',
  open: (request) => openLineWriter(request, (rollout) => line(rollout, request.form)),
};

/** Form `text` has arguments of calls as text, as the Chat Completions API has them; otherwise they are objects. */
function line(rollout: ExportedRollout, form: string): Rendered {
  const { content, provenance } = rollout;
  const trajectory = content?.trajectory;
  if (!trajectory || trajectory.messages.length === 0) return { skipped: NO_TRAJECTORY };
  const row = {
    messages: trajectory.messages.map(form === 'text' ? plainMessage : templateMessage),
    tools: trajectory.tools ?? null,
    instance_id: provenance.instance_id,
    resolved: provenance.success,
    model: modelName(rollout),
    swefarm: provenance,
  };
  return { line: jsonText(row) };
}
