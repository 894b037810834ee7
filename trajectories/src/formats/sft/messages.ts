/** Writes chat messages of the Chat Completions API, for supervised fine-tuning and for the training of a verifier. */
import type { WholeLine } from '@swefarm/shared';
import { plainMessage, templateMessage } from '../../export/conversation.ts';
import { type ExportFormat, NotExportable, trajectoryOf } from '../../export/format.ts';
import { chosenLines, lineFacts, weighted } from '../../export/lines.ts';
import { openLineWriter } from '../../export/linewriter.ts';
import { type ExportedRollout, modelName } from '../../export/rollout.ts';

const messageFormat = (
  description: string,
  lines: ExportFormat['lines'],
  fieldsOf: (rollout: ExportedRollout, line: WholeLine) => object,
): ExportFormat => ({
  description,
  // In the form `text`, arguments of calls are text, as in the Chat Completions API; in the form `jsonl` they are objects.
  forms: ['jsonl', 'text'],
  lines,
  shape: 'file',
  open: (request) =>
    openLineWriter(request, (rollout) =>
      chosenLines(trajectoryOf(rollout), request.lines).map((line) => ({
        messages: line.messages.map(
          weighted<object>(
            line,
            request.form === 'text' ? plainMessage : templateMessage,
            request.maskOverlong && rollout.provenance.truncated,
          ),
        ),
        ...fieldsOf(rollout, line),
        model: modelName(rollout),
        swefarm: { ...rollout.provenance, ...lineFacts(line) },
      })),
    ),
});

export const sftMessages: ExportFormat = {
  ...messageFormat(
    'chat messages and tools for fine-tuning, a line each',
    ['all', 'main'],
    ({ provenance }, { tools = null }) => ({
      tools,
      instance_id: provenance.instance_id,
      resolved: provenance.success,
    }),
  ),
  masks: true,
};

export const verifierLines = messageFormat(
  'trajectories with success 1 or 0, for a verifier; see --balance and --split',
  ['main'],
  ({ provenance, patch }) => {
    if (provenance.success === null) throw new NotExportable('without a verdict');
    if (provenance.reward === null) throw new NotExportable('without a reward');
    return { patch, success: provenance.success ? 1 : 0, instance_id: provenance.instance_id };
  },
);
