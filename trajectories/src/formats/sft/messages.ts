/** Writes chat messages of the Chat Completions API, for supervised fine-tuning and for the training of a verifier. */
import { plainMessage, templateMessage } from '../../export/conversation.ts';
import { type ExportFormat, NotExportable, trajectoryOf } from '../../export/format.ts';
import { openLineWriter } from '../../export/linewriter.ts';
import { type ExportedRollout, modelName } from '../../export/rollout.ts';

const messageFormat = (
  description: string,
  fieldsOf: (rollout: ExportedRollout) => object,
): ExportFormat => ({
  description,
  // In the form `text`, arguments of calls are text, as in the Chat Completions API; in the form `jsonl` they are objects.
  forms: ['jsonl', 'text'],
  shape: 'file',
  open: (request) =>
    openLineWriter(request, (rollout) => ({
      messages: trajectoryOf(rollout).messages.map(request.form === 'text' ? plainMessage : templateMessage),
      ...fieldsOf(rollout),
      model: modelName(rollout),
      swefarm: rollout.provenance,
    })),
});

export const sftMessages = messageFormat(
  'chat messages and tools for fine-tuning, a line each',
  ({ content, provenance }) => ({
    tools: content?.trajectory?.tools ?? null,
    instance_id: provenance.instance_id,
    resolved: provenance.success,
  }),
);

export const verifierLines = messageFormat(
  'trajectories with success 1 or 0, for a verifier; see --balance and --split',
  ({ provenance, patch }) => {
    if (provenance.success === null) throw new NotExportable('without a verdict');
    if (provenance.reward === null) throw new NotExportable('without a reward');
    return { patch, success: provenance.success ? 1 : 0, instance_id: provenance.instance_id };
  },
);
