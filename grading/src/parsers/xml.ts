/** A small parser of XML elements and attributes, strict about nesting; one pass, only the five predefined entities. */

export type Element = { name: string; attributes: Map<string, string>; children: Element[] };

const MAX_DEPTH = 500;
const NAME = /[\p{L}_:][\p{L}\p{N}_:.·-]*/uy;
const ATTRIBUTE = /[ \t\r\n]+([\p{L}_:][\p{L}\p{N}_:.·-]*)[ \t\r\n]*=[ \t\r\n]*(?:"([^"<]*)"|'([^'<]*)')/uy;
const TAIL = /[ \t\r\n]*(\/?)>/y;

/** Throws SyntaxError where the text is not well-formed. */
export function readXml(text: string): Element {
  const root: Element = { name: '', attributes: new Map(), children: [] };
  const open: Element[] = [root];
  let at = 0;
  while (at < text.length) {
    const next = text.indexOf('<', at);
    const between = text.slice(at, next < 0 ? text.length : next);
    if (open.length === 1 && /[^ \t\r\n]/.test(between))
      throw new SyntaxError('text outside of the root element');
    checkText(between);
    if (next < 0) break;
    at = readMarkup(text, next, open);
  }
  const [only] = root.children;
  if (open.length !== 1 || !only || root.children.length !== 1)
    throw new SyntaxError('elements do not close');
  return only;
}

const SECTIONS = [
  ['<!--', '-->'],
  ['<![CDATA[', ']]>'],
  ['<?', '?>'],
] as const;

/** Parses one tag or section at `<` and returns the index of its end. */
function readMarkup(text: string, at: number, open: Element[]): number {
  for (const [begin, end] of SECTIONS) {
    if (!text.startsWith(begin, at)) continue;
    const close = text.indexOf(end, at + begin.length);
    if (close < 0) throw new SyntaxError(`${begin} is not closed`);
    return close + end.length;
  }
  return text[at + 1] === '/' ? readClosing(text, at, open) : readOpening(text, at, open);
}

function readClosing(text: string, at: number, open: Element[]): number {
  const end = text.indexOf('>', at);
  const name = text.slice(at + 2, end).replace(/[ \t\r\n]{1,64}$/, '');
  if (end < 0 || open.length < 2 || open.pop()?.name !== name)
    throw new SyntaxError(`mismatched tag ${name}`);
  return end + 1;
}

function readOpening(text: string, at: number, open: Element[]): number {
  NAME.lastIndex = at + 1;
  const name = NAME.exec(text)?.[0];
  if (name === undefined) throw new SyntaxError('a tag without a name');
  const element: Element = { name, attributes: new Map(), children: [] };
  let next = NAME.lastIndex;
  for (;;) {
    ATTRIBUTE.lastIndex = next;
    const match = ATTRIBUTE.exec(text);
    if (!match) break;
    const key = match[1] ?? '';
    if (element.attributes.has(key)) throw new SyntaxError(`attribute ${key} twice`);
    element.attributes.set(key, unescapeText(match[2] ?? match[3] ?? ''));
    next = ATTRIBUTE.lastIndex;
  }
  TAIL.lastIndex = next;
  const close = TAIL.exec(text);
  if (!close) throw new SyntaxError(`tag ${name} is not closed`);
  open.at(-1)?.children.push(element);
  if (close[1] !== '/') open.push(element);
  if (open.length > MAX_DEPTH) throw new RangeError('nested too deep');
  return TAIL.lastIndex;
}

const ENTITIES: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

function unescapeText(text: string): string {
  checkText(text);
  return text
    .replace(/[\t\n]/g, ' ')
    .replace(/&(#x[0-9a-fA-F]{1,6}|#[0-9]{1,7}|amp|lt|gt|quot|apos);/g, (_all, name: string) => {
      if (name.startsWith('#x')) return String.fromCodePoint(Number.parseInt(name.slice(2), 16));
      if (name.startsWith('#')) return String.fromCodePoint(Number(name.slice(1)));
      return ENTITIES[name] ?? '';
    });
}

function checkText(text: string): void {
  if (/&(?!(?:#x[0-9a-fA-F]{1,6}|#[0-9]{1,7}|amp|lt|gt|quot|apos);)/.test(text)) {
    throw new SyntaxError('an unknown entity');
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: XML 1.0 forbids them
  if (/[\x00-\x08\x0b\x0c\x0e-\x1f]/.test(text)) throw new SyntaxError('a forbidden character');
}
