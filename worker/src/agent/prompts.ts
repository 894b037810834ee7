/** The prompt set of a run: the worker's template files, replaced by those of a folder, and then by single templates of the run. */
import { readdir, readFile } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type AgentConfig, createLazy, errorMessage, UsageError } from '@swefarm/shared';

/** Names that every template may use. */
const COMMON = ['workdir', 'step_limit', 'step_timeout', 'sentinel'] as const;
const TASK = ['problem_statement', 'instance_id', 'repo', 'hints_text'] as const;

/** Further names that each template may use. For tool calls, the variant with the suffix `_tool` is used if there is one. */
const NAMES = {
  system: TASK,
  instance: TASK,
  /** The task of an agent that comes as a program. */
  task: TASK,
  observation: ['returncode', 'output', 'notes'],
  elision: ['left_out'],
  format_error: ['reason'],
  token_cut: [],
  timed_out: ['seconds'],
  shell_reopened: [],
  killed_by_limit: [],
  collapse: ['count'],
} as const satisfies Record<string, readonly string[]>;

type PromptName = keyof typeof NAMES;
export const SENTINEL = 'COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT';

const SHIPPED = fileURLToPath(new URL('./prompts/', import.meta.url));
/** The shipped set is read once. Other sets may change, so each rollout reads them again. */
const SHIPPED_DEFAULT = createLazy(() => readSet(join(SHIPPED, 'default')));
const KNOWN = new Set(Object.keys(NAMES).flatMap((name) => [name, `${name}_tool`]));

type Values = Readonly<Record<string, string | number>>;

export type Prompts = Awaited<ReturnType<typeof openPrompts>>;

/**
 * Reads and checks the whole prompt set, so that no template fails in the middle of a rollout. `config.prompts` names a shipped set or a
 * folder (a path with a slash); templates missing in the folder come from `default`. Throws UsageError for an unknown set, a missing
 * folder, an unknown template name or a bad template.
 */
export async function openPrompts(config: AgentConfig, workdir: string) {
  const texts = new Map(await SHIPPED_DEFAULT.get());
  if (config.prompts !== 'default') {
    for (const [name, text] of await readSet(folderOf(config.prompts))) replaceText(texts, name, text);
  }
  for (const [name, text] of Object.entries(config.prompt_overrides).sort(plainFirst)) {
    if (!KNOWN.has(name)) throw unknown(`prompt_overrides.${name}`);
    replaceText(texts, name, { source: `prompt_overrides.${name}`, text });
  }
  const templates = new Map<string, Template>();
  for (const [name, names] of Object.entries(NAMES)) {
    const found = (config.action === 'tool' ? texts.get(`${name}_tool`) : undefined) ?? texts.get(name);
    if (!found) throw new UsageError(`prompt set "${config.prompts}" has no template ${name}`);
    templates.set(name, parseTemplate(found.source, found.text, [...names, ...COMMON]));
  }
  const common = {
    workdir,
    step_limit: config.step_limit,
    step_timeout: config.step_timeout,
    sentinel: SENTINEL,
  };
  return {
    /** Renders one template. `values` has the values of the template's names that are not in {@link COMMON}. */
    render(name: PromptName, values: Values = {}): string {
      const template = templates.get(name);
      if (!template) throw new UsageError(`no template ${name}`);
      return renderTemplate(template, { ...common, ...values });
    },
  };
}

type Text = { source: string; text: string };

/** A template without the suffix also replaces the `_tool` variant of an earlier source. */
function replaceText(texts: Map<string, Text>, name: string, text: Text): void {
  texts.set(name, text);
  if (!name.endsWith('_tool')) texts.delete(`${name}_tool`);
}

function folderOf(prompts: string): string {
  if (isAbsolute(prompts) || /[/\\]/.test(prompts)) return prompts;
  if (/^[a-z0-9_-]+$/.test(prompts)) return join(SHIPPED, prompts);
  throw new UsageError(`prompts "${prompts}" is neither a shipped set (default) nor the path of a folder`);
}

/** Sorts plain names before `_tool` variants, because a plain template replaces a `_tool` variant that precedes it. */
const plainFirst = (a: [string, unknown], b: [string, unknown]): number => a[0].length - b[0].length;

async function readSet(folder: string): Promise<[string, Text][]> {
  let files: string[];
  try {
    files = (await readdir(folder)).filter((file) => file.endsWith('.md') && file !== 'README.md').sort();
  } catch (error) {
    throw new UsageError(`prompts: cannot read folder ${folder}: ${errorMessage(error)}`, { cause: error });
  }
  const texts = await Promise.all(
    files.map(async (file): Promise<[string, Text]> => {
      const source = join(folder, file);
      const name = file.slice(0, -'.md'.length);
      if (!KNOWN.has(name)) throw unknown(source);
      return [name, { source, text: (await readFile(source, 'utf8')).trimEnd() }];
    }),
  );
  return texts.sort(plainFirst);
}

function unknown(source: string): UsageError {
  return new UsageError(`${source}: no such template; known: ${[...KNOWN].join(', ')}`);
}

/** Strict templates with `{{name}}` only, so that a typing error in a prompt is found before the first turn. */
type Template = { readonly source: string; readonly text: string };

/** `\{{` is a literal `{{`; any other `{{` must be a name. */
const MARK = /\\\{\{|\{\{[ \t]*([a-z][a-z0-9_]{0,63})[ \t]*\}\}|\{\{/g;
const ESCAPED = '\\{{';

/** Checks the names of a template. Throws UsageError `template` for an unknown name or an unclosed `{{`; it names `source` and line. */
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
export function renderTemplate({ source, text }: Template, values: Values): string {
  return text.replace(MARK, (mark: string, name = '') => {
    if (mark === ESCAPED) return '{{';
    if (Object.hasOwn(values, name)) return String(values[name]);
    throw new UsageError(`${source}: no value for {{${name}}}`, { code: 'template' });
  });
}
