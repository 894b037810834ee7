/** Strict templates with `{{name}}` only, so that a typing error in a prompt is found before the first turn. */
import { UsageError } from '@swefarm/shared';

type Piece = { text: string } | { name: string };
export type Template = { readonly source: string; readonly pieces: readonly Piece[] };

/** `\{{` is a literal `{{`; any other `{{` must be a name. */
const MARK = /\\\{\{|\{\{[ \t]*([a-z][a-z0-9_]{0,63})[ \t]*\}\}|\{\{/g;

/**
 * Parses a template and checks its names. `source` names the origin of the text in the error message.
 *
 * @throws UsageError `template` for an unknown name or an unclosed `{{`
 */
export function parseTemplate(source: string, text: string, names: readonly string[]): Template {
  const pieces: Piece[] = [];
  let from = 0;
  for (const match of text.matchAll(MARK)) {
    if (match.index > from) pieces.push({ text: text.slice(from, match.index) });
    from = match.index + match[0].length;
    const name = match[1];
    if (match[0] === '\\{{') pieces.push({ text: '{{' });
    else if (name === undefined)
      fail(source, text, match.index, '"{{" that is no {{name}}; write \\{{ for the two braces');
    else if (!names.includes(name)) {
      fail(source, text, match.index, `unknown name {{${name}}}; known here: ${names.join(', ')}`);
    } else pieces.push({ name });
  }
  if (from < text.length) pieces.push({ text: text.slice(from) });
  return { source, pieces };
}

/** Fills a template. Values are not parsed as templates. Throws UsageError for a name without a value. */
export function renderTemplate(
  template: Template,
  values: Readonly<Record<string, string | number>>,
): string {
  let text = '';
  for (const piece of template.pieces) {
    if ('text' in piece) text += piece.text;
    else if (Object.hasOwn(values, piece.name)) text += String(values[piece.name]);
    else throw new UsageError(`${template.source}: no value for {{${piece.name}}}`, { code: 'template' });
  }
  return text;
}

function fail(source: string, text: string, index: number, what: string): never {
  const line = text.slice(0, index).split('\n').length;
  throw new UsageError(`${source}, line ${line}: ${what}`, { code: 'template' });
}
