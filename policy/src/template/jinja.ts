/** Renders texts of Jinja templates as Jinja2 does by default, for prompt sets of other agents. */
import { Environment, Interpreter, parse, tokenize } from '@huggingface/jinja';
import { errorMessage, UsageError } from '@swefarm/shared';

export type JinjaTemplate = (values: Readonly<Record<string, unknown>>) => string;

/**
 * Parses a template. Globals such as `range` are absent, so that a template loops over its values only. Throws UsageError `template` for a
 * bad template, and when it is rendered, for an operation that fails; the message names `source`.
 */
export function parseJinja(source: string, text: string, names: readonly string[]): JinjaTemplate {
  const attempt = <T>(work: () => T): T => {
    try {
      return work();
    } catch (error) {
      throw new UsageError(`${source}: ${errorMessage(error)}`, { code: 'template', cause: error });
    }
  };
  // Jinja2 removes one line break at the end of a template.
  const program = attempt(() => parse(tokenize(text.replace(/\n$/, ''))));
  requireNames(source, text, names);
  return (values) =>
    attempt(() => {
      const environment = new Environment();
      for (const [name, value] of Object.entries({ true: true, false: false, none: null, ...values }))
        environment.set(name, value);
      return String((new Interpreter(environment).run(program) as { value: unknown }).value);
    });
}

/** Jinja renders an unknown name as nothing; mini-swe-agent and this function refuse it. */
function requireNames(source: string, text: string, names: readonly string[]): void {
  const own = [...text.matchAll(/\{%-?\s*(?:set|for)\s+([A-Za-z_]\w*)/g)].map(([, name = '']) => name);
  for (const { 1: name = '', index } of text.matchAll(/\{\{-?\s*([A-Za-z_]\w*)/g)) {
    if (names.includes(name) || own.includes(name)) continue;
    const line = text.slice(0, index).split('\n').length;
    throw new UsageError(`${source}, line ${line}: unknown name ${name}; known here: ${names.join(', ')}`, {
      code: 'template',
    });
  }
}
