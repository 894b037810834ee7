/** OpenAI responses: the items and events of an answer. */
import type { AgentAnswer, AgentRequest, DialectForm } from './dialect.ts';
import { type Call, freeTextOf, shapeOf } from './offered.ts';
import { readResponses } from './readresponses.ts';
import { openaiError } from './refusal.ts';
import { namedEvent } from './sse.ts';

type Event = { type: string } & Record<string, unknown>;

/** An item of an answer: the item at its end and at its start, and the events between. */
type Item = { done: object; added: object; between: Event[] };

function reasoningItem(id: string, text: string): Item {
  const item = { type: 'reasoning', id: `rs_${id}`, encrypted_content: id };
  const part = { type: 'summary_text', text };
  const at = { item_id: item.id, summary_index: 0 };
  return {
    done: { ...item, summary: [part] },
    added: { ...item, summary: [] },
    between: [
      { type: 'response.reasoning_summary_part.added', ...at, part: { ...part, text: '' } },
      { type: 'response.reasoning_summary_text.delta', ...at, delta: text },
      { type: 'response.reasoning_summary_text.done', ...at, text },
      { type: 'response.reasoning_summary_part.done', ...at, part },
    ],
  };
}

function messageItem(id: string, text: string, status: string): Item {
  const item = { type: 'message', id: `msg_${id}`, role: 'assistant' };
  const part = { type: 'output_text', text, annotations: [], logprobs: [] };
  const at = { item_id: item.id, content_index: 0 };
  return {
    done: { ...item, status, content: [part] },
    added: { ...item, status: 'in_progress', content: [] },
    between: [
      { type: 'response.content_part.added', ...at, part: { ...part, text: '' } },
      ...(text ? [{ type: 'response.output_text.delta', ...at, delta: text, logprobs: [] }] : []),
      { type: 'response.output_text.done', ...at, text, logprobs: [] },
      { type: 'response.content_part.done', ...at, part },
    ],
  };
}

function callItem(request: AgentRequest, id: string, call: Call, status: string): Item {
  const { kind, name, namespace } = shapeOf(request.shapes, call);
  const given = { call_id: call.id, name, ...(namespace === null ? {} : { namespace }) };
  const custom = kind === 'custom';
  const item = { type: custom ? 'custom_tool_call' : 'function_call', id, ...given };
  const field = custom ? 'input' : 'arguments';
  const text = custom ? freeTextOf(call) : call.function.arguments;
  const event = `response.${custom ? 'custom_tool_call_input' : 'function_call_arguments'}`;
  return {
    done: { ...item, status, [field]: text },
    added: { ...item, status: 'in_progress', [field]: '' },
    between: [
      { type: `${event}.delta`, item_id: id, delta: text },
      { type: `${event}.done`, item_id: id, name, [field]: text },
    ],
  };
}

function itemsOf(request: AgentRequest, { id, message, finish }: AgentAnswer): Item[] {
  const { content, reasoning_content, tool_calls } = message;
  const status = finish === 'length' ? 'incomplete' : 'completed';
  const calls = tool_calls ?? [];
  return [
    ...(reasoning_content ? [reasoningItem(id, reasoning_content)] : []),
    ...(content || calls.length === 0 ? [messageItem(id, content ?? '', status)] : []),
    ...calls.map((call, at) => callItem(request, `fc_${id}_${at}`, call, status)),
  ];
}

/** A response without its answer. The time of creation is constant, so that an answer which is given twice has the same bytes. */
const empty = ({ model }: AgentRequest, id: string) => ({
  id: `resp_${id}`,
  object: 'response',
  created_at: 0,
  status: 'in_progress',
  model,
  error: null as object | null,
  incomplete_details: null as object | null,
  instructions: null,
  metadata: {},
  output: [] as object[],
  parallel_tool_calls: true,
  temperature: null,
  tool_choice: 'auto',
  tools: [],
  top_p: null,
  usage: null as object | null,
});

function whole(request: AgentRequest, answer: AgentAnswer) {
  const { prompt_tokens, completion_tokens } = answer.usage;
  const cut = answer.finish === 'length';
  return {
    ...empty(request, answer.id),
    status: cut ? 'incomplete' : 'completed',
    incomplete_details: cut ? { reason: 'max_output_tokens' } : null,
    output: itemsOf(request, answer).map(({ done }) => done),
    usage: {
      input_tokens: prompt_tokens,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: completion_tokens,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: prompt_tokens + completion_tokens,
    },
  };
}

const numbered = (events: Event[], from: number): string =>
  events.map((event, at) => namedEvent({ ...event, sequence_number: from + at })).join('');

function begin(request: AgentRequest, id: string): string {
  const response = empty(request, id);
  return numbered(
    [
      { type: 'response.created', response },
      { type: 'response.in_progress', response },
    ],
    0,
  );
}

function events(request: AgentRequest, answer: AgentAnswer): string {
  const items = itemsOf(request, answer).flatMap(({ done, added, between }, output_index) => [
    { type: 'response.output_item.added', output_index, item: added },
    ...between.map((event) => ({ ...event, output_index })),
    { type: 'response.output_item.done', output_index, item: done },
  ]);
  const response = whole(request, answer);
  return numbered([...items, { type: `response.${response.status}`, response }], 2);
}

export const RESPONSES: DialectForm = {
  read: readResponses,
  whole,
  begin,
  alive: () => namedEvent({ type: 'keepalive', sequence_number: 1 }),
  events,
  refusal: (why, message) => ({ error: openaiError(why, message) }),
  refusedStream(request, id, why, message) {
    const { code, message: text } = openaiError(why, message);
    const response = { ...empty(request, id), status: 'failed', error: { code, message: text } };
    return numbered([{ type: 'response.failed', response }], 2);
  },
};
