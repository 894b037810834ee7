/** Describes commands as data, from which completion scripts and man pages are generated. */
import type { Argument, Command, Option } from 'commander';

/** What a shell completes at a value. */
type Completes = { words: readonly string[] } | 'files' | 'folders' | 'nothing';

export type OptionEntry = {
  /** Flags with their value: `-V, --version`, `--output <file>`. */
  flags: string;
  names: readonly string[];
  /** Name of the value; null for a switch. */
  value: string | null;
  isValueOptional: boolean;
  isRepeatable: boolean;
  heading: string;
  help: string;
  completes: Completes;
};

export type ArgumentEntry = {
  /** `<file...>`, `[name]` */
  syntax: string;
  help: string;
  isRepeatable: boolean;
  completes: Completes;
};

export type CommandPage = {
  /** `['swefarm', 'dataset', 'fetch']` */
  words: readonly string[];
  summary: string;
  arguments: readonly ArgumentEntry[];
  options: readonly OptionEntry[];
  commands: readonly CommandPage[];
  example: string | null;
  notes: string;
};

/** Returns the text below the options of a command's help. */
type TextBelow = (command: Command) => { example: string; notes: string } | undefined;

/** Returns the page of a command, with the pages of its subcommands. */
export function pageOf(command: Command, textBelow: TextBelow, above: readonly string[] = []): CommandPage {
  const words = [...above, command.name()];
  const below = textBelow(command);
  return {
    words,
    summary: command.description(),
    arguments: command.registeredArguments.map(argumentEntry),
    options: [...command.options, ...helpOf(command)].filter(({ hidden }) => !hidden).map(optionEntry),
    commands: command.commands.map((one) => pageOf(one, textBelow, words)),
    example: below?.example ?? null,
    notes: below?.notes ?? '',
  };
}

/** Returns the page of a program with the names of its commands as completions of `man`, and with a page of commander's `help`. */
export function withNamesCompleted(program: CommandPage): CommandPage {
  const completes = { words: program.commands.map(({ words }) => words.at(-1) ?? '') };
  const name: ArgumentEntry = { syntax: '[command]', help: '', isRepeatable: false, completes };
  const words = [...program.words, 'help'];
  const rest = { arguments: [name], options: [], commands: [], example: null, notes: '' };
  const commands = program.commands.map((page) =>
    page.words.at(-1) === 'man' ? { ...page, arguments: [name] } : page,
  );
  return { ...program, commands: [...commands, { words, summary: 'print the help of a command', ...rest }] };
}

/** Returns a page and all pages below it. */
export const withPagesBelow = (page: CommandPage): CommandPage[] => [
  page,
  ...page.commands.flatMap(withPagesBelow),
];

/** Returns the option `--help`, which commander adds when it prints. */
function helpOf(command: Command): Option[] {
  const shown = command.createHelp().visibleOptions(command);
  return shown.filter(({ long }) => long === '--help' && !command.options.some((one) => one.long === long));
}

function optionEntry(option: Option): OptionEntry {
  const value = /[<[]([^\]>.]+)/.exec(option.flags)?.[1] ?? null;
  return {
    flags: option.flags,
    names: [option.long, option.short].flatMap((name) => name ?? []),
    value,
    isValueOptional: option.optional,
    isRepeatable: option.variadic || /repeatable/.test(option.description),
    heading: option.helpGroupHeading ?? 'Options:',
    help: helpText(option),
    completes: completion(value ?? '', option.argChoices),
  };
}

function argumentEntry(argument: Argument): ArgumentEntry {
  const { variadic, required, description, argChoices } = argument;
  const name = `${argument.name()}${variadic ? '...' : ''}`;
  return {
    syntax: required ? `<${name}>` : `[${name}]`,
    help: description,
    isRepeatable: variadic,
    completes: completion(argument.name(), argChoices),
  };
}

/** Returns the help with choices and default, as `--help` prints it. */
function helpText({ description, argChoices, defaultValue }: Option): string {
  const notes = [
    ...(argChoices ? [`choices: ${argChoices.join(', ')}`] : []),
    ...(defaultValue === undefined || defaultValue === false ? [] : [`default: ${String(defaultValue)}`]),
  ];
  return notes.length === 0 ? description : `${description} (${notes.join('; ')})`;
}

/** Names of values that can be paths. `swefarm show` reads its rollout from a line of a file. */
const FILES = new Set(
  'file files path paths output outputs results cards card config other rollout rollout@turn dataset agent agents source'.split(
    ' ',
  ),
);
const FOLDERS = new Set(['folder', 'dir', 'directory']);

function completion(value: string, choices: readonly string[] | undefined): Completes {
  if (choices) return { words: choices };
  if (FOLDERS.has(value)) return 'folders';
  return FILES.has(value) ? 'files' : 'nothing';
}
