/** Writes chat messages of the Chat Completions API, for supervised fine-tuning and for the training of a verifier. */
import { jsonText } from '@swefarm/shared';
import { plainMessage, templateMessage } from '../../export/conversation.ts';
import { type ExportFormat, NO_TRAJECTORY } from '../../export/format.ts';
import { openLineWriter, type Rendered } from '../../export/linewriter.ts';
import { type ExportedRollout, modelName } from '../../export/rollout.ts';

const messageFormat = (
  description: string,
  line: (rollout: ExportedRollout, messages: readonly object[]) => Rendered,
): ExportFormat => ({
  description,
  // In the form `text`, arguments of calls are text, as in the Chat Completions API; in the form `jsonl` they are objects.
  forms: ['jsonl', 'text'],
  shape: 'file',
  open: (request) =>
    openLineWriter(request, (rollout) => {
      const messages = rollout.content?.trajectory?.messages ?? [];
      if (messages.length === 0) return { skipped: NO_TRAJECTORY };
      return line(rollout, messages.map(request.form === 'text' ? plainMessage : templateMessage));
    }),
});

export const sftMessages = messageFormat(
  'chat messages and tools for fine-tuning, a line each',
  (rollout, messages) => {
    const { content, provenance } = rollout;
    const row = {
      messages,
      tools: content?.trajectory?.tools ?? null,
      instance_id: provenance.instance_id,
      resolved: provenance.success,
      model: modelName(rollout),
      swefarm: provenance,
    };
    return { line: jsonText(row) };
  },
);

export const verifierLines = messageFormat(
  'trajectories with success 1 or 0, for a verifier; see --balance and --split',
  (rollout, messages) => {
    const { provenance, patch } = rollout;
    if (provenance.success === null) return { skipped: 'without a verdict' };
    if (provenance.reward === null) return { skipped: 'without a reward' };
    const row = {
      messages,
      patch,
      success: provenance.success ? 1 : 0,
      instance_id: provenance.instance_id,
      model: modelName(rollout),
      swefarm: provenance,
    };
    return { line: jsonText(row) };
  },
);
