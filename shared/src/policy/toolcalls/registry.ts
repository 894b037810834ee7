/** Tool calls out of sampled text, by the form of the model's family: the registry, and what to say of a call that no reader reads. */

import type { ToolParser } from '../../records/toolparsers.ts';
import type { CallParser, ParsedCalls, SampledCall } from './callparser.ts';
import { harmony } from './harmony.ts';
import { dsml, minimax } from './invoketags.ts';
import { llama, minimaxLines, mistral, nemotron } from './markedjson.ts';
import { lfm, pythonic } from './pythonic.ts';
import { deepseek, kimi } from './specialtokens.ts';
import { glm, hermes, qwenCoder, seed, tagged } from './toolcalltags.ts';

const FORMS: Readonly<Record<Exclude<ToolParser, 'auto'>, CallParser>> = {
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

/** In their order: `tagged` stands for the three forms that share their tags. */
const MARKED: readonly CallParser[] = [
  harmony,
  tagged,
  qwenCoder,
  ...[kimi, deepseek, dsml, minimax, mistral, nemotron, seed, lfm, minimaxLines, llama, pythonic],
];

/** How models open calls that nobody reads here. */
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

/** Forms whose calls may be plain text; which of them a model uses, only its template says. */
export const UNMARKED = ['llama3_json', 'pythonic'] as const;

/** The first marker of a form in the text. */
function markerIn(text: string, markers: readonly string[]): { marker: string; at: number } | null {
  const found = markers.map((marker) => ({ marker, at: text.indexOf(marker) })).filter(({ at }) => at !== -1);
  return found.sort((one, other) => one.at - other.at)[0] ?? null;
}

/** By whichever marker comes first. */
function readMarked(text: string): ParsedCalls | null {
  const found = MARKED.flatMap((form) => {
    const first = markerIn(text, form.markers);
    return first ? [{ form, at: first.at }] : [];
  });
  // Stable: of forms with the same marker the first one counts.
  for (const { form } of found.sort((one, other) => one.at - other.at)) {
    const read = form.parse(text);
    if (read !== null) return read;
  }
  return null;
}

export const parseWith = (parser: Exclude<ToolParser, 'auto'>, text: string): ParsedCalls | null =>
  FORMS[parser].parse(text);

/** Null when there are none, or one cannot be read: then, as at servers, the whole text is text. */
export function parseToolCalls(
  text: string,
  parser: ToolParser = 'auto',
): { content: string; calls: SampledCall[] } | null {
  const read = parser === 'auto' ? readMarked(text) : parseWith(parser, text);
  return read === null || 'unread' in read ? null : read;
}

/** A call that was begun in a text and that nobody read: by what it is known, and what is wrong with it. */
export type UnreadCall = { marker: string; reason: string };

/** Of the text of an answer that calls nothing. */
export function unreadCallIn(text: string): UnreadCall | null {
  const first = markerIn(text, [...MARKED.flatMap(({ markers }) => markers), ...FOREIGN]);
  if (first === null) return unmarkedCallIn(text);
  const read = readMarked(text);
  if (read !== null && 'unread' in read) return { marker: first.marker, reason: read.unread };
  return read !== null || FOREIGN.includes(first.marker)
    ? { marker: first.marker, reason: OTHER_FORM }
    : null;
}

const OTHER_FORM = 'its form is not the one that is read here';

/** An answer that is nothing but calls without any marker. */
export function unmarkedCallIn(text: string): UnreadCall | null {
  const found = UNMARKED.find((parser) => {
    const read = parseWith(parser, text);
    return read !== null && 'calls' in read;
  });
  if (found === undefined) return null;
  return { marker: found === 'pythonic' ? '[name(…)]' : '{"name": …}', reason: OTHER_FORM };
}
