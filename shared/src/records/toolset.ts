/** Toolsets and prompt sets: the tools and texts of the agent `mini` as data of a run. docs/prompts.md describes the files. */
import { z } from 'zod';

const text = z.string().max(64 * 1024);
/** Name of a toolset or a prompt set; a row of a dataset refers to the set by it. */
export const SetName = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, {
  error: 'expected letters, digits, dots, hyphens and underscores',
});

/** Names by which exports know the call that ends a rollout. */
export const SUBMIT_NAMES = ['submit', 'submit_solution', 'finish'] as const;

/** Tools that the worker implements, with the arguments that their schemas must have. */
export const BUILT_IN_TOOLS = {
  bash: ['command'],
  str_replace_editor: ['command', 'path'],
  submit: [],
  think: [],
} as const;

const ToolName = z.string().regex(/^[A-Za-z_][A-Za-z0-9_-]{0,63}$/);

/** A tool in the form in which the model sees it, and what a call runs. */
export const Tool = z
  .strictObject({
    name: ToolName,
    description: text,
    /** JSON schema of the arguments. */
    parameters: z.looseObject({
      type: z.literal('object'),
      properties: z.record(z.string().regex(/^[A-Za-z_]\w{0,63}$/), z.looseObject({})).default({}),
      required: z.array(z.string()).default([]),
    }),
    /** A tool of the worker, or a script: bash with the arguments in `ARG_NAME`. */
    run: z.union([
      z.enum(['bash', 'str_replace_editor', 'submit', 'think']),
      z.strictObject({ script: text }),
    ]),
    /** For str_replace_editor: whether edits keep the tabs and line ends of a file. */
    verbatim: z.boolean().optional(),
  })
  .superRefine(({ name, parameters: { properties, required }, run, verbatim }, context) => {
    const issue = (path: string, message: string) =>
      context.addIssue({ code: 'custom', path: [path], message });
    const needed: readonly string[] = typeof run === 'string' ? BUILT_IN_TOOLS[run] : [];
    const missing = [...needed, ...required].filter((key) => !Object.hasOwn(properties, key));
    if (missing.length > 0) issue('parameters', `expected properties ${missing.join(', ')}`);
    if (run === 'submit' && !(SUBMIT_NAMES as readonly string[]).includes(name))
      issue('name', `a tool that submits has one of the names ${SUBMIT_NAMES.join(', ')}`);
    if (verbatim !== undefined && run !== 'str_replace_editor')
      issue('verbatim', 'only a tool that runs str_replace_editor has it');
  });
export type Tool = z.infer<typeof Tool>;

/** Templates by their names (worker/src/agent/prompts.ts). */
const Templates = z.record(z.string().regex(/^[a-z_]{1,40}$/), text);

/** Share of the groups that use the set; 0: only rows that name the set use it. */
const weight = z.number().nonnegative().max(1e6).default(1);

export const Toolset = z
  .strictObject({
    name: SetName,
    weight,
    tools: z.array(Tool).min(1).max(64),
    /** Texts that name the tools; a prompt set of the run replaces them. */
    prompts: Templates.default({}),
  })
  .superRefine(({ tools }, context) => {
    const issue = (message: string) => context.addIssue({ code: 'custom', path: ['tools'], message });
    const names = tools.map(({ name }) => name);
    const twice = names.find((name, at) => names.indexOf(name) !== at);
    if (twice !== undefined) issue(`two tools have the name ${twice}`);
    const runs = tools.flatMap(({ run }) => (typeof run === 'string' ? [run] : []));
    const again = runs.find((run, at) => runs.indexOf(run) !== at);
    if (again !== undefined) issue(`two tools run ${again}`);
    if (!tools.some(({ run }) => run === 'bash' || run === 'submit'))
      issue('expected a tool that runs bash or submit: without one no rollout can be submitted');
  });
export type Toolset = z.infer<typeof Toolset>;

export const PromptSet = z.strictObject({
  name: SetName,
  weight,
  /** `plain`: `{{name}}` only. `jinja`: templates of mini-swe-agent. */
  engine: z.enum(['plain', 'jinja']).default('plain'),
  templates: Templates.default({}),
  /** How the model acts with these texts; absent: as the run says. */
  action: z.enum(['fenced', 'tool', 'patch']).optional(),
  /**
   * Files of the sandbox that `{{readmes}}` and `{{code}}` show, as SWE-bench's prompts do. `oracle`: the files that the gold patch
   * changes, whose names reveal a part of the solution.
   */
  sources: z
    .strictObject({ readmes: z.boolean().default(false), code: z.enum(['none', 'oracle']).default('none') })
    .optional(),
  /** Name of the toolset that belongs to the texts; absent: drawn by weight. */
  toolset: SetName.optional(),
});
export type PromptSet = z.infer<typeof PromptSet>;

/** The prompt set and the toolset of a rollout. `hash`: sha256 of its contents without name and weight. */
export const Variant = z.object({
  prompts: z.string(),
  prompts_hash: z.string().nullable().meta({ description: 'null: a set that comes with the worker' }),
  toolset: z.string(),
  toolset_hash: z.string().nullable().meta({ description: 'null: the tools of the setting `action`' }),
});
export type Variant = z.infer<typeof Variant>;
