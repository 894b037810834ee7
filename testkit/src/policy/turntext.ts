/** The text that the model "samples" for a turn of the script, and the message that a server parses from it. */
import { type Called, endCall, keystrokes, shellCall } from './agenttools.ts';
import { hash32 } from './random.ts';
import type { Script, Turn } from './script.ts';

/** A tool as requests declare it; only the fields that are used here. */
export type ToolOffer = { function?: { name?: unknown; parameters?: { properties?: object } } };

type ToolCall = { id: string; type: 'function'; function: { name: string; arguments: string } };

export type TurnText = {
  /** The complete sampled text with markup, without the end token. */
  raw: string;
  content: string | null;
  reasoning: string | null;
  toolCalls: ToolCall[];
  /** `abort`: the engine stopped early, as it does when it is paused for new weights. */
  finish: 'stop' | 'tool_calls' | 'length' | 'abort';
};

export type TurnStyle = Pick<Script, 'fence' | 'sentinel'> & {
  /** `field`: thinking is in reasoning_content, as with a reasoning parser. */
  reasoning: 'content' | 'field';
  /** The agent reads keystrokes in JSON from texts. */
  keystrokes?: boolean;
};

/** The answer of a turn to a request with these tools; without tools it is fenced text. The same turn gives the same text each time. */
export function renderTurn(turn: Turn, tools: readonly ToolOffer[], style: TurnStyle): TurnText {
  const think = turn.think === undefined ? '' : `<think>\n${turn.think}\n</think>\n\n`;
  const body = tools.length > 0 ? renderCalls(turn, tools, style) : renderText(turn, style);
  if (turn.finish_reason === 'length') {
    // Every server treats half of a call as text.
    const spoken = body.raw || 'I was about to';
    const half = turn.text === undefined && body.raw ? spoken.slice(0, Math.ceil(spoken.length / 2)) : spoken;
    return withThinking(turn, think, { raw: half, content: half, calls: [] }, 'length', style);
  }
  return withThinking(turn, think, body, body.calls.length > 0 ? 'tool_calls' : 'stop', style);
}

type Body = { raw: string; content: string | null; calls: ToolCall[] };

function withThinking(
  turn: Turn,
  think: string,
  body: Body,
  finish: TurnText['finish'],
  style: TurnStyle,
): TurnText {
  const apart = style.reasoning === 'field' && turn.think !== undefined;
  const inContent = apart || think === '' ? body.content : think + (body.content ?? '');
  return {
    raw: think + body.raw,
    content: inContent,
    reasoning: apart ? (turn.think ?? null) : null,
    toolCalls: body.calls,
    finish,
  };
}

function renderText(turn: Turn, style: TurnStyle): Body {
  const { fence, sentinel } = style;
  if (style.keystrokes && turn.text === undefined) return renderKeystrokes(turn);
  const lead = turn.thought === undefined ? '' : `${turn.thought}\n\n`;
  const block = (command: string, end = '\n```') => `${lead}\`\`\`${fence}\n${command}${end}`;
  let raw: string;
  if (turn.tool_json) raw = block(turn.command ?? 'ls', '');
  else if (turn.command !== undefined) raw = block(turn.command);
  else if (turn.commands) raw = turn.commands.map((command) => block(command)).join('\n');
  else if (turn.submit !== undefined) raw = block(submission(turn.submit, sentinel));
  else if (turn.tool_calls)
    raw = lead + turn.tool_calls.map((call) => markup(call.name, asText(call))).join('');
  else raw = lead + (turn.text ?? '');
  return { raw, content: raw, calls: [] };
}

function renderKeystrokes(turn: Turn): Body {
  const commands = turn.commands ?? (turn.command === undefined ? [] : [turn.command]);
  const text = keystrokes(commands, turn.thought ?? '', turn.submit !== undefined);
  const raw = turn.tool_json ? text.slice(0, -1) : text;
  return { raw, content: raw, calls: [] };
}

function renderCalls(turn: Turn, tools: readonly ToolOffer[], { sentinel }: TurnStyle): Body {
  if (turn.text !== undefined || (turn.finish_reason && !calls(turn))) {
    const text = (turn.thought === undefined ? '' : `${turn.thought}\n\n`) + (turn.text ?? '');
    return { raw: text, content: text, calls: [] };
  }
  const lead = turn.thought === undefined ? '' : `${turn.thought}\n`;
  const found = callsOf(turn, tools, sentinel);
  if (found === null) {
    const text = lead + (turn.submit === true ? 'The work is done.' : turn.submit);
    return { raw: text, content: text, calls: [] };
  }
  const called = found.map(({ name, text }, i): ToolCall => {
    const id = `call_${hash32(`${i}:${name}:${text}`).toString(16).padStart(8, '0')}`;
    return { id, type: 'function', function: { name, arguments: text } };
  });
  const raw = lead + called.map((call) => markup(call.function.name, call.function.arguments)).join('');
  return { raw, content: lead === '' ? null : lead, calls: called };
}

const calls = (turn: Turn) =>
  turn.command ?? turn.commands ?? turn.submit ?? turn.tool_calls ?? turn.tool_json;

/** Returns the calls of a turn; null: the agent ends by a text without a call. */
function callsOf(
  turn: Turn,
  tools: readonly ToolOffer[],
  sentinel: string,
): { name: string; text: string }[] | null {
  if (turn.tool_calls) return turn.tool_calls.map((call) => ({ name: call.name, text: asText(call) }));
  if (turn.submit !== undefined) {
    const end = endCall(tools, turn.submit === true ? '' : turn.submit);
    if (end) return [written(end)];
    if (tools.length > 1) return null;
    return [written(shellCall(tools, submission(turn.submit, sentinel)))];
  }
  const commands = turn.commands ?? [turn.command ?? 'ls'];
  const found = commands.map((command) => written(shellCall(tools, command)));
  return turn.tool_json ? found.map(({ name, text }) => ({ name, text: text.slice(0, -1) })) : found;
}

const written = ({ name, args }: Called) => ({ name, text: JSON.stringify(args) });

/** Renders a call as the chat templates do, so that the sampled text and the later rendering are equal. */
const markup = (name: string, args: string): string =>
  `<tool_call>\n{"name": ${JSON.stringify(name)}, "arguments": ${args}}\n</tool_call>`;

const asText = (call: { arguments: unknown }): string =>
  typeof call.arguments === 'string' ? call.arguments : JSON.stringify(call.arguments);

function submission(submit: true | string, sentinel: string): string {
  if (submit === true) return `echo ${sentinel}`;
  return `echo ${sentinel}\ncat <<'END_OF_SUBMISSION'\n${submit}\nEND_OF_SUBMISSION`;
}
