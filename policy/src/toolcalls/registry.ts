/** Lists the parsers of tool calls, one for each family of models, and finds the reasons for unread calls. */

import type { ToolParser } from '@swefarm/shared';
import { tryParseJson } from '@swefarm/shared';
import type { CallParser, ParsedCalls, SampledCall } from './callparser.ts';
import { harmony } from './harmony.ts';
import { deepseek, kimi, llama, minimaxLines, mistral, nemotron } from './markedjson.ts';
import { lfm, pythonic } from './pythonic.ts';
import { dsml, glm, hermes, minimax, qwenCoder, seed, tagged } from './toolcalltags.ts';

const PARSERS: Readonly<Record<Exclude<ToolParser, 'auto'>, CallParser>> = {
  hermes,
  qwen3_coder: qwenCoder,
  glm,
  kimi_k2: kimi,
  deepseek_v3: deepseek,
  deepseek_dsml: dsml,
  llama3_json: llama,
  pythonic,
  lfm2: lfm,
  mistral,
  minimax_m1: minimaxLines,
  minimax_m2: minimax,
  nemotron,
  seed_oss: seed,
  harmony,
};

/** Reads the three call formats that share the tag `<tool_call>`. One of them may omit this tag. */
const anyTagged: CallParser = {
  markers: qwenCoder.markers,
  parse: (text) => tagged.parse(text) ?? qwenCoder.parse(text),
};

/** Parsers of the call formats without `<tool_call>`, except Harmony. */
const UNTAGGED: readonly CallParser[] = [
  ...[kimi, deepseek, dsml, minimax, mistral, nemotron, seed, lfm, minimaxLines, llama, pythonic],
];
/** Parsers in order of precedence: if two parsers have the same marker, the first one reads the call. */
const MARKED: readonly CallParser[] = [harmony, tagged, qwenCoder, ...UNTAGGED];
const FAMILIES: readonly CallParser[] = [harmony, anyTagged, ...UNTAGGED];

/** Parsers whose calls may have no marker. Only the chat template shows which parser applies. */
const UNMARKED = ['llama3_json', 'pythonic'] as const;

/** Markers of call formats that no parser in this folder reads. */
const FOREIGN = [
  '<|tool_call>',
  '<|tool_call|>',
  '<|tool_calls|>',
  '<|function_call|>',
  '<|open|>tools<|sep|>',
  '<|START_ACTION|>',
  '<|tools_prefix|>',
  '<|action_start|>',
  'functools[',
];

function firstMarker(text: string, markers: readonly string[]): { marker: string; at: number } | null {
  const found = markers.map((marker) => ({ marker, at: text.indexOf(marker) })).filter(({ at }) => at !== -1);
  return found.sort((one, other) => one.at - other.at)[0] ?? null;
}

function parseMarked(text: string): ParsedCalls | null {
  const found = MARKED.flatMap((parser) => {
    const first = firstMarker(text, parser.markers);
    return first ? [{ parser, at: first.at }] : [];
  });
  for (const { parser } of found.sort((one, other) => one.at - other.at)) {
    const parsed = parser.parse(text);
    if (parsed !== null) return parsed;
  }
  return null;
}

/**
 * Returns the calls; null if there are none or one is unreadable, because servers then treat the whole answer as text.
 *
 * @param parser a name, or the parser of the chat template, which is tried before the parsers whose markers are in the text
 */
export function parseToolCalls(
  text: string,
  parser: ToolParser | CallParser = 'auto',
): { content: string; calls: SampledCall[] } | null {
  const parsed = parseBy(text, parser);
  return parsed === null || 'unread' in parsed ? null : parsed;
}

/** Parses like parseToolCalls(), but also returns the reason for an unreadable call. */
export function parseBy(text: string, parser: ToolParser | CallParser): ParsedCalls | null {
  if (parser === 'auto') return parseMarked(text);
  return typeof parser === 'string' ? PARSERS[parser].parse(text) : (parser.parse(text) ?? parseMarked(text));
}

/** Returns whether the text does not identify its call format: it has markers of several families, or is a call without markers. */
export function isAmbiguous(text: string): boolean {
  const families = FAMILIES.filter(({ markers }) => firstMarker(text, markers) !== null);
  return families.length > 1 || unmarkedCallIn(text) !== null;
}

/** Returns the parser that reads the text as exactly the wanted call; null if there is none. */
export function parserOfCall(text: string, wanted: SampledCall): CallParser | null {
  const found = FAMILIES.find((parser) => {
    const parsed = parser.parse(text);
    if (parsed === null || 'unread' in parsed || parsed.calls.length !== 1) return false;
    const [call] = parsed.calls;
    return call?.name === wanted.name && normalized(call.arguments) === normalized(wanted.arguments);
  });
  return found ?? null;
}

function normalized(json: string): string {
  try {
    return JSON.stringify(tryParseJson(json)) ?? json;
  } catch (error) {
    // JSON.stringify() throws RangeError for values that are nested too deeply.
    if (error instanceof RangeError) return json;
    throw error;
  }
}

/** Call that no parser could read: its marker, and the reason. */
export type UnreadCall = { marker: string; reason: string };

const OTHER_FORM = 'its form is not the one that is read here';

export function unreadCallIn(text: string): UnreadCall | null {
  const first = firstMarker(text, [...MARKED.flatMap(({ markers }) => markers), ...FOREIGN]);
  if (first === null) return unmarkedCallIn(text);
  const parsed = parseMarked(text);
  if (parsed !== null && 'unread' in parsed) return { marker: first.marker, reason: parsed.unread };
  return parsed !== null || FOREIGN.includes(first.marker)
    ? { marker: first.marker, reason: OTHER_FORM }
    : null;
}

function unmarkedCallIn(text: string): UnreadCall | null {
  const found = UNMARKED.find((name) => {
    const parsed = PARSERS[name].parse(text);
    return parsed !== null && 'calls' in parsed;
  });
  if (found === undefined) return null;
  return { marker: found === 'pythonic' ? '[name(…)]' : '{"name": …}', reason: OTHER_FORM };
}
