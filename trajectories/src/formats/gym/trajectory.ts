/**
 * Writes `ng_trajectory` in pieces, for Gym's `eval health-check` and `eval export` (TrajectoryRecord of
 * nemo_gym/rollout_observability.py). Each turn repeats the whole earlier conversation.
 */
import { jsonText, type Turn } from '@swefarm/shared';
import { JsonList } from './json.ts';
import type { Conversation, ResponseItem } from './responseitems.ts';

export type TrajectoryFacts = {
  taskId: string;
  rolloutId: string;
  status: 'completed' | 'failed';
  seconds: number;
  finishedAt: number;
  resolved: boolean | null;
};

const INVOCATION = 'main';

export function* trajectoryParts(
  conversation: Conversation,
  facts: TrajectoryFacts,
): Generator<string | Buffer> {
  const { prompt, calls } = conversation;
  const all = new JsonList();
  const add = (items: readonly ResponseItem[]): void => {
    for (const item of items) all.push(jsonText(item));
  };
  const refs = calls.map((_, index) => ({ model_call_id: `m${index}` }));
  const head = { schema_version: '1.0', task_id: facts.taskId, rollout_id: facts.rolloutId, gaps: [] };
  yield `${jsonText(head).slice(0, -1)},"turns":[`;
  add(prompt);
  let steps = 0;
  for (const [index, { answer, observations }] of calls.entries()) {
    steps += answer.filter((item) => item.type === 'function_call').length;
    const last = index === calls.length - 1;
    yield `${index === 0 ? '' : ','}{"question":[`;
    yield all.bytes;
    const turn = {
      answer,
      invocation_id: INVOCATION,
      task_id: facts.taskId,
      rollout_id: facts.rolloutId,
      turn_no: index + 1,
      timestamp: facts.finishedAt / 1000,
      step_count: steps,
      model_calls: [refs[index]],
      ...(last && facts.resolved !== null ? { resolved: facts.resolved } : {}),
    };
    yield `],${jsonText(turn).slice(1)}`;
    add(answer);
    add(observations);
  }
  const invocation = {
    kind: 'agent_invocation',
    invocation_id: INVOCATION,
    status: facts.status,
    duration_ms: Math.max(0, facts.seconds * 1000),
    model_calls: refs,
  };
  yield `],"invocations":[${jsonText(invocation).slice(0, -1)},"conversation":[`;
  yield all.bytes;
  yield ']}],"model_calls":[';
  for (const [index, call] of calls.entries()) {
    yield `${index === 0 ? '' : ','}${jsonText(modelCall(index, call.turn, call.answer))}`;
  }
  yield `],"tool_calls":${jsonText(calls.flatMap(toolCalls))}}`;
}

function modelCall(index: number, turn: Turn, answer: readonly ResponseItem[]) {
  const { prompt_tokens = 0, completion_tokens = 0 } = turn.usage ?? {};
  const total_tokens = prompt_tokens + completion_tokens;
  const usage = { input_tokens: prompt_tokens, output_tokens: completion_tokens, total_tokens };
  const status = turn.finish_reason === 'length' ? 'incomplete' : 'completed';
  return {
    model_call_id: `m${index}`,
    duration_ms: Math.max(0, turn.model_seconds * 1000),
    response: { status, output: answer, usage: turn.usage && usage },
    response_metadata: { status_code: 200, finish_reason: turn.finish_reason, response_status: status },
    token_stats: turn.usage ? { prompt_tokens, completion_tokens, total_tokens } : {},
  };
}

function toolCalls({ turn, answer, observations }: Conversation['calls'][number]) {
  return answer
    .filter((item) => item.type === 'function_call')
    .map((item, index) => ({
      kind: 'tool_call',
      invocation_id: INVOCATION,
      tool_call_id: item.call_id,
      tool_name: item.name,
      duration_ms: Math.max(0, (turn.commands[index]?.seconds ?? 0) * 1000),
      status: turn.commands[index]?.note === 'timed_out' ? 'timeout' : 'completed',
      output: observations.find((one) => one.call_id === item.call_id)?.output ?? null,
    }));
}
