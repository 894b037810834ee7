/**
 * Parses calls between `<tool_call>` tags in three formats: JSON (Hermes, Qwen, Granite), `<function=…>` with `<parameter=…>` (Qwen3-Coder,
 * Qwen3.5, Nemotron 3; Seed-OSS with `<seed:tool_call>`), and a name with `<arg_key>` pairs (GLM). Also parses `<invoke name="…">` with
 * `<parameter name="…">`, of MiniMax M2 and of DeepSeek V3.2 and V4. The tags of DeepSeek have a prefix and declare for each value whether
 * it is a string.
 */
import {
  between,
  type CallParser,
  callFromJson,
  fieldsAt,
  fieldsIn,
  marked,
  requireJson,
  requireName,
  type SampledCall,
  unreadable,
  withoutBreaks,
} from './callparser.ts';

type ReadBlock = (inner: string) => SampledCall[];

/** Creates a parser that reads each block between the tags. After JSON, the last closing tag may be missing, as in servers. */
const blocks = (open: string, close: string, read: ReadBlock): CallParser =>
  marked(open, (text) =>
    between(text, open, close, isJsonLike)
      .flatMap((inner) => read(inner.trim()))
      .toArray(),
  );

const isJsonLike = (inner: string): boolean => /^\s*[{[]/.test(inner);

const jsonCall: ReadBlock = (inner) => {
  const value = requireJson(inner);
  return Array.isArray(value) ? value.map(callFromJson) : [callFromJson(value)];
};

const FUNCTION = '<function=';
const FUNCTION_END = '</function>';
const PARAMETER = '<parameter=';
const PARAMETER_END = '</parameter>';

/** Reads `<function=NAME>` with `<parameter=KEY>` VALUE `</parameter>`. Values are strings; a line break at each end is markup. */
const taggedCalls: ReadBlock = (inner) => {
  const calls: SampledCall[] = [];
  for (let at = inner.indexOf(FUNCTION); at !== -1; at = inner.indexOf(FUNCTION, at)) {
    const head = fieldsAt(inner, at, [FUNCTION, '>'], `${FUNCTION} is not closed by >`);
    const name = requireName(head.fields[0]);
    const { args, end } = parametersAt(inner, head.end);
    calls.push({ name, arguments: args });
    at = end;
  }
  return calls.length > 0 ? calls : unreadable(`it contains no ${FUNCTION}`);
};

/** Parses the text between the name and `</function>`. Llama's variant of these tags has JSON there. */
function parametersAt(inner: string, from: number): { args: string; end: number } {
  const values: Record<string, string> = {};
  let end = inner.indexOf(FUNCTION_END, from);
  const given = inner.slice(from, end === -1 ? undefined : end).trim();
  if (end !== -1 && given.startsWith('{'))
    return { args: JSON.stringify(requireJson(given)), end: end + FUNCTION_END.length };
  for (let at = from; ; ) {
    const next = inner.indexOf(PARAMETER, at);
    // A value may contain `</function>`.
    if (end !== -1 && end < at) end = inner.indexOf(FUNCTION_END, at);
    if (next === -1 || (end !== -1 && end < next)) {
      if (end === -1) unreadable(`${FUNCTION} is not closed by ${FUNCTION_END}`);
      return { args: JSON.stringify(values), end: end + FUNCTION_END.length };
    }
    const marks = [PARAMETER, '>', PARAMETER_END];
    const read = fieldsAt(inner, next, marks, `${PARAMETER} is not closed by ${PARAMETER_END}`);
    const [key = '', value = ''] = read.fields;
    values[key.trim()] = withoutBreaks(value);
    at = read.end;
  }
}

const KEY = '<arg_key>';
const PAIR = [KEY, '</arg_key>', '<arg_value>', '</arg_value>'] as const;

/** Reads NAME, followed by pairs of `<arg_key>` KEY `</arg_key>` and `<arg_value>` VALUE `</arg_value>`. */
const pairedCall: ReadBlock = (inner) => {
  const first = inner.indexOf(KEY);
  const name = requireName(first === -1 ? inner : inner.slice(0, first));
  if (name.includes('\n') || name.startsWith('{'))
    unreadable('it is neither JSON nor a name with <arg_key> pairs');
  const values: Record<string, string> = {};
  for (const [key = '', , value = ''] of fieldsIn(inner, PAIR, `${KEY} has no closed <arg_value>`))
    values[key.trim()] = withoutBreaks(value);
  return [{ name, arguments: JSON.stringify(values) }];
};

const [OPEN, CLOSE] = ['<tool_call>', '</tool_call>'];
export const hermes = blocks(OPEN, CLOSE, jsonCall);
export const glm = blocks(OPEN, CLOSE, pairedCall);
export const seed = blocks('<seed:tool_call>', '</seed:tool_call>', taggedCalls);

const coder = blocks(OPEN, CLOSE, taggedCalls);
const bareCoder = marked(FUNCTION, taggedCalls);
/** The outer tags are optional: Qwen3-Coder sometimes omits them, and servers accept such calls. */
export const qwenCoder: CallParser = {
  markers: [OPEN, FUNCTION],
  parse: (text) => coder.parse(text) ?? bareCoder.parse(text),
};

/** Reads any of the three formats, chosen by the inner text. */
export const tagged = blocks(OPEN, CLOSE, (inner) => {
  if (inner.startsWith(FUNCTION)) return taggedCalls(inner);
  return isJsonLike(inner) ? jsonCall(inner) : anyOther(inner);
});

function anyOther(inner: string): SampledCall[] {
  const alone = /^[A-Za-z_][\w.-]*$/.test(inner) && !['null', 'true', 'false'].includes(inner);
  return inner.includes(KEY) || alone ? pairedCall(inner) : jsonCall(inner);
}

/** `asIs`: line breaks at the ends of a value belong to the value. */
type Tags = { block: string; prefix: string; asIs: boolean };

/** Creates a parser that tries the variants in order. The first variant whose tag is in the text reads the calls. */
function invoking(variants: readonly Tags[]): CallParser {
  const parsers = variants.map((tags) => {
    const open = `<${tags.prefix}${tags.block}>`;
    const readBlock = (block: string): SampledCall[] => {
      const found = readInvokes(block, tags);
      return found.length > 0 ? found : unreadable('it invokes nothing');
    };
    return marked(open, (text) =>
      between(text, open, `</${open.slice(1)}`)
        .flatMap(readBlock)
        .toArray(),
    );
  });
  return {
    markers: parsers.flatMap(({ markers }) => markers),
    parse: (text) =>
      parsers
        .values()
        .map((parser) => parser.parse(text))
        .find((parsed) => parsed !== null) ?? null,
  };
}

/** Returns the prefix of inner tags. MiniMax writes inner tags without a prefix. */
const innerPrefix = ({ prefix }: Tags): string => (prefix === 'minimax:' ? '' : prefix);

function readInvokes(block: string, tags: Tags): SampledCall[] {
  const open = `<${innerPrefix(tags)}invoke name="`;
  const close = `</${innerPrefix(tags)}invoke>`;
  const calls: SampledCall[] = [];
  for (let at = block.indexOf(open); at !== -1; at = block.indexOf(open, at)) {
    const head = fieldsAt(block, at, [open, '"', '>'], `${open} is not closed`);
    const [given, attributes = ''] = head.fields;
    const name = requireName(given);
    at = head.end;
    if (attributes.endsWith('/')) calls.push({ name, arguments: '{}' });
    else {
      const end = block.indexOf(close, at);
      if (end === -1) unreadable(`it is not closed by ${close}`);
      calls.push({ name, arguments: readParameters(block.slice(at, end), tags) });
      at = end + close.length;
    }
  }
  return calls;
}

function readParameters(body: string, tags: Tags): string {
  const given = body.trim();
  if (given.startsWith('{')) return JSON.stringify(requireJson(given));
  const close = `</${innerPrefix(tags)}parameter>`;
  const marks = [`<${innerPrefix(tags)}parameter name="`, '"', '>', close] as const;
  const problem = `a parameter is not closed by ${close}`;
  const values: Record<string, unknown> = {};
  for (const [key = '', attributes = '', value = ''] of fieldsIn(body, marks, problem)) {
    if (attributes.includes('string="false"')) values[key] = requireJson(value);
    else values[key] = tags.asIs ? value : withoutBreaks(value);
  }
  return JSON.stringify(values);
}

const DSML = '｜DSML｜';
export const minimax = invoking([{ block: 'tool_call', prefix: 'minimax:', asIs: false }]);
export const dsml = invoking([
  { block: 'function_calls', prefix: DSML, asIs: true },
  { block: 'tool_calls', prefix: DSML, asIs: true },
]);
