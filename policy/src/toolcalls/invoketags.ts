/**
 * Parses calls in the form `<invoke name="…">` with `<parameter name="…">`, of MiniMax M2 and of DeepSeek V3.2 and V4. The tags of DeepSeek
 * have a prefix and declare for each value whether it is a string.
 */
import {
  between,
  type CallParser,
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
    const nameEnd = block.indexOf('"', at + open.length);
    const head = nameEnd === -1 ? -1 : block.indexOf('>', nameEnd);
    if (head === -1) unreadable(`${open} is not closed`);
    const name = requireName(block.slice(at + open.length, nameEnd));
    if (block[head - 1] === '/') {
      calls.push({ name, arguments: '{}' });
      at = head + 1;
      continue;
    }
    const end = block.indexOf(close, head);
    if (end === -1) unreadable(`it is not closed by ${close}`);
    calls.push({ name, arguments: readParameters(block.slice(head + 1, end), tags) });
    at = end + close.length;
  }
  return calls;
}

function readParameters(body: string, tags: Tags): string {
  const given = body.trim();
  if (given.startsWith('{')) return JSON.stringify(requireJson(given));
  const open = `<${inner(tags)}parameter name="`;
  const close = `</${inner(tags)}parameter>`;
  const values: Record<string, unknown> = {};
  for (let at = body.indexOf(open); at !== -1; at = body.indexOf(open, at)) {
    const keyEnd = body.indexOf('"', at + open.length);
    const head = keyEnd === -1 ? -1 : body.indexOf('>', keyEnd);
    const end = head === -1 ? -1 : body.indexOf(close, head);
    if (end === -1) unreadable(`a parameter is not closed by ${close}`);
    const value = body.slice(head + 1, end);
    const asJson = body.slice(keyEnd, head).includes('string="false"');
    values[body.slice(at + open.length, keyEnd)] = asJson
      ? requireJson(value)
      : tags.asIs
        ? value
        : withoutBreaks(value);
    at = end + close.length;
  }
  return JSON.stringify(values);
}

const DSML = '｜DSML｜';
export const minimax = invoking([{ block: 'tool_call', prefix: 'minimax:', asIs: false }]);
export const dsml = invoking([
  { block: 'function_calls', prefix: DSML, asIs: true },
  { block: 'tool_calls', prefix: DSML, asIs: true },
]);
