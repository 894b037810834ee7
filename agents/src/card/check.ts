/** Rules of a card that its schema cannot express: placeholders and the values of options. */
import { type AgentCard, nearest } from '@swefarm/shared';
import { isPlain } from './options.ts';
import { BUILT_IN, placeholdersOf, TASK_FILE } from './template.ts';

/** Stands alone in `command`, where the arguments of options are inserted. */
export const OPTIONS = '{options}';

export type Problem = { field: string; message: string };

/** Returns what is wrong with a card; empty for a usable card. */
export function problemsOf(card: AgentCard): Problem[] {
  const known = [...BUILT_IN, ...Object.keys(card.options)];
  const templates = templatesOf(card);
  return [
    ...templates.flatMap(({ field, text, refused = [] }) =>
      placeholdersOf(text).flatMap((name): Problem[] => {
        if (refused.includes(name))
          return [{ field, message: `{${name}} is not allowed here; use {task_file}` }];
        return known.includes(name) ? [] : [{ field, message: unknownPlaceholder(name, known) }];
      }),
    ),
    ...templates.flatMap(({ field, text, isPath }) =>
      isPath && !/^(\{(home|out|work)\})?\//.test(text)
        ? [{ field, message: 'expected a path that begins with {home}/, {out}/, {work}/ or /' }]
        : [],
    ),
    ...Object.entries(card.options).flatMap(([name, option]) => optionProblems(name, option)),
    ...repeatedNames(card),
    ...repeatedFiles(card),
  ];
}

type Template = { field: string; text: string; refused?: readonly string[]; isPath?: boolean };

function templatesOf(card: AgentCard): Template[] {
  const command = (texts: readonly string[], field: string): Template[] =>
    texts.flatMap((text, at) => (text === OPTIONS ? [] : [{ field: `${field}[${at}]`, text }]));
  const environment = (texts: Readonly<Record<string, string>>, field: string): Template[] =>
    Object.entries(texts).map(([name, text]) => ({ field: `${field}.${name}`, text }));
  return [
    ...command(card.command, 'command'),
    ...command(card.check, 'check'),
    ...environment(card.env, 'env'),
    ...Object.entries(card.options).flatMap(([name, option]) =>
      Object.entries(option.when).flatMap(([value, { env, args }]) => [
        ...environment(env, `options.${name}.when.${value}.env`),
        ...command(args, `options.${name}.when.${value}.args`),
      ]),
    ),
    ...Object.entries(card.files).flatMap(([path, text]): Template[] => [
      { field: `files.${path}`, text: path, refused: ['task'], isPath: true },
      // A task contains quotes and line breaks, which would end a text of JSON or TOML.
      { field: `files.${path}`, text, refused: ['task'] },
    ]),
    ...card.outputs.map(({ path }, at) => ({ field: `outputs[${at}].path`, text: path, isPath: true })),
    ...card.ends.flatMap(({ field }, at) =>
      field ? [{ field: `ends[${at}].field.file`, text: field.file, isPath: true }] : [],
    ),
  ];
}

function unknownPlaceholder(name: string, known: readonly string[]): string {
  const best = nearest(name, known);
  const hint = best === null ? `known: ${known.join(', ')}` : `did you mean {${best}}?`;
  return `unknown placeholder {${name}}; ${hint} ({{ is a brace)`;
}

function optionProblems(name: string, { default: value, when }: AgentCard['options'][string]): Problem[] {
  const field = `options.${name}`;
  if (name === 'options' || BUILT_IN.some((one) => one === name))
    return [{ field, message: `{${name}} is given by the worker; choose another name` }];
  if (typeof value === 'string' && !isPlain(value))
    return [
      { field: `${field}.default`, message: 'expected a text without quotes, braces, $ and line breaks' },
    ];
  return Object.keys(when).flatMap((given) => {
    const fits =
      typeof value === 'boolean'
        ? given === 'true' || given === 'false'
        : typeof value !== 'number' || Number.isFinite(Number(given));
    return fits
      ? []
      : [{ field: `${field}.when.${given}`, message: `expected a value of the type of ${value}` }];
  });
}

function repeatedNames({ outputs }: AgentCard): Problem[] {
  const names = outputs.map((output) => output.as);
  return outputs.flatMap(({ as }, at) =>
    names.indexOf(as) < at
      ? [{ field: `outputs[${at}].as`, message: `"${as}" is the name of an earlier output` }]
      : [],
  );
}

/** Two files of one path in {home}: the later would replace the earlier. A file of the card may lie in a folder. */
function repeatedFiles({ files, options }: AgentCard): Problem[] {
  const inHome = Object.keys(files).flatMap((path) => /^\{home\}\/+([^/]+)/.exec(path)?.[1] ?? []);
  const taken = new Set([TASK_FILE, ...inHome]);
  return Object.entries(options).flatMap(([name, { file }]): Problem[] => {
    if (file === undefined) return [];
    const isTaken = taken.has(file);
    taken.add(file);
    const message = `{home}/${file} is the task, a file of the card, or of an earlier option; choose another name`;
    return isTaken ? [{ field: `options.${name}.file`, message }] : [];
  });
}
