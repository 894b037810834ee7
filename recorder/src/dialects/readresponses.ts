/** Reads the requests of OpenAI responses. */
import type { Message } from '@swefarm/shared';
import { contentText } from './content.ts';
import { type AgentRequest, BadRequest } from './dialect.ts';
import {
  answerIdOf,
  type Fields,
  isFields,
  listOf,
  namesOf,
  requireBody,
  requireFields,
  requireName,
  textOf,
  tokensOf,
} from './fields.ts';
import { type Call, flatName, freeTextCall, functionCall, OfferedTools } from './offered.ts';

const OUTPUTS = new Set(['function_call_output', 'custom_tool_call_output']);

/**
 * Reads the list of items. The items of an answer (reasoning, message, calls) become one message of the assistant. Each answer of ours has
 * them in this order, so an item that comes too late begins the next answer.
 */
class Items {
  readonly messages: Message[] = [];
  readonly answers = new Map<number, string>();
  readonly #dropped: Set<string>;
  readonly #offered: OfferedTools;
  /** Whether the last message is an answer to which `reasoning`, a text or calls may be added. */
  #open: 'reasoning' | 'text' | 'calls' | null = null;

  constructor(dropped: Set<string>, offered: OfferedTools) {
    this.#dropped = dropped;
    this.#offered = offered;
  }

  read(value: unknown, path: string): void {
    const item = requireFields(value, path);
    const type = item.type ?? 'message';
    if (type === 'message') this.#message(item, path);
    else if (type === 'reasoning') this.#reasoning(item, path);
    else if (type === 'function_call' || type === 'custom_tool_call') this.#call(item, path);
    else if (typeof type === 'string' && OUTPUTS.has(type)) this.#output(item, path);
    else if (type === 'additional_tools') addTools(item.tools, `${path}.tools`, this.#offered);
    else if (type === 'item_reference')
      throw new BadRequest(
        `${path}: items are not stored here, so a request must contain them (store: false)`,
      );
    else this.#dropped.add(`item ${requireName(type, `${path}.type`)}`);
  }

  /** Returns the answer to which an item is added. */
  #answer(stage: 'reasoning' | 'text' | 'calls'): Message {
    const last = this.messages.at(-1);
    const follows = stage === 'calls' ? this.#open !== null : stage === 'text' && this.#open === 'reasoning';
    this.#open = stage;
    if (follows && last) return last;
    const message: Message = { role: 'assistant', content: '' };
    this.messages.push(message);
    return message;
  }

  #push(message: Message): void {
    this.#open = null;
    this.messages.push(message);
  }

  #message(item: Fields, path: string): void {
    const content = contentText(item.content, `${path}.content`, this.#dropped);
    const { role } = item;
    if (role === 'assistant') this.#answer('text').content = content;
    else if (role === 'user') this.#push({ role, content });
    else if (role === 'system' || role === 'developer') this.#push({ role: 'system', content });
    else throw new BadRequest(`${path}.role: expected system, developer, user or assistant`);
  }

  #reasoning(item: Fields, path: string): void {
    const message = this.#answer('reasoning');
    const text =
      contentText(item.summary, `${path}.summary`, this.#dropped) ||
      contentText(item.content, `${path}.content`, this.#dropped);
    if (text !== '') message.reasoning_content = text;
    const id = answerIdOf(item.encrypted_content);
    if (id !== null) this.answers.set(this.messages.length - 1, id);
  }

  #call(item: Fields, path: string): void {
    const id = requireName(item.call_id, `${path}.call_id`);
    const space = item.namespace ?? null;
    const namespace = space === null ? null : requireName(space, `${path}.namespace`);
    const name = flatName(namespace, requireName(item.name, `${path}.name`));
    const call: Call =
      item.type === 'custom_tool_call'
        ? freeTextCall(id, name, textOf(item.input, `${path}.input`))
        : functionCall(id, name, textOf(item.arguments, `${path}.arguments`));
    const message = this.#answer('calls');
    message.tool_calls = [...(message.tool_calls ?? []), call];
    message.content ||= null;
  }

  #output(item: Fields, path: string): void {
    const content = contentText(item.output, `${path}.output`, this.#dropped);
    this.#push({ role: 'tool', content, tool_call_id: requireName(item.call_id, `${path}.call_id`) });
  }
}

/** Adds tools. Throws BadRequest. `namespace`: the tool that contains them. */
function addTools(
  tools: unknown,
  path: string,
  offered: OfferedTools,
  namespace: string | null = null,
): void {
  for (const [at, tool] of listOf(tools, path).entries())
    addTool(requireFields(tool, `${path}[${at}]`), `${path}[${at}]`, offered, namespace);
}

function addTool(tool: Fields, path: string, offered: OfferedTools, namespace: string | null): void {
  if (tool.type === 'function') offered.addFunction(tool, tool.parameters, path, namespace);
  else if (tool.type === 'custom') offered.addFreeText(tool, path, namespace);
  else if (tool.type === 'namespace' && namespace === null)
    addTools(tool.tools, `${path}.tools`, offered, requireName(tool.name, `${path}.name`));
  else offered.drop(requireName(tool.type, `${path}.type`));
}

/** Names the fields that change an answer and that the policy does not get. */
function dropFields(body: Fields, dropped: Set<string>): void {
  if (typeof body.previous_response_id === 'string')
    throw new BadRequest(
      'previous_response_id: answers are not stored here, so a request must contain all items',
    );
  if (isFields(body.text) && isFields(body.text.format) && body.text.format.type !== 'text')
    dropped.add('text.format');
  const choice = body.tool_choice ?? 'auto';
  if (choice !== 'auto' && choice !== 'none') dropped.add('tool_choice');
  if (body.parallel_tool_calls === false && listOf(body.tools, 'tools').length > 0)
    dropped.add('parallel_tool_calls');
}

function readItems(body: Fields, dropped: Set<string>, offered: OfferedTools): Items {
  const items = new Items(dropped, offered);
  const instructions = textOf(body.instructions, 'instructions');
  if (instructions !== '') items.read({ role: 'system', content: instructions }, 'instructions');
  if (typeof body.input === 'string') items.read({ role: 'user', content: body.input }, 'input');
  else for (const [at, item] of listOf(body.input, 'input').entries()) items.read(item, `input[${at}]`);
  if (items.messages.length === 0) throw new BadRequest('input: expected at least one item');
  return items;
}

/** Reads a request of the responses dialect. Throws BadRequest. */
export function readResponses(value: unknown): AgentRequest {
  const body = requireBody(value);
  const dropped = new Set<string>();
  const offered = new OfferedTools(dropped);
  addTools(body.tools, 'tools', offered);
  const { messages, answers } = readItems(body, dropped, offered);
  dropFields(body, dropped);
  return {
    dialect: 'responses',
    stream: body.stream === true,
    model: requireName(body.model, 'model'),
    messages,
    answers,
    tools: offered.tools,
    shapes: offered.shapes,
    callsAllowed: body.tool_choice !== 'none',
    maxTokens: tokensOf(body.max_output_tokens, 'max_output_tokens'),
    streamUsage: true,
    dropped: namesOf(dropped),
  };
}
