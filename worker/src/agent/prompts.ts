/** The prompts of a rollout: the worker's templates, replaced by those of toolset and prompt set, and then by single templates of the run. */
import { readdir, readFile } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseJinja } from '@swefarm/policy';
import {
  type AgentConfig,
  createLazy,
  errorMessage,
  jinjaValuesOf,
  type PromptSet,
  parseTemplate,
  renderTemplate,
  SENTINEL,
  TEMPLATE_NAMES,
  TEMPLATE_VALUES,
  type TemplateName,
  type TemplateValues,
  UsageError,
  valuesOf,
} from '@swefarm/shared';
import { namesOf, toolsOf } from './actions.ts';

const SHIPPED = fileURLToPath(new URL('./prompts/', import.meta.url));
/** The shipped set is read once. Other sets may change, so each rollout reads them again. */
const SHIPPED_DEFAULT = createLazy(() => readSet(join(SHIPPED, 'default')));

export type Prompts = Awaited<ReturnType<typeof openPrompts>>;

/** The settings from which prompts are made; `prompts` and `toolset` have at most one set, that of the rollout. */
export type PromptConfig = Pick<
  AgentConfig,
  'action' | 'prompts' | 'prompt_overrides' | 'step_limit' | 'step_timeout' | 'toolset'
>;

/**
 * Reads and checks the whole prompt set, so that no template fails in the middle of a rollout. `config.prompts` is a set, or names a
 * shipped set or a folder (a path with a slash); missing templates come from `default`. Throws UsageError for an unknown set, a missing
 * folder, an unknown template name or a bad template.
 */
export async function openPrompts(config: PromptConfig, workdir: string) {
  const texts = await textsOf(config);
  const templates = new Map<string, (values: TemplateValues) => string>();
  let jinja = false;
  for (const name of Object.keys(TEMPLATE_VALUES)) {
    const found = (config.action === 'tool' ? texts.get(`${name}_tool`) : undefined) ?? texts.get(name);
    if (!found) throw new UsageError(`prompt set "${nameOf(config)}" has no template ${name}`);
    templates.set(name, openTemplate(name, found));
    jinja ||= name === 'observation' && found.engine === 'jinja';
  }
  const tools = toolsOf(config);
  const common = {
    workdir,
    step_limit: config.step_limit,
    step_timeout: config.step_timeout,
    sentinel: SENTINEL,
    tools: namesOf(tools),
    submit_tool: tools.find(({ run }) => run === 'submit')?.name ?? '',
  };
  return {
    /** Whether the template of observations shortens the output itself. */
    shortens: jinja,
    /** Renders one template. `values` has the values of the template's own names. */
    render(name: TemplateName, values: TemplateValues = {}): string {
      const render = templates.get(name);
      if (!render) throw new UsageError(`no template ${name}`);
      return render({ ...common, ...values });
    },
  };
}

const nameOf = ({ prompts }: PromptConfig): string =>
  typeof prompts === 'string' ? prompts : (prompts[0]?.name ?? 'default');

type Text = { source: string; text: string; engine: PromptSet['engine'] };

async function textsOf({ prompts, prompt_overrides, toolset }: PromptConfig): Promise<Map<string, Text>> {
  const texts = new Map(await SHIPPED_DEFAULT.get());
  const add = (where: string, given: Readonly<Record<string, string>>, engine: Text['engine'] = 'plain') => {
    for (const [name, text] of Object.entries(given).sort(plainFirst)) {
      const source = `${where}.${name}`;
      if (!TEMPLATE_NAMES.has(name)) throw unknown(source);
      replaceText(texts, name, { source, text, engine });
    }
  };
  const [own] = toolset;
  if (own) add(`toolset ${own.name}: prompts`, own.prompts);
  if (typeof prompts !== 'string') {
    const [set] = prompts;
    if (set) add(`prompts ${set.name}: templates`, set.templates, set.engine);
  } else if (prompts !== 'default') {
    for (const [name, text] of await readSet(folderOf(prompts))) replaceText(texts, name, text);
  }
  add('prompt_overrides', prompt_overrides);
  return texts;
}

function openTemplate(name: string, { source, text, engine }: Text): (values: TemplateValues) => string {
  if (engine === 'jinja') {
    const render = parseJinja(source, text, jinjaValuesOf(name));
    return (values) => render(jinjaValues(name, values));
  }
  const template = parseTemplate(source, text, valuesOf(name));
  return (values) => renderTemplate(template, values);
}

/** Returns the values under the names of mini-swe-agent too. */
function jinjaValues(name: string, values: TemplateValues): Record<string, unknown> {
  const { output, returncode, notes = '', problem_statement: task, reason: error, workdir: cwd } = values;
  if (name === 'observation')
    return { ...values, output: { output, returncode, exception_info: String(notes).trim() } };
  if (name === 'format_error') return { ...values, error, actions: [] };
  if (name === 'token_cut')
    return { ...values, error: '', actions: [], finish_reason: 'length', has_tool_calls: false };
  return { ...values, task, cwd, system: 'Linux', release: '', version: '', machine: 'x86_64' };
}

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
const plainFirst = (a: readonly [string, unknown], b: readonly [string, unknown]): number =>
  a[0].length - b[0].length;

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
      if (!TEMPLATE_NAMES.has(name)) throw unknown(source);
      return [name, { source, text: (await readFile(source, 'utf8')).trimEnd(), engine: 'plain' }];
    }),
  );
  return texts.sort(plainFirst);
}

function unknown(source: string): UsageError {
  return new UsageError(`${source}: no such template; known: ${[...TEMPLATE_NAMES].join(', ')}`);
}
