/**
 * Parses calls in the form `<invoke name="…">` with `<parameter name="…">`, of MiniMax M2 and of DeepSeek V3.2 and V4. The tags of DeepSeek
 * have a prefix and declare for each value whether it is a string.
 */
import {
  between,
  type CallParser,
  fieldsAt,
  fieldsIn,
  marked,
  requireJson,
  requireName,
  type SampledCall,
  unreadable,
  withoutBreaks,
} from './callparser.ts';

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
const inner = ({ prefix }: Tags): string => (prefix === 'minimax:' ? '' : prefix);

function readInvokes(block: string, tags: Tags): SampledCall[] {
  const open = `<${inner(tags)}invoke name="`;
  const close = `</${inner(tags)}invoke>`;
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
  const close = `</${inner(tags)}parameter>`;
  const marks = [`<${inner(tags)}parameter name="`, '"', '>', close] as const;
  const values: Record<string, unknown> = {};
  for (const [key = '', attributes, value = ''] of fieldsIn(
    body,
    marks,
    `a parameter is not closed by ${close}`,
  )) {
    if (attributes?.includes('string="false"')) values[key] = requireJson(value);
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
