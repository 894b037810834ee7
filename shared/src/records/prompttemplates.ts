/** Templates of prompts: their names, the values that each may use, and the engine `plain`. */
import { UsageError } from '../failures/errors.ts';

/** Names that every template may use. */
export const COMMON_VALUES = [
  'workdir',
  'step_limit',
  'step_timeout',
  'sentinel',
  'submit_tool',
  'tools',
] as const;
const TASK = ['problem_statement', 'instance_id', 'repo', 'hints_text'] as const;
/** Texts of files of the sandbox; empty without `sources` of the prompt set. */
const FILES = ['readmes', 'code'] as const;

/** Further names that each template may use. For tool calls, the variant with the suffix `_tool` is used if there is one. */
export const TEMPLATE_VALUES = {
  system: [...TASK, ...FILES],
  instance: [...TASK, ...FILES],
  /** The task of an agent that comes as a program. */
  task: TASK,
  observation: ['returncode', 'output', 'notes'],
  /** The observation of a tool that is not bash and no script. */
  tool_observation: ['output'],
  elision: ['left_out'],
  format_error: ['reason'],
  token_cut: [],
  timed_out: ['seconds'],
  shell_reopened: [],
  killed_by_limit: [],
  collapse: ['count'],
  feedback: ['why', 'tests', 'repository', 'left'],
} as const satisfies Record<string, readonly string[]>;

export type TemplateName = keyof typeof TEMPLATE_VALUES;
export const SENTINEL = 'COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT';

/** Names that a prompt set may have: those above, and their variants for tool calls. */
export const TEMPLATE_NAMES: ReadonlySet<string> = new Set(
  Object.keys(TEMPLATE_VALUES).flatMap((name) => [name, `${name}_tool`]),
);

/** Returns the values that a template may use, by its name with or without `_tool`. */
export const valuesOf = (name: string): readonly string[] => [
  ...TEMPLATE_VALUES[name.replace(/_tool$/, '') as TemplateName],
  ...COMMON_VALUES,
];

/**
 * Names that templates of the engine `jinja` may use instead, as in mini-swe-agent: `task` is the issue, `output` of an observation has
 * `output`, `returncode` and `exception_info`.
 */
export const jinjaValuesOf = (name: string): readonly string[] => {
  const own: Readonly<Record<string, readonly string[]>> = {
    system: JINJA_TASK,
    instance: JINJA_TASK,
    observation: ['output'],
    format_error: JINJA_ERROR,
    token_cut: JINJA_ERROR,
  };
  return [...(own[name.replace(/_tool$/, '')] ?? []), ...valuesOf(name)];
};

/** `finish_reason` and `has_tool_calls` are defined in `token_cut` only. */
const JINJA_ERROR = ['error', 'actions', 'finish_reason', 'has_tool_calls'];
const JINJA_TASK = ['task', 'cwd', 'system', 'release', 'version', 'machine'];

export type TemplateValues = Readonly<Record<string, string | number>>;

/** Strict templates with `{{name}}` only, so that a typing error in a prompt is found before the first turn. */
export type PlainTemplate = { readonly source: string; readonly text: string };

/** `\{{` is a literal `{{`; any other `{{` must be a name. */
const MARK = /\\\{\{|\{\{[ \t]*([a-z][a-z0-9_]{0,63})[ \t]*\}\}|\{\{/g;
const ESCAPED = '\\{{';

/** Checks the names of a template. Throws UsageError `template` for an unknown name or an unclosed `{{`; it names `source` and line. */
export function parseTemplate(source: string, text: string, names: readonly string[]): PlainTemplate {
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
export function renderTemplate({ source, text }: PlainTemplate, values: TemplateValues): string {
  return text.replace(MARK, (mark: string, name = '') => {
    if (mark === ESCAPED) return '{{';
    if (Object.hasOwn(values, name)) return String(values[name]);
    throw new UsageError(`${source}: no value for {{${name}}}`, { code: 'template' });
  });
}
