/** Fills a card with the values of one rollout: the command, environment and files with which its program starts. */
import { type AgentCard, RolloutFailure } from '@swefarm/shared';
import { mountPath } from '../bundle.ts';
import { OPTIONS } from './check.ts';
import { allOptions, isPlain, type OptionFiles, type OptionValues, requireFileOptions } from './options.ts';
import { type BuiltIn, fillText, placeholdersOf, TASK_FILE } from './template.ts';

/** Values of a rollout. Paths are absolute paths inside the sandbox. */
export type StartValues = {
  /** Root of the recording endpoint, without `/v1`. */
  endpoint: string;
  key: string;
  model: string;
  task: string;
  /** The repository. */
  work: string;
  /** Folders outside the repository: home of the agent, and its output files. */
  home: string;
  out: string;
  /** Search path of the agent's commands. */
  path: string;
  /** Most tokens of prompt and answer. */
  context: number;
  /** Most turns of the rollout. */
  turns: number;
};

export type AgentStart = {
  argv: string[];
  env: Record<string, string>;
  files: { path: string; content: string }[];
  /** What a full context does, by card and options. */
  overflow: AgentCard['api']['overflow'];
  /** End rules and outputs of the card, with filled paths. */
  ends: AgentCard['ends'];
  outputs: AgentCard['outputs'];
};

/** Linux refuses an argument or a variable of 128 KiB; the rest is for the text around the task. */
const LONGEST_BYTES = 120 * 1024;

/**
 * @param given options of the run; options that are not given have their defaults
 * @param optionFiles contents of the files that the run gives for options
 * @throws UsageError for options that the card lacks; RolloutFailure `agent_unfit` if the task is too long for the card
 */
export function fillCard(
  card: AgentCard,
  given: OptionValues,
  values: StartValues,
  optionFiles: OptionFiles = {},
): AgentStart {
  const written = givenFiles(card, optionFiles, values.home);
  const options = {
    ...allOptions(card, given),
    ...Object.fromEntries(written.map(({ option, path }) => [option, path])),
  };
  const additions = Object.entries(options).flatMap(
    ([name, value]) => card.options[name]?.when[String(value)] ?? [],
  );
  const taskFile = `${values.home}/${TASK_FILE}`;
  const all: Record<BuiltIn, string | number> = {
    ...values,
    // No argument of a program can contain a null byte.
    task: values.task.replaceAll('\0', ''),
    task_file: taskFile,
    bundle: mountPath(card.bundle.name),
  };
  requirePlainModel(card, values.model);
  const fill = (template: string): string =>
    fillText(template, (name) => {
      const value = Object.hasOwn(options, name) ? options[name] : all[name as BuiltIn];
      if (value === undefined)
        throw new RolloutFailure('bug', `card ${card.name}: unknown placeholder {${name}}`);
      return String(value);
    });
  const args = additions.flatMap((one) => one.args);
  const command = card.command.includes(OPTIONS)
    ? card.command.flatMap((text) => (text === OPTIONS ? args : [text]))
    : [...card.command, ...args];
  const templates = Object.assign({}, card.env, ...additions.map((one) => one.env)) as Record<string, string>;
  const env = Object.fromEntries(Object.entries(templates).map(([name, text]) => [name, fill(text)]));
  const argv = command.map(fill);
  requireShort(card, [...argv, ...Object.values(env)]);
  const files = Object.entries(card.files).map(([path, text]) => ({ path: fill(path), content: fill(text) }));
  const usesFile = [...command, ...Object.values(templates), ...Object.values(card.files)].some((text) =>
    placeholdersOf(text).includes('task_file'),
  );
  if (usesFile) files.push({ path: taskFile, content: values.task });
  files.push(...written.map(({ path, content }) => ({ path, content })));
  return {
    ...{ argv, env, files },
    overflow: additions.findLast((one) => one.overflow)?.overflow ?? card.api.overflow,
    ends: card.ends.map((end) =>
      end.field ? { ...end, field: { ...end.field, file: fill(end.field.file) } } : end,
    ),
    outputs: card.outputs.map((output) => ({ ...output, path: fill(output.path) })),
  };
}

/** Throws UsageError for an option that takes no file. */
function givenFiles(card: AgentCard, files: OptionFiles, home: string) {
  requireFileOptions(card, files);
  return Object.entries(files).map(([option, content]) => ({
    option,
    content,
    path: `${home}/${card.options[option]?.file}`,
  }));
}

function requireShort(card: AgentCard, texts: readonly string[]): void {
  const longest = Math.max(...texts.map((text) => Buffer.byteLength(text)));
  if (longest <= LONGEST_BYTES) return;
  throw new RolloutFailure(
    'agent_unfit',
    `card ${card.name} passes the task as an argument, which may have ${LONGEST_BYTES} bytes, but this one has ${longest}; use a card with {task_file}`,
  );
}

/** A name with a quote would end a text in the JSON or TOML of a card. */
function requirePlainModel(card: AgentCard, model: string): void {
  const texts = [...Object.values(card.files), ...Object.values(card.env)];
  if (isPlain(model) || !texts.some((text) => placeholdersOf(text).includes('model'))) return;
  throw new RolloutFailure(
    'agent_unfit',
    `card ${card.name} writes the model's name into a file, but "${model}" has a quote, a brace or $`,
  );
}
