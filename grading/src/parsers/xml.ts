/**
 * Reads XML that the tests of a model's patch wrote. A document type is an error, so no entity can expand. Depth, attributes and
 * elements have limits, so the length of the text bounds the memory.
 */
import { SaxesParser } from 'saxes';

const MOST_DEPTH = 500;
const MOST_ATTRIBUTES = 256;
const MOST_ELEMENTS = 2_000_000;
const CHUNK = 1 << 16;

type XmlHandlers = {
  open: (name: string, attributes: ReadonlyMap<string, string>) => void;
  close: (name: string) => void;
};

/**
 * Calls the handlers for each element in document order. Text between elements is ignored.
 *
 * @throws SyntaxError if the text is not well-formed or has a document type; RangeError if it exceeds a limit
 */
export function scanXml(text: string, { open, close }: XmlHandlers): void {
  const parser = new SaxesParser({ position: true });
  let depth = 0;
  let elements = 0;
  let attributes = new Map<string, string>();
  parser.on('error', (error) => {
    throw new SyntaxError(error.message);
  });
  parser.on('doctype', () => {
    throw new SyntaxError('a document type is refused');
  });
  parser.on('attribute', ({ name, value }) => {
    if (attributes.size >= MOST_ATTRIBUTES) throw new RangeError('an element with too many attributes');
    attributes.set(name, value);
  });
  parser.on('opentag', ({ name }) => {
    if (++depth > MOST_DEPTH) throw new RangeError('nested too deep');
    if (++elements > MOST_ELEMENTS) throw new RangeError('too many elements');
    const own = attributes;
    attributes = new Map();
    open(name, own);
  });
  parser.on('closetag', ({ name }) => {
    depth--;
    close(name);
  });
  for (let at = 0; at < text.length; at += CHUNK) parser.write(text.slice(at, at + CHUNK));
  parser.close();
}

export type Element = { name: string; attributes: ReadonlyMap<string, string>; children: Element[] };

/** Returns the root element of a document. Throws the errors of {@link scanXml}. */
export function readXml(text: string): Element {
  const root: Element = { name: '', attributes: new Map(), children: [] };
  const path: Element[] = [root];
  scanXml(text, {
    open: (name, attributes) => {
      const element = { name, attributes, children: [] };
      path.at(-1)?.children.push(element);
      path.push(element);
    },
    close: () => path.pop(),
  });
  const [only] = root.children;
  if (!only) throw new SyntaxError('a document without an element');
  return only;
}

/** Yields all elements with the name `name`, in document order. */
export function* descendants(element: Element, name: string): Generator<Element> {
  if (element.name === name) yield element;
  for (const child of element.children) yield* descendants(child, name);
}
