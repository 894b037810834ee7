/** Strict templates with `{{name}}` only, so that a typing error in a prompt is found before the first turn. */
import { UsageError } from '@swefarm/shared';

export type Template = { readonly source: string; readonly text: string };

/** `\{{` is a literal `{{`; any other `{{` must be a name. */
const MARK = /\\\{\{|\{\{[ \t]*([a-z][a-z0-9_]{0,63})[ \t]*\}\}|\{\{/g;
const ESCAPED = '\\{{';

/**
 * Parses a template and checks its names. `source` names the origin of the text in the error message.
 *
 * @throws UsageError `template` for an unknown name or an unclosed `{{`
 */
export function parseTemplate(source: string, text: string, names: readonly string[]): Template {
  const fail = (index: number, what: string): never => {
    const line = text.slice(0, index).split('\n').length;
    throw new UsageError(`${source}, line ${line}: ${what}`, { code: 'template' });
  };
  for (const { 0: mark, 1: name, index } of text.matchAll(MARK)) {
    if (mark === ESCAPED) continue;
    if (name === undefined) fail(index, '"{{" that is no {{name}}; write \\{{ for the two braces');
    else if (!names.includes(name)) fail(index, `unknown name {{${name}}}; known here: ${names.join(', ')}`);
  }
  return { source, text };
}

/** Fills a template. Values are not parsed as templates. Throws UsageError for a name without a value. */
export function renderTemplate(
  { source, text }: Template,
  values: Readonly<Record<string, string | number>>,
): string {
  return text.replace(MARK, (mark: string, name = '') => {
    if (mark === ESCAPED) return '{{';
    if (Object.hasOwn(values, name)) return String(values[name]);
    throw new UsageError(`${source}: no value for {{${name}}}`, { code: 'template' });
  });
}
