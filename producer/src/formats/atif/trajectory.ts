/**
 * Harbor's trajectory format ATIF, one file for each rollout. Its schema forbids unknown fields, so what is ours stands in `extra`
 * (harbor/models/trajectories).
 */
import { type Message, withNamedPictures } from '@swefarm/shared';
import { carriedRollout, carriedTurn } from '../../export/carried.ts';
import { conversationOf, type Step } from '../../export/conversation.ts';
import { openFolderTree } from '../../export/foldertree.ts';
import { type ExportFormat, type ExportRequest, NO_TRAJECTORY } from '../../export/format.ts';
import { type ExportedRollout, modelName } from '../../export/rollout.ts';

export const atif: ExportFormat = {
  description: "Harbor's trajectory files (ATIF)",
  forms: ['1.7'],
  shape: 'folder',
  async open({ path }: ExportRequest) {
    const tree = await openFolderTree(path);
    return {
      async write(rollout) {
        const text = fileOf(rollout);
        if (text === null) return NO_TRAJECTORY;
        await tree.write(`${rollout.line.rollout_id}.trajectory.json`, text);
        return null;
      },
      finish: () => tree.finish(),
      [Symbol.asyncDispose]: () => tree[Symbol.asyncDispose](),
    };
  },
};

function fileOf(rollout: ExportedRollout): string | null {
  const trajectory = rollout.content?.trajectory;
  if (!trajectory || trajectory.messages.length === 0) return null;
  const { prompt, steps } = conversationOf(trajectory);
  const first = prompt.map((message, at) => ({ step_id: at + 1, ...saying(message) }));
  return JSON.stringify({
    schema_version: 'ATIF-v1.7',
    session_id: rollout.line.rollout_id,
    agent: {
      name: 'swefarm',
      version: rollout.provenance.software_version ?? 'unknown',
      model_name: modelName(rollout),
      ...(trajectory.tools === undefined ? {} : { tool_definitions: trajectory.tools }),
    },
    steps: [...first, ...steps.map((step, at) => ({ step_id: first.length + at + 1, ...agentStep(step) }))],
    final_metrics: {
      total_prompt_tokens: rollout.line.tokens.prompt,
      total_completion_tokens: rollout.line.tokens.completion,
      total_steps: first.length + steps.length,
    },
    extra: { swefarm: carriedRollout(rollout), patch: rollout.patch },
  });
}

/** Pictures are named in the text: this file holds none. */
const saying = (message: Message) => ({
  source: message.role === 'system' ? 'system' : 'user',
  message: withNamedPictures(message).content ?? '',
});

function agentStep({ message, turn, calls, thought, observations }: Step) {
  const called = calls.filter(({ id }) => id !== null);
  const ids = new Set(called.map(({ id }) => id));
  return {
    source: 'agent',
    message: called.length > 0 ? thought : (message.content ?? ''),
    ...(message.reasoning_content === undefined ? {} : { reasoning_content: message.reasoning_content }),
    ...(called.length === 0
      ? {}
      : {
          tool_calls: called.map(({ id, name, args, raw }) => ({
            tool_call_id: id,
            function_name: name,
            arguments: args ?? {},
            ...(args === null ? { extra: { arguments: raw } } : {}),
          })),
        }),
    ...(observations.length === 0
      ? {}
      : { observation: { results: observations.map((one) => seen(one, ids)) } }),
    ...(turn === null ? {} : { metrics: metricsOf(turn), extra: { swefarm: carriedTurn(turn) } }),
  };
}

const seen = ({ role, content, tool_call_id }: Message, ids: ReadonlySet<string | null>) => ({
  ...(tool_call_id !== undefined && ids.has(tool_call_id) ? { source_call_id: tool_call_id } : {}),
  content: content ?? '',
  ...(role === 'tool' ? {} : { extra: { role } }),
});

/** Prompt ids would repeat the conversation in every step. */
function metricsOf({ usage, tokens }: NonNullable<Step['turn']>) {
  return {
    ...(usage === null ? {} : usage),
    ...(tokens === null
      ? {}
      : {
          completion_token_ids: Array.from(tokens.generation),
          logprobs: Array.from(tokens.log_probs, (value) => (Number.isFinite(value) ? value : -1e9)),
        }),
  };
}
