/**
 * Writes `ng_trajectory` in pieces, for Gym's `eval health-check` and `eval export` (TrajectoryRecord of
 * nemo_gym/rollout_observability.py). Each turn repeats the whole earlier conversation.
 */
import { jsonText, type Turn } from '@swefarm/shared';
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
  const all = new ItemText();
  const refs = calls.map((_, index) => ({ model_call_id: `m${index}` }));
  const head = { schema_version: '1.0', task_id: facts.taskId, rollout_id: facts.rolloutId, gaps: [] };
  yield `${jsonText(head).slice(0, -1)},"turns":[`;
  all.add(prompt);
  let steps = 0;
  for (const [index, { answer, observations }] of calls.entries()) {
    steps += answer.filter((item) => item.type === 'function_call').length;
    const last = index === calls.length - 1;
    yield `${index === 0 ? '' : ','}{"question":[`;
    yield all.slice();
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
    all.add(answer);
    all.add(observations);
  }
  const invocation = {
    kind: 'agent_invocation',
    invocation_id: INVOCATION,
    status: facts.status,
    duration_ms: Math.max(0, facts.seconds * 1000),
    model_calls: refs,
  };
  yield `],"invocations":[${jsonText(invocation).slice(0, -1)},"conversation":[`;
  yield all.slice();
  yield ']}],"model_calls":[';
  for (const [index, call] of calls.entries()) {
    yield `${index === 0 ? '' : ','}${jsonText(modelCall(index, call.turn, call.answer))}`;
  }
  yield `],"tool_calls":${jsonText(calls.flatMap(toolCalls))}}`;
}

function modelCall(index: number, turn: Turn, answer: readonly ResponseItem[]) {
  const prompt = turn.usage?.prompt_tokens;
  const completion = turn.usage?.completion_tokens;
  const counted = prompt !== undefined && completion !== undefined;
  const usage = counted
    ? { input_tokens: prompt, output_tokens: completion, total_tokens: prompt + completion }
    : null;
  const cut = turn.finish_reason === 'length';
  return {
    model_call_id: `m${index}`,
    duration_ms: Math.max(0, turn.model_seconds * 1000),
    response: { status: cut ? 'incomplete' : 'completed', output: answer, usage },
    response_metadata: {
      status_code: 200,
      finish_reason: turn.finish_reason,
      response_status: cut ? 'incomplete' : 'completed',
    },
    token_stats: counted
      ? { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion }
      : {},
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

/** The conversation so far as the inside of a JSON array. Slices share memory with the buffer. */
class ItemText {
  #bytes = Buffer.allocUnsafe(16 * 1024);
  #length = 0;

  add(items: readonly ResponseItem[]): void {
    for (const item of items) {
      const text = `${this.#length === 0 ? '' : ','}${jsonText(item)}`;
      const size = Buffer.byteLength(text);
      if (this.#length + size > this.#bytes.length) {
        const bytes = Buffer.allocUnsafe((this.#length + size) * 2);
        this.#bytes.copy(bytes, 0, 0, this.#length);
        this.#bytes = bytes;
      }
      this.#length += this.#bytes.write(text, this.#length);
    }
  }

  slice(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }
}
